//! Articles, customers and outfits as tables: the fields of a row as a domain value, and a domain value as fields.

use std::borrow::Cow;

use atelier_core::domain::{
    Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, FeatureWarning, Features,
    OpenOutfit, Outfit, Schema, Slot, Slots, Split, feature_to_json, read_features,
};
use serde_json::Value;

use super::{
    Table,
    columns::{add_features, feature_name},
    json::{Fields, describe_type, make_canonical},
    seen::{Context, Repeat, Seen},
    table::{Field, collect_fields, field, id_text, in_field, parse_id, refuse_nul, require, take, text},
};

impl Table for Article {
    const NAME: &'static str = "articles";
    const FIELDS: &'static [Field] = &[field("id", true), field("type", true)];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        fields.retain(|_, value| !value.is_null());
        let (ArticlePatch { id, kind, attributes }, warnings) = ArticlePatch::from_fields(fields, schema)?;
        let article = Self::new(id, require("type", kind)?, attributes).map_err(|error| error.to_string())?;
        Ok((article, warnings))
    }

    fn to_fields(&self, _schema: &Schema) -> Fields {
        let mut attributes = self.kept_attributes().into_owned();
        attributes.retain(|_, value| !value.is_null());
        article_fields(&self.id, Some(self.kind()), attributes)
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        self.normalise().map_err(|error| format!("{error} (article {:?})", self.id))?;
        let variants = ids(self.variant_ids());
        seen.enter_article(&self.id, Some(&variants), context)
    }

    fn article_id(&self) -> Option<&ArticleId> {
        Some(&self.id)
    }
}

fn article_fields(id: &ArticleId, kind: Option<&str>, mut attributes: Fields) -> Fields {
    attributes.values_mut().for_each(make_canonical);
    attributes.insert("id".into(), id.as_str().into());
    attributes.extend(kind.map(|kind| ("type".into(), kind.into())));
    attributes
}

/// In JSON Lines null removes an attribute. An empty cell keeps it: flat files have one in every row.
impl Table for ArticlePatch {
    const NAME: &'static str = Article::NAME;
    const FIELDS: &'static [Field] = &[field("id", true), field("type", false)];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, _schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let kind = fields.remove("type").map(|kind| text("type", kind)).transpose()?;
        let id = fields.remove("id");
        if fields.contains_key("") {
            return Err("an attribute needs a name, found an empty one".into());
        }
        fields.values_mut().for_each(make_canonical);
        Ok((Self { id: parse_id("id", id, ArticleId::new)?, kind, attributes: fields }, Vec::new()))
    }

    fn to_fields(&self, _schema: &Schema) -> Fields {
        article_fields(&self.id, self.kind.as_deref(), self.attributes.clone())
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        let variants = self.variant_ids().map(ids);
        seen.change_article(&self.id, variants.as_deref(), context)
    }

    fn article_id(&self) -> Option<&ArticleId> {
        Some(&self.id)
    }
}

impl Table for Customer {
    const NAME: &'static str = "customers";
    const FIELDS: &'static [Field] = &[field("id", true)];
    const FEATURES: bool = true;

