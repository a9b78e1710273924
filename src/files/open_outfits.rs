//! Outfits that are to be completed, as rows of files: `customer`, `articles`, and features like any outfit's.
//!
//! In `articles` an empty entry is a blank: `null` or `""` in a list, nothing between two `|` in a text. Without one
//! more article is asked for, so that a file of whole outfits can be completed as it is; its `split` is read over.

use super::{
    features::{read_features, write_features},
    known::{Check, Context, Known, Standing},
    table::{Field, Table, Wire, given, id_text, in_field, one, refuse_nul},
    value::{Fields, Value},
};
use crate::domain::{ArticleId, CustomerId, FeatureWarning, OpenOutfit, Schema, Slot, Slots};

impl Table for OpenOutfit {
    const NAME: &'static str = "outfits";
}

impl Wire for OpenOutfit {
    const FIELDS: &'static [Field] =
        &[one("customer", true), Field { name: "articles", required: true, list: true }, one("split", false)];
    const FEATURES: bool = true;

    fn from_fields(fields: Fields<'_>, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let (mut customer, mut articles, mut features) = (None, None, Value::Null);
        for (name, value) in fields {
            match (name.as_ref(), value) {
                ("features", value) => features = value,
                ("customer" | "articles", Value::Null) | ("split", _) => {}
                ("customer", value) => customer = Some(id_text("field \"customer\"", value)?),
                ("articles", value) => articles = Some(slots(value)?),
                _ => {
                    return Err(format!(
                        "unknown field {name:?}: an outfit to complete has \"customer\", \"articles\" and \"features\""
                    ));
                }
            }
        }
        let customer =
            CustomerId::new(given("customer", customer)?).map_err(|error| in_field("customer", error))?;
        let slots = Slots::new(given("articles", articles)?).map_err(|error| in_field("articles", error))?;
        let (features, warnings) = read_features(features, schema)?;
        Ok((Self { customer, slots, features }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields<'_> {
        let slot = |slot: &'_ Slot| match slot {
            Slot::Article(id) => Value::text(id.as_str().to_owned()),
            Slot::Blank => Value::text(""),
        };
        let slots = self.slots.as_slice().iter().map(slot).collect();
        let mut fields = vec![
            ("customer".into(), Value::text(self.customer.as_str())),
            ("articles".into(), Value::List(slots)),
        ];
        let features = write_features(&self.features, schema);
        if !features.is_empty() {
            fields.push(("features".into(), Value::Object(features)));
        }
        fields
    }
}

impl Check for OpenOutfit {
    /// Each stands for itself: the same outfit may be completed twice.
    fn check(&self, _context: Context<'_>, _known: &mut Known) -> Result<Standing, String> {
        Ok(Standing::New)
    }
}

fn slots(value: Value<'_>) -> Result<Vec<Slot>, String> {
    let entries = match value {
        Value::List(entries) => entries,
        Value::Text(text) => text.split('|').map(|entry| Value::text(entry.to_owned())).collect(),
        other => return Err(format!("field \"articles\" must be a list of ids, found {}", other.kind())),
    };
    entries.into_iter().map(slot).collect()
}

fn slot(entry: Value<'_>) -> Result<Slot, String> {
    match entry {
        Value::Null => Ok(Slot::Blank),
        Value::Text(text) if text.is_empty() => Ok(Slot::Blank),
        id => {
            let id = ArticleId::new(id_text("each of \"articles\"", id)?);
            id.map(Slot::Article).map_err(|error| in_field("articles", error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::json_text::parse;

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
    fn what_is_no_outfit_is_said_so() {
        let said = |json: &str| read(json).unwrap_err();
        assert_eq!(said(r#"{"articles":["a"]}"#), "field \"customer\" is missing");
        assert_eq!(
            said(r#"{"customer":"c","articles":["a","a"]}"#),
            "field \"articles\": article a stands in it twice: an outfit is a set"
        );
        assert_eq!(
            said(r#"{"customer":"c","articles":"||||||||"}"#),
            "field \"articles\": an outfit has 1 to 8 slots, this one has 9"
        );
        assert!(
            said(r#"{"customer":"c","articles":{}}"#).ends_with("must be a list of ids, found an object")
        );
    }
}
