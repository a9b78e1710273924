//! Turns the fields of a row into a domain value, and a domain value into fields.

use std::{borrow::Cow, fmt::Display};

use atelier_core::domain::{
    Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, FeatureWarning, Features, IdError,
    OpenOutfit, Outfit, Schema, Slot, Slots, Split, feature_to_json, read_features, write_embedding,
};

use super::{
    check::Check,
    columns::{add_features, feature_name},
    json::{Fields, Value},
};

/// A table in files: [`Article`], [`Customer`], [`Outfit`], their changes [`ArticlePatch`] and [`CustomerPatch`], or
/// [`OpenOutfit`] for outfits to complete.
pub trait Table: Sized + Clone + Wire + Check {
    /// The name of the table and its files: `articles`, `customers` or `outfits`.
    const NAME: &'static str;
}

impl Table for Article {
    const NAME: &'static str = "articles";
}

impl Table for Customer {
    const NAME: &'static str = "customers";
}

impl Table for ArticlePatch {
    const NAME: &'static str = Article::NAME;
}

impl Table for CustomerPatch {
    const NAME: &'static str = Customer::NAME;
}

impl Table for Outfit {
    const NAME: &'static str = "outfits";
}

impl Table for OpenOutfit {
    const NAME: &'static str = "outfits";
}

/// A field of a table, which has its own column in every flat file.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    /// Whether it is a list of ids.
    pub list: bool,
}

/// Conversion between rows and domain values. It is private to this room, so there are no other tables.
pub trait Wire: Sized {
    /// The table's fields in canonical order, without `features`.
    const FIELDS: &'static [Field];
    /// Whether the other columns of a flat file are features; otherwise they are attributes.
    const FEATURES: bool;

    /// # Errors
    /// Why the row cannot be used.
    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String>;

    /// The fields in canonical order.
    fn to_fields(&self, schema: &Schema) -> Fields<'_>;
}

const fn field(name: &'static str, required: bool) -> Field {
    Field { name, required, list: false }
}

impl Wire for Article {
    const FIELDS: &'static [Field] = &[field("id", true), field("type", true)];
    const FEATURES: bool = false;

    fn from_fields(fields: Fields<'_>, _schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut id, mut kind) = (None, None);
        let mut attributes = serde_json::Map::new();
        for (name, value) in fields {
            match (name.as_ref(), value) {
                (_, Value::Null) => {}
                ("id", value) => id = Some(value),
                ("type", value) => kind = Some(text("type", value)?),
                ("", _) => return Err("an attribute needs a name, found an empty one".into()),
                (_, value) => {
                    attributes.insert(name.into_owned(), value.into_json());
                }
            }
        }
        let id = parse_id("id", id, ArticleId::new)?;
        let kind = require("type", kind)?;
        let article = Self::new(id, kind, attributes).map_err(|error| error.to_string())?;
        Ok((article, Vec::new()))
    }

    fn to_fields(&self, _schema: &Schema) -> Fields<'_> {
        let attributes = self.attributes().iter().filter(|(_, value)| !value.is_null());
        let attributes = attributes.map(|(name, value)| (name.as_str(), Value::from_json(value)));
        let embedding = self.embedding().map(|embedding| {
            ("embedding", Value::List(write_embedding(embedding).map(Value::Number).collect()))
        });
        article_fields(&self.id, Some(self.kind()), attributes.chain(embedding))
    }
}

fn article_fields<'a>(
    id: &'a ArticleId,
    kind: Option<&'a str>,
    attributes: impl Iterator<Item = (&'a str, Value<'a>)>,
) -> Fields<'a> {
    let mut fields: Fields<'_> = attributes.map(|(name, value)| (name.into(), value)).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let own = [("id", Some(id.as_str())), ("type", kind)];
    fields.splice(..0, own.into_iter().filter_map(|(name, text)| Some((name.into(), Value::text(text?)))));
    fields
}

/// In JSON Lines null removes an attribute. An empty cell keeps it: flat files have one in every row.
impl Wire for ArticlePatch {
    const FIELDS: &'static [Field] = &[field("id", true), field("type", false)];
    const FEATURES: bool = false;

    fn from_fields(fields: Fields<'_>, _schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut id, mut kind) = (None, None);
        let mut attributes = serde_json::Map::new();
        for (name, value) in fields {
            match (name.as_ref(), value) {
                ("id", value) => id = Some(value),
                ("type", value) => kind = Some(text("type", value)?.into_owned()),
                ("", _) => return Err("an attribute needs a name, found an empty one".into()),
                (_, value) => {
                    attributes.insert(name.into_owned(), value.into_json());
                }
            }
        }
        Ok((Self { id: parse_id("id", id, ArticleId::new)?, kind, attributes }, Vec::new()))
    }

