//! The three tables: how the fields of a row become a domain value, and a domain value fields.

use std::borrow::Cow;

use super::{
    check::Check,
    value::{Fields, Value},
};
use crate::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureError, FeatureValue, FeatureWarning, Features, Kind,
    Outfit, Schema,
};

/// A table that files can hold: [`Article`], [`Customer`] or [`Outfit`].
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

const fn one(name: &'static str, required: bool) -> Field {
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
                ("id", value) => id = Some(text("id", value)?),
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
                ("id", value) => id = Some(text("id", value)?),
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
                ("customer", value) => customer = Some(text("customer", value)?),
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

fn given<V>(field: &str, value: Option<V>) -> Result<V, String> {
    value.ok_or_else(|| format!("field {field:?} is missing"))
}

fn in_field(field: &str, error: impl std::fmt::Display) -> String {
    format!("field {field:?}: {error}")
}

fn text<'a>(field: &str, value: Value<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(format!("field {field:?} must be a text, found {}", other.kind())),
    }
}

fn article_ids(value: Value<'_>) -> Result<Vec<ArticleId>, String> {
    let refuse = |found: &str| format!("field \"articles\" must be a list of texts, found {found}");
    let Value::List(values) = value else { return Err(refuse(value.kind())) };
    let id = |value: Value<'_>| match value {
        Value::Text(text) => ArticleId::new(text).map_err(|error| in_field("articles", error)),
        other => Err(refuse(&format!("{} in it", other.kind()))),
    };
    values.into_iter().map(id).collect()
}

/// Postgres keeps no text that holds it.
fn refuse_nul(fields: &Fields<'_>) -> Result<(), String> {
    match fields.iter().find(|(name, value)| name.contains('\0') || value.holds_nul()) {
        Some((name, _)) => Err(format!("field {name:?} holds the character NUL (\\u0000): take it out")),
        None => Ok(()),
    }
}

fn read_features(value: Value<'_>, schema: &Schema) -> Result<(Features, Vec<FeatureWarning>), String> {
    let given = match value {
        Value::Null => return Ok((Features::default(), Vec::new())),
        Value::Object(fields) => fields,
        other => return Err(format!("field \"features\" must be an object, found {}", other.kind())),
    };
    let mut features = Features::default();
    let mut errors = Vec::new();
    for (name, value) in given {
        if name.is_empty() {
            return Err("a feature needs a name, found an empty one".into());
        }
        match feature_value(&name, value, schema) {
            Ok(Some(value)) => features.insert(name, value),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    // The encoder judges the types, so that a file and a request are held to the same rule.
    let warnings = match schema.encode(&features) {
        Ok(encoding) => encoding.warnings,
        Err(wrong) => {
            errors.extend(wrong);
            Vec::new()
        }
    };
    if errors.is_empty() {
        Ok((features, warnings))
    } else {
        Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

fn feature_value(
    name: &str,
    value: Value<'_>,
    schema: &Schema,
) -> Result<Option<FeatureValue>, FeatureError> {
    let known = schema.feature(name);
    let refuse = |found: String| FeatureError {
        feature: name.to_owned(),
        expected: known.map_or("a text, a number or a list of texts", |feature| feature.expected()),
        found,
    };
    match value {
        Value::Null => Ok(None),
        // One value of a set may stand without its list; inside, a set is a list.
        Value::Text(text) if known.is_some_and(|feature| feature.kind == Kind::Set) => {
            Ok(Some(FeatureValue::Many(vec![text.into_owned()])))
        }
        Value::Text(text) => Ok(Some(FeatureValue::Text(text.into_owned()))),
        Value::Number(number) => Ok(number.as_f64().map(FeatureValue::Number)),
        Value::List(values) => {
            let word = |value| match value {
                Value::Text(text) => Ok(text.into_owned()),
                other => Err(refuse(format!("a list with {} in it", other.kind()))),
            };
            values
                .into_iter()
                .map(word)
                .collect::<Result<_, _>>()
                .map(|words| Some(FeatureValue::Many(words)))
        }
        Value::Bool(truth) => Err(refuse(truth.to_string())),
        Value::Object(_) => Err(refuse("an object".into())),
    }
}

fn write_features<'a>(features: &'a Features, schema: &Schema) -> Fields<'a> {
    let written = |(name, value): (&'a str, &'a FeatureValue)| {
        let value = match value {
            FeatureValue::Text(text)
                if schema.feature(name).is_some_and(|feature| feature.kind == Kind::Set) =>
            {
                Value::List(vec![Value::text(text)])
            }
            FeatureValue::Text(text) => Value::text(text),
            // What is no number to JSON is no number to the encoder either: not given.
            FeatureValue::Number(number) => Value::from_f64(*number)?,
            FeatureValue::Many(words) => Value::List(words.iter().map(Value::text).collect()),
        };
        Some((name.into(), value))
    };
    features.iter().filter_map(written).collect()
}
