//! Looks as a table: a row is a look with its articles, or one article of a look at its position. What else a look has, only the
//! service knows.

use atelier_core::domain::{FeatureWarning, LookName, Schema};
use serde_json::Value;

use super::{
    Table,
    json::Fields,
    table::{Field, field, parse_id, refuse_nul, take},
};

/// A row of looks.
#[derive(Debug, Clone, PartialEq)]
pub struct LookRow {
    pub look: LookName,
    pub fields: Fields,
}

impl Table for LookRow {
    const NAME: &'static str = "looks";
    const FIELDS: &'static [Field] = &[
        field("look", true),
        Field { name: "articles", required: false, list: true },
        field("article", false),
        field("variant", false),
        field("position", false),
    ];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, _: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        refuse_nul(&fields)?;
        let look = parse_id("look", take(&mut fields, "look"), LookName::new)?;
        fields.retain(|_, value| !value.is_null() && value != "");
        Ok((Self { look, fields }, Vec::new()))
    }

    fn to_fields(&self, _: &Schema) -> Fields {
        let mut fields = self.fields.clone();
        fields.insert("look".to_owned(), Value::from(self.look.as_str()));
        fields
    }
}