    fn to_fields(&self, _schema: &Schema) -> Fields<'_> {
        let attributes = self.attributes.iter().map(|(name, value)| (name.as_str(), Value::from_json(value)));
        article_fields(&self.id, self.kind.as_deref(), attributes)
    }
}

impl Wire for Customer {
    const FIELDS: &'static [Field] = &[field("id", true)];
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut id, mut features) = (None, Value::Null);
        for (name, value) in fields {
            match (name.as_ref(), value) {
                ("id", Value::Null) => {}
                ("id", value) => id = Some(value),
                ("features", value) => features = value,
                _ => return Err(format!("unknown field {name:?}: a customer has \"id\" and \"features\"")),
            }
        }
        let id = parse_id("id", id, CustomerId::new)?;
        let (features, warnings) = features_from_field(features, schema)?;
        Ok((Self { id, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        vec![
            ("id".into(), Value::text(self.id.as_str())),
            ("features".into(), Value::Object(features_to_fields(&self.features, schema))),
        ]
    }
}

/// As for articles, null removes a feature.
impl Wire for CustomerPatch {
    const FIELDS: &'static [Field] = Customer::FIELDS;
    const FEATURES: bool = true;

    fn from_fields(mut fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let mut remove = Vec::new();
        for (name, value) in &mut fields {
            match value {
                Value::Null if name == "features" => {
                    return Err("field \"features\" must be an object, found null".into());
                }
                Value::Object(features) if name == "features" => features.retain(|(name, value)| {
                    let given = *value != Value::Null;
                    if !given {
                        remove.push(name.clone().into_owned());
                    }
                    given
                }),
                _ => {}
            }
        }
        let (Customer { id, features: set }, warnings) = Customer::from_fields(fields, schema)?;
        Ok((Self { id, set, remove }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        let mut features = features_to_fields(&self.set, schema);
        features.extend(self.remove.iter().map(|name| (name.into(), Value::Null)));
        vec![("id".into(), Value::text(self.id.as_str())), ("features".into(), Value::Object(features))]
    }
}

const OUTFIT_FIELDS: &[Field] =
    &[field("customer", true), Field { name: "articles", required: true, list: true }, field("split", false)];

/// The fields that outfits have, open or not, and the others.
#[derive(Default)]
struct OutfitFields<'a> {
    customer: Option<Value<'a>>,
    articles: Option<Value<'a>>,
    split: Option<Value<'a>>,
    features: Option<Value<'a>>,
    others: Fields<'a>,
}

impl<'a> OutfitFields<'a> {
    fn new(fields: Fields<'a>) -> Result<Self, String> {
        refuse_nul(&fields)?;
        let mut found = Self::default();
        for (name, value) in fields {
            let field = match name.as_ref() {
                "customer" => &mut found.customer,
                "articles" => &mut found.articles,
                "split" => &mut found.split,
                "features" => &mut found.features,
                _ => {
                    found.others.push((name, value));
                    continue;
                }
            };
            *field = Some(value).filter(|value| *value != Value::Null);
        }
        Ok(found)
    }
}

impl Wire for Outfit {
    const FIELDS: &'static [Field] = OUTFIT_FIELDS;
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let found = OutfitFields::new(fields)?;
        if let Some((name, _)) = found.others.first() {
            let expected = "an outfit has \"customer\", \"articles\", \"split\" and \"features\"";
            return Err(format!("unknown field {name:?}: {expected}"));
        }
        let customer = parse_id("customer", found.customer, CustomerId::new)?;
        let articles = match require("articles", found.articles)? {
            Value::List(ids) => ids.into_iter().map(article_in_list).collect::<Result<_, _>>()?,
            other => return Err(format!("field \"articles\" must be a list of ids, found {}", other.kind())),
        };
        let parse = |split: Cow<'_, str>| split.parse::<Split>().map_err(|error| error.to_string());
        let split = found.split.map(|split| parse(text("split", split)?)).transpose()?;
        let (features, warnings) = features_from_field(found.features.unwrap_or(Value::Null), schema)?;
        let outfit = Self::new(customer, articles, split, features).map_err(|error| error.to_string())?;
        Ok((outfit, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        let articles = self.articles().iter().map(|id| Value::text(id.as_str())).collect();
        outfit_fields(&self.customer, articles, self.split, &self.features, schema)
    }
}

/// An outfit to complete. An empty entry of `articles` is a blank: `null` or `""` in a list, nothing between two `|` in
/// a text. Its `split` is ignored, so that a file of whole outfits can be completed. Its other fields are features, in JSON
/// Lines as in flat files.
impl Wire for OpenOutfit {
    const FIELDS: &'static [Field] = OUTFIT_FIELDS;
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let found = OutfitFields::new(fields)?;
        let customer = parse_id("customer", found.customer, CustomerId::new)?;
        let entries = match require("articles", found.articles)? {
            Value::List(entries) => entries,
            Value::Text(text) => text.split('|').map(|entry| Value::text(entry.to_owned())).collect(),
            other => return Err(format!("field \"articles\" must be a list of ids, found {}", other.kind())),
        };
        let slot = |entry| match entry {
            Value::Null => Ok(Slot::Blank),
            Value::Text(text) if text.is_empty() => Ok(Slot::Blank),
            id => article_in_list(id).map(Slot::Article),
        };
        let slots = entries.into_iter().map(slot).collect::<Result<_, _>>()?;
        let slots = Slots::new(slots).map_err(|error| in_field("articles", error))?;
        let others = found.others.into_iter().filter(|(_, value)| *value != Value::Null);
        let columns = others.map(|(name, value)| (feature_name::<Self>(name), value)).collect();
        let features = add_features(found.features.unwrap_or(Value::Null), columns)?;
        let (features, warnings) = features_from_field(features, schema)?;
        Ok((Self { customer, slots, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        let slot = |slot: &'_ Slot| match slot {
            Slot::Article(id) => Value::text(id.as_str().to_owned()),
            Slot::Blank => Value::text(""),
        };
        let slots = self.slots.as_slice().iter().map(slot).collect();
        outfit_fields(&self.customer, slots, None, &self.features, schema)
    }
}

fn outfit_fields<'a>(
    customer: &'a CustomerId,
    articles: Vec<Value<'a>>,
    split: Option<Split>,
    features: &'a Features,
    schema: &Schema,
) -> Fields<'a> {
    let mut fields =
        vec![("customer".into(), Value::text(customer.as_str())), ("articles".into(), Value::List(articles))];
    if let Some(split) = split {
        fields.push(("split".into(), Value::text(split.as_str())));
    }
    let features = features_to_fields(features, schema);
    if !features.is_empty() {
        fields.push(("features".into(), Value::Object(features)));
    }
    fields
}

fn require<V>(field: &str, value: Option<V>) -> Result<V, String> {
    value.ok_or_else(|| format!("field {field:?} is missing"))
}

fn in_field(field: &str, error: impl Display) -> String {
    format!("field {field:?}: {error}")
}

fn text<'a>(field: &str, value: Value<'a>) -> Result<Cow<'a, str>, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(format!("field {field:?} must be a string, found {}", other.kind())),
    }
}