    fn from_fields(mut fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let [id, features] = ["id", "features"].map(|name| take(&mut fields, name));
        if let Some(name) = fields.keys().next() {
            return Err(format!("unknown field {name:?}: a customer has \"id\" and \"features\""));
        }
        let id = parse_id("id", id, CustomerId::new)?;
        let (features, warnings) = features_from_field(features, schema)?;
        Ok((Self { id, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields {
        customer_fields(&self.id, features_to_fields(&self.features, schema))
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        seen.enter_customer(self.id.as_str(), context)
    }
}

fn customer_fields(id: &CustomerId, features: Fields) -> Fields {
    [("id".into(), id.as_str().into()), ("features".into(), features.into())].into_iter().collect()
}

/// As for articles, null removes a feature.
impl Table for CustomerPatch {
    const NAME: &'static str = Customer::NAME;
    const FIELDS: &'static [Field] = Customer::FIELDS;
    const FEATURES: bool = true;

    fn from_fields(mut fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let mut remove = Vec::new();
        match fields.get_mut("features") {
            Some(Value::Null) => return Err("field \"features\" must be an object, found null".into()),
            Some(Value::Object(features)) => {
                remove.extend(
                    features.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()),
                );
                features.retain(|_, value| !value.is_null());
            }
            _ => {}
        }
        let (Customer { id, features: set }, warnings) = Customer::from_fields(fields, schema)?;
        Ok((Self { id, set, remove }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields {
        let mut features = features_to_fields(&self.set, schema);
        features.extend(self.remove.iter().map(|name| (name.clone(), Value::Null)));
        customer_fields(&self.id, features)
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        seen.enter_customer(self.id.as_str(), context)
    }
}

/// Names an article or a customer that is deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Deletion<Id>(pub Id);

macro_rules! deletion {
    ($of:ty, $id:ident, $enter:ident) => {
        impl Table for Deletion<$id> {
            const NAME: &'static str = <$of>::NAME;
            const FIELDS: &'static [Field] = &[field("id", true)];
            const FEATURES: bool = false;

            fn from_fields(mut fields: Fields, _: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
                let id = take(&mut fields, "id");
                fields.retain(|_, value| !value.is_null());
                if let Some(name) = fields.keys().next() {
                    return Err(format!("unknown field {name:?}: a row to delete has an \"id\" only"));
                }
                Ok((Self(parse_id("id", id, $id::new)?), Vec::new()))
            }

            fn to_fields(&self, _: &Schema) -> Fields {
                collect_fields([("id", Some(self.0.as_str().into()))])
            }

            fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
                seen.$enter(self.0.as_str(), context)
            }
        }
    };
}

deletion!(Article, ArticleId, delete_article);
deletion!(Customer, CustomerId, enter_customer);

/// The fields that outfits have, open or not, and the others.
struct OutfitFields {
    customer: CustomerId,
    articles: Value,
    split: Option<Value>,
    features: Option<Value>,
    others: Fields,
}

impl OutfitFields {
    const NAMES: &[Field] = &[
        field("customer", true),
        Field { name: "articles", required: true, list: true },
        field("split", false),
    ];

    fn read(mut fields: Fields) -> Result<Self, String> {
        refuse_nul(&fields)?;
        let [customer, articles, split, features] =
            ["customer", "articles", "split", "features"].map(|name| take(&mut fields, name));
        Ok(Self {
            customer: parse_id("customer", customer, CustomerId::new)?,
            articles: require("articles", articles)?,
            split,
            features,
            others: fields,
        })
    }

    fn write(
        customer: Option<&CustomerId>,
        articles: impl Iterator<Item = Value>,
        split: Option<Split>,
        features: &Features,
        schema: &Schema,
    ) -> Fields {
        let features = features_to_fields(features, schema);
        collect_fields([
            ("customer", customer.map(|customer| customer.as_str().into())),
            ("articles", Some(articles.collect())),
            ("split", split.map(|split| split.as_str().into())),
            ("features", (!features.is_empty()).then(|| features.into())),
        ])
    }
}

impl Table for Outfit {
    const NAME: &'static str = "outfits";
    const FIELDS: &'static [Field] = OutfitFields::NAMES;
    const FEATURES: bool = true;

    fn from_fields(fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let OutfitFields { customer, articles, split, features, others } = OutfitFields::read(fields)?;
        if let Some(name) = others.keys().next() {
            let expected = "an outfit has \"customer\", \"articles\", \"split\" and \"features\"";
            return Err(format!("unknown field {name:?}: {expected}"));
        }
        let articles = ids_in_list(articles)?;
        schema.outfit_size().check(articles.len()).map_err(|error| error.to_string())?;
        let articles = articles.into_iter().map(article_in_list).collect::<Result<_, _>>()?;
        let split = split.map(|split| text("split", split)?.parse::<Split>()).transpose()?;
        let (features, warnings) = features_from_field(features, schema)?;
        let outfit = Self::new(customer, articles, split, features).map_err(|error| error.to_string())?;
        Ok((outfit, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields {
        let articles = self.articles().iter().map(|id| id.as_str().into());
        OutfitFields::write(Some(&self.customer), articles, self.split, &self.features, schema)
    }

    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        let articles = seen.find_articles(self)?;
        self.set_articles(articles).map_err(|error| error.to_string())?;
        // Outfits are the same if their customer, set of articles and features are, as in the database.
        let mut articles: Vec<&str> = self.articles().iter().map(ArticleId::as_str).collect();
        articles.sort_unstable();
        let same = (self.customer.as_str(), articles, features_to_fields(&self.features, context.schema));
        Ok(seen.enter_outfit(&same, self.split, context))
    }
}

/// An outfit to complete. An empty entry of `articles` is a blank: `null` or `""` in a list, nothing between two `|` in
/// a text. Its `split` is ignored, so that a file of whole outfits can be completed. Its other fields are features, in JSON
/// Lines as in flat files.
impl Table for OpenOutfit {
    const NAME: &'static str = Outfit::NAME;
    const FIELDS: &'static [Field] = OutfitFields::NAMES;
    const FEATURES: bool = true;

    fn from_fields(fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let OutfitFields { customer, mut articles, features, others, .. } = OutfitFields::read(fields)?;
        if let Value::String(text) = &articles {
            articles = text.split('|').collect();
        }
        let slot = |entry: Value| match entry.as_str() {
            None if entry.is_null() => Ok(Slot::Blank),
            Some("") => Ok(Slot::Blank),
            _ => article_in_list(entry).map(Slot::Article),
        };
        let slots = ids_in_list(articles)?.into_iter().map(slot).collect::<Result<Vec<_>, _>>()?;
        let size = schema.outfit_size();
        size.check_slots(slots.len()).map_err(|error| in_field("articles", error))?;
        let slots = Slots::new(slots).map_err(|error| in_field("articles", error))?;
        let others = others.into_iter().filter(|(_, value)| !value.is_null());
        let columns = others.map(|(name, value)| (feature_name::<Self>(name), value));
        let features = add_features(features.unwrap_or_default(), columns)?;
        let (features, warnings) = features_from_field(Some(features), schema)?;
        Ok((Self { customer: Some(customer), slots, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields {
        let slots = self.slots.as_slice().iter();
        let slots = slots.map(|slot| slot.article().map_or("", ArticleId::as_str).into());
        OutfitFields::write(self.customer.as_ref(), slots, None, &self.features, schema)
    }
}

/// Ids that are none are refused where the variants are read.
fn ids<'a>(ids: impl Iterator<Item = Cow<'a, str>>) -> Vec<ArticleId> {
    ids.filter_map(|id| ArticleId::new(id).ok()).collect()
}

fn ids_in_list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(ids) => Ok(ids),
        other => Err(format!("field \"articles\" must be a list of ids, found {}", describe_type(&other))),
    }
}

fn article_in_list(value: Value) -> Result<ArticleId, String> {
    let text = id_text(format_args!("each of \"articles\""), value)?;
    ArticleId::new(text).map_err(|error| in_field("articles", error))
}

fn features_from_field(
    value: Option<Value>,
    schema: &Schema,
) -> Result<(Features, Vec<FeatureWarning>), String> {
    match value {
        None => Ok(Default::default()),
        Some(Value::Object(fields)) => read_features(fields, schema)
            .map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Some(other) => Err(format!("field \"features\" must be an object, found {}", describe_type(&other))),
    }
}

fn features_to_fields(features: &Features, schema: &Schema) -> Fields {
    let field = |(name, value): (&str, _)| {
        // Features stored under another schema are written as this one expects them. NaN is not given.
        let value = match schema.feature(name) {
            Some(feature) => feature.normalise(Cow::Borrowed(value)),
            None => Cow::Borrowed(value),
        };
        Some((name.to_owned(), feature_to_json(&value)?))
    };
    features.iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::parse, json_line};

    fn fields(json: &str) -> serde_json::Map<String, Value> {
        let Ok(Value::Object(fields)) = parse(json) else { panic!("{json} is no object") };
        fields
    }

    fn read(json: &str) -> Result<OpenOutfit, String> {
        OpenOutfit::from_fields(fields(json), &Schema::default_schema()).map(|(outfit, _)| outfit)
    }

    #[test]
    fn blanks_are_empty_entries() {
        let listed = read(r#"{"customer":"c","articles":["a",null,"b",""],"split":"train"}"#).unwrap();
        assert_eq!(listed.slots.blanks().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(read(r#"{"customer":"c","articles":"a||b|"}"#).unwrap(), listed);
        assert_eq!(read(r#"{"customer":"c","articles":""}"#).unwrap().slots.as_slice(), [Slot::Blank]);
        let whole = read(r#"{"customer":7,"articles":["a","b"],"features":{"occasion":"date"}}"#).unwrap();
        assert_eq!(whole.slots.blanks().count(), 0);
        assert_eq!(whole.customer, Some(CustomerId::new("7").unwrap()));
        let written = json_line(&whole, &Schema::default_schema());
        assert_eq!(
            written,
            "{\"customer\":\"7\",\"articles\":[\"a\",\"b\"],\"features\":{\"occasion\":\"date\"}}\n"
        );
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
        let refused = Outfit::from_fields(fields(both), &Schema::default_schema()).unwrap_err();
        assert!(refused.starts_with("unknown field \"age\": an outfit has "), "{refused}");
    }

    #[test]
    fn a_patch_keeps_what_it_removes() {
        let schema = Schema::default_schema();
        let article = r#"{"id":"a","type":"coat","colour":null,"stock":{"M":0,"S":null}}"#;
        let (patch, _) = ArticlePatch::from_fields(fields(article), &schema).unwrap();
        assert_eq!(json_line(&patch, &schema).trim_end(), article);
        let customer = r#"{"id":"c","features":{"age":28,"fit":null}}"#;
        let (patch, _) = CustomerPatch::from_fields(fields(customer), &schema).unwrap();
        assert_eq!(json_line(&patch, &schema).trim_end(), customer);
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
}
