//! Outfits whose blanks customers filled with suggestions, as a table: only exports have it, and only training reads it.

use atelier_core::domain::{FeatureWarning, Outfit, Schema, Timestamp};

use super::{
    Table,
    json::Fields,
    orders::read_time,
    seen::{Context, Repeat, Seen},
    table::{Field, field, take},
};

/// An outfit as a customer accepted it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedOutfit {
    pub outfit: Outfit,
    /// When its last blank was filled.
    pub time: Timestamp,
}

impl Table for AcceptedOutfit {
    const NAME: &'static str = "accepted";
    const FIELDS: &'static [Field] = &[
        field("customer", true),
        Field { name: "articles", required: true, list: true },
        field("time", true),
    ];
    const FEATURES: bool = false;

    fn from_fields(mut fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String> {
        let time = read_time(take(&mut fields, "time").unwrap_or_default())?;
        let (outfit, warnings) = Outfit::from_fields(fields, schema)?;
        Ok((Self { outfit, time }, warnings))
    }

    fn to_fields(&self, schema: &Schema) -> Fields {
        let mut fields = self.outfit.to_fields(schema);
        fields.insert("time".to_owned(), self.time.to_string().into());
        fields
    }

    /// An outfit may be saved and accepted.
    fn check(&mut self, context: Context<'_>, seen: &mut Seen) -> Result<Option<Repeat>, String> {
        self.outfit.check(context, seen).map(|_| None)
    }
}