fn parse_id<'a, Id>(
    field: &str,
    value: Option<Value<'a>>,
    new: impl FnOnce(Cow<'a, str>) -> Result<Id, IdError>,
) -> Result<Id, String> {
    let text = id_text(format_args!("field {field:?}"), require(field, value)?)?;
    new(text).map_err(|error| in_field(field, error))
}

fn article_in_list(value: Value<'_>) -> Result<ArticleId, String> {
    let text = id_text(format_args!("each of \"articles\""), value)?;
    ArticleId::new(text).map_err(|error| in_field("articles", error))
}

/// The text of an id. Databases and data frames turn ids into numbers; a float may have lost digits.
fn id_text(what: impl Display, value: Value<'_>) -> Result<Cow<'_, str>, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string().into()),
        Value::Number(number) => Err(format!("{what} must be a string or a whole number, found {number}")),
        other => Err(format!("{what} must be a string or a whole number, found {}", other.kind())),
    }
}

/// Postgres stores no text with this character. The reader of features checks theirs.
fn refuse_nul(fields: &Fields<'_>) -> Result<(), String> {
    let has_nul = |(name, value): &&(Cow<'_, str>, Value<'_>)| {
        name != "features" && (name.contains('\0') || value.contains_nul())
    };
    match fields.iter().find(has_nul) {
        Some((name, _)) => Err(format!("field {name:?} contains the character NUL (\\u0000); remove it")),
        None => Ok(()),
    }
}

fn features_from_field(value: Value<'_>, schema: &Schema) -> Result<(Features, Vec<FeatureWarning>), String> {
    match value {
        Value::Null => Ok(Default::default()),
        Value::Object(fields) => read_features(fields, schema)
            .map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        other => Err(format!("field \"features\" must be an object, found {}", other.kind())),
    }
}

