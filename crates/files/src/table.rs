//! A table in files: the fields of its rows, and the checks of a row. The modules of the tables implement it.

use std::fmt::Display;

use atelier_core::domain::{ArticleId, FeatureWarning, IdError, Schema};
use serde_json::Value;

use super::{
    json::{Fields, contains_nul, describe_type},
    seen::{Context, Repeat, Seen},
};

/// A table in files: articles, customers, outfits, changes to articles or customers, or outfits to complete.
pub trait Table: Sized + Clone {
    /// The name of the table and its files: `articles`, `customers` or `outfits`.
    const NAME: &'static str;
    /// The table's fields in canonical order, without `features`.
    const FIELDS: &'static [Field];
    /// Whether the other columns of a flat file are features; otherwise they are attributes.
    const FEATURES: bool;

    fn from_fields(fields: Fields, schema: &Schema) -> Result<(Self, Vec<FeatureWarning>), String>;

    fn to_fields(&self, schema: &Schema) -> Fields;

    /// Checks the row against the rows before it, and what a row may hold only once it is stored.
    fn check(&mut self, _: Context<'_>, _: &mut Seen) -> Result<Option<Repeat>, String> {
        Ok(None)
    }

    /// That of an article, or of a variant that changes.
    fn article_id(&self) -> Option<&ArticleId> {
        None
    }
}

/// A field of a table, which has its own column in every flat file.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    /// Whether it is a list of ids.
    pub list: bool,
}

pub(super) const fn field(name: &'static str, required: bool) -> Field {
    Field { name, required, list: false }
}

/// Takes out a field; none if it is null.
pub(super) fn take(fields: &mut Fields, name: &str) -> Option<Value> {
    fields.remove(name).filter(|value| !value.is_null())
}

pub(super) fn require<V>(field: &str, value: Option<V>) -> Result<V, String> {
    value.ok_or_else(|| format!("field {field:?} is missing"))
}

pub(super) fn in_field(field: &str, error: impl Display) -> String {
    format!("field {field:?}: {error}")
}

pub(super) fn text(field: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("field {field:?} must be a string, found {}", describe_type(&other))),
    }
}

pub(super) fn parse_id<Id>(
    field: &str,
    value: Option<Value>,
    new: impl FnOnce(String) -> Result<Id, IdError>,
) -> Result<Id, String> {
    let text = id_text(format_args!("field {field:?}"), require(field, value)?)?;
    new(text).map_err(|error| in_field(field, error))
}

/// The text of an id. Databases and data frames turn ids into numbers; a float may have lost digits.
pub(super) fn id_text(what: impl Display, value: Value) -> Result<String, String> {
    let found = match value {
        Value::String(text) => return Ok(text),
        Value::Number(number) if !number.is_f64() => return Ok(number.to_string()),
        Value::Number(number) => number.to_string(),
        other => describe_type(&other).to_owned(),
    };
    Err(format!("{what} must be a string or a whole number, found {found}"))
}

/// The id in fields that may be bad.
pub(super) fn readable_id(fields: &Fields) -> Vec<String> {
    fields.get("id").and_then(|id| id_text("", id.clone()).ok()).into_iter().collect()
}

/// Postgres stores no text with this character. The reader of features checks theirs.
pub(super) fn refuse_nul(fields: &Fields) -> Result<(), String> {
    let has_nul = |(name, value): &(&String, &Value)| {
        *name != "features" && (name.contains('\0') || contains_nul(value))
    };
    match fields.iter().find(has_nul) {
        Some((name, _)) => Err(format!("field {name:?} contains the character NUL (\\u0000); remove it")),
        None => Ok(()),
    }
}

/// The fields that have a value.
pub(super) fn collect_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Fields {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
