//! The three tables: how the fields of a row become a domain value, and a domain value fields.

use std::borrow::Cow;

use super::{
    features::{read_features, write_features},
    known::Check,
    value::{Fields, Value},
};
use crate::domain::{Article, ArticleId, Customer, CustomerId, FeatureWarning, Outfit, Schema};

/// A table that files can hold: [`Article`], [`Customer`], [`Outfit`], or outfits that are to be completed
/// ([`OpenOutfit`](crate::domain::OpenOutfit)).
pub trait Table: Sized + Clone + Wire + Check {
    /// What the table is called, and its files: `articles`, `customers`, `outfits`.
    const NAME: &'static str;
}

impl Table for Article {
    const NAME: &'static str = "articles";
}

impl Table for Customer {
    const NAME: &'static str = "customers";
}

impl Table for Outfit {
    const NAME: &'static str = "outfits";
}

/// A field of a table's own: every row of a flat file has a column for it.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    /// Several ids rather than one text.
    pub list: bool,
}

/// What makes a type a table. It stays inside this module, so that there are no others.
pub trait Wire: Sized {
    /// The table's own fields, in canonical order, `features` aside.
    const FIELDS: &'static [Field];
    /// Whether the other columns of a flat file are features, or (articles) attributes.
    const FEATURES: bool;

    /// # Errors
    /// The reason why the row cannot be used.
    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String>;

    /// The row in canonical order.
    fn to_fields(&self, schema: &Schema) -> Fields<'_>;
}

pub(super) const fn one(name: &'static str, required: bool) -> Field {
    Field { name, required, list: false }
}

impl Wire for Article {
    const FIELDS: &'static [Field] = &[one("id", true), one("type", true)];
    const FEATURES: bool = false;

    fn from_fields(fields: Fields<'_>, _schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut id, mut kind) = (None, None);
        let mut attributes = serde_json::Map::new();
        for (name, value) in fields {
            match (name.as_ref(), value) {
                (_, Value::Null) => {}
                ("id", value) => id = Some(id_text("field \"id\"", value)?),
                ("type", value) => kind = Some(text("type", value)?),
                ("", _) => return Err("an attribute needs a name, found an empty one".into()),
                (_, value) => {
                    attributes.insert(name.into_owned(), value.into_json());
                }
            }
        }
        let id = ArticleId::new(given("id", id)?).map_err(|error| in_field("id", error))?;
        let article = Self::new(id, given("type", kind)?, attributes).map_err(|error| error.to_string())?;
        Ok((article, Vec::new()))
    }

    fn to_fields(&self, _schema: &Schema) -> Fields<'_> {
        let mut fields: Fields<'_> = self
            .attributes()
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.into(), Value::from_json(value)))
            .collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        let own = [("id", self.id.as_str()), ("type", self.kind())];
        fields.splice(..0, own.map(|(name, text)| (name.into(), Value::text(text))));
        fields
    }
}

impl Wire for Customer {
    const FIELDS: &'static [Field] = &[one("id", true)];
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut id, mut features) = (None, Value::Null);
        for (name, value) in fields {
            match (name.as_ref(), value) {
                ("id", Value::Null) => {}
                ("id", value) => id = Some(id_text("field \"id\"", value)?),
                ("features", value) => features = value,
                _ => return Err(format!("unknown field {name:?}: a customer has \"id\" and \"features\"")),
            }
        }
        let id = CustomerId::new(given("id", id)?).map_err(|error| in_field("id", error))?;
        let (features, warnings) = read_features(features, schema)?;
        Ok((Self { id, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        vec![
            ("id".into(), Value::text(self.id.as_str())),
            ("features".into(), Value::Object(write_features(&self.features, schema))),
        ]
    }
}

impl Wire for Outfit {
    const FIELDS: &'static [Field] =
        &[one("customer", true), Field { name: "articles", required: true, list: true }, one("split", false)];
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut customer, mut articles, mut split, mut features) = (None, None, None, Value::Null);
        for (name, value) in fields {
            match (name.as_ref(), value) {
                ("features", value) => features = value,
                ("customer" | "articles" | "split", Value::Null) => {}
                ("customer", value) => customer = Some(id_text("field \"customer\"", value)?),
                ("articles", value) => articles = Some(article_ids(value)?),
                ("split", value) => split = Some(text("split", value)?),
                _ => {
                    return Err(format!(
                        "unknown field {name:?}: an outfit has \"customer\", \"articles\", \"split\" and \
                         \"features\""
                    ));
                }
            }
        }
        let customer =
            CustomerId::new(given("customer", customer)?).map_err(|error| in_field("customer", error))?;
        let articles = given("articles", articles)?;
        let split = split
            .map(|split| split.parse())
            .transpose()
            .map_err(|error: crate::domain::OutfitError| error.to_string())?;
        let (features, warnings) = read_features(features, schema)?;
        let outfit = Self::new(customer, articles, split, features).map_err(|error| error.to_string())?;
        Ok((outfit, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        let articles = self.articles().iter().map(|id| Value::text(id.as_str())).collect();
        let mut fields = vec![
            ("customer".into(), Value::text(self.customer.as_str())),
            ("articles".into(), Value::List(articles)),
        ];
        if let Some(split) = self.split {
            fields.push(("split".into(), Value::text(split.as_str())));
        }
        let features = write_features(&self.features, schema);
        if !features.is_empty() {
            fields.push(("features".into(), Value::Object(features)));
        }
        fields
    }
}

pub(super) fn given<V>(field: &str, value: Option<V>) -> Result<V, String> {
    value.ok_or_else(|| format!("field {field:?} is missing"))
}

pub(super) fn in_field(field: &str, error: impl std::fmt::Display) -> String {
    format!("field {field:?}: {error}")
}

fn text<'a>(field: &str, value: Value<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(format!("field {field:?} must be a text, found {}", other.kind())),
    }
}

/// An id as its owner writes it, or as the number that databases and data frames make of it.
pub(super) fn id_text<'a>(what: &str, value: Value<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string().into()),
        Value::Number(number) => Err(format!("{what} must be a text or a whole number, found {number}")),
        other => Err(format!("{what} must be a text or a whole number, found {}", other.kind())),
    }
}

fn article_ids(value: Value<'_>) -> Result<Vec<ArticleId>, String> {
    let Value::List(values) = value else {
        return Err(format!("field \"articles\" must be a list of ids, found {}", value.kind()));
    };
    let id = |value| {
        ArticleId::new(id_text("each of \"articles\"", value)?).map_err(|error| in_field("articles", error))
    };
    values.into_iter().map(id).collect()
}

/// Postgres keeps no text that holds it.
pub(super) fn refuse_nul(fields: &Fields<'_>) -> Result<(), String> {
    match fields.iter().find(|(name, value)| name.contains('\0') || value.holds_nul()) {
        Some((name, _)) => Err(format!("field {name:?} holds the character NUL (\\u0000): take it out")),
        None => Ok(()),
    }
}