fn features_to_fields<'a>(features: &'a Features, schema: &Schema) -> Fields<'a> {
    let field = |(name, value): (&'a str, _)| {
        // Features stored under another schema are written as this one expects them. NaN is not given.
        let value = match schema.feature(name) {
            Some(feature) => feature.normalise(Cow::Borrowed(value)),
            None => Cow::Borrowed(value),
        };
        Some((name.into(), feature_to_json(value)?))
    };
    features.iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn read(json: &str) -> Result<OpenOutfit, String> {
        let Ok(Value::Object(fields)) = parse(json) else { panic!("{json} is no object") };
        OpenOutfit::from_fields(fields, &Schema::default_schema()).map(|(outfit, _)| outfit)
    }

    #[test]
    fn blanks_are_empty_entries() {
        let listed = read(r#"{"customer":"c","articles":["a",null,"b",""],"split":"train"}"#).unwrap();
        assert_eq!(listed.slots.blanks().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(read(r#"{"customer":"c","articles":"a||b|"}"#).unwrap(), listed);
        assert_eq!(read(r#"{"customer":"c","articles":""}"#).unwrap().slots.as_slice(), [Slot::Blank]);
        let whole = read(r#"{"customer":7,"articles":["a","b"],"features":{"occasion":"date"}}"#).unwrap();
        assert_eq!(whole.slots.blanks().count(), 0);
        assert_eq!(whole.customer.as_str(), "7");
        let fields = whole.to_fields(&Schema::default_schema());
        let written = serde_json::to_string(&Value::Object(fields)).unwrap();
        assert_eq!(written, r#"{"customer":"7","articles":["a","b"],"features":{"occasion":"date"}}"#);
    }

    #[test]
    fn features_may_be_fields_of_their_own() {
        let flat = read(
            r#"{"customer":"c","articles":["a",null],"occasion":"office","features.age":30,"fit":null}"#,
        );
        let nested = r#"{"customer":"c","articles":["a",null],"features":{"occasion":"office","age":30}}"#;
        assert_eq!(flat, read(nested));
        let both = r#"{"customer":"c","articles":["a"],"features":{"occasion":"office"},"age":30}"#;
        assert_eq!(read(both).unwrap().features.iter().count(), 2);
        let twice = r#"{"customer":"c","articles":["a"],"features":{"age":31},"age":30}"#;
        assert_eq!(read(twice).unwrap_err(), "feature \"age\" is given in two columns");
        let Ok(Value::Object(fields)) = parse(both) else { panic!("it is an object") };
        let refused = Outfit::from_fields(fields, &Schema::default_schema()).unwrap_err();
        assert!(refused.starts_with("unknown field \"age\": an outfit has "), "{refused}");
    }

    #[test]
    fn a_patch_keeps_what_it_removes() {
        let schema = Schema::default_schema();
        let again = |fields: Fields<'_>| serde_json::to_string(&Value::Object(fields)).unwrap();
        let fields = |json| match parse(json) {
            Ok(Value::Object(fields)) => fields,
            _ => panic!("{json} is no object"),
        };
        let article = r#"{"id":"a","type":"coat","colour":null,"stock":{"M":0,"S":null}}"#;
        let (patch, _) = ArticlePatch::from_fields(fields(article), &schema).unwrap();
        assert_eq!(again(patch.to_fields(&schema)), article);
        let customer = r#"{"id":"c","features":{"age":28,"fit":null}}"#;
        let (patch, _) = CustomerPatch::from_fields(fields(customer), &schema).unwrap();
        assert_eq!(again(patch.to_fields(&schema)), customer);
        let refused = |json| ArticlePatch::from_fields(fields(json), &schema).unwrap_err();
        assert_eq!(
            refused(r#"{"id":null,"price":1}"#),
            "field \"id\" must be a string or a whole number, found null"
        );
        assert_eq!(refused(r#"{"id":"a","type":null}"#), "field \"type\" must be a string, found null");
        let refused =
            CustomerPatch::from_fields(fields(r#"{"id":"c","features":null}"#), &schema).unwrap_err();
        assert_eq!(refused, "field \"features\" must be an object, found null");
    }

    #[test]
    fn an_invalid_outfit_says_why() {
        let message = |json: &str| read(json).unwrap_err();
        assert_eq!(message(r#"{"articles":["a"]}"#), "field \"customer\" is missing");
        assert_eq!(
            message(r#"{"customer":"c","articles":["a","a"]}"#),
            "field \"articles\": article a appears twice in the outfit"
        );
        assert_eq!(
            message(r#"{"customer":"c","articles":"||||||||"}"#),
            "field \"articles\": an outfit has at most 8 slots, found 9"
        );
        assert!(
            message(r#"{"customer":"c","articles":{}}"#).ends_with("must be a list of ids, found an object")
        );
    }
}
