//! What columns a file needs, gathered before it is written.

use std::{collections::BTreeMap, marker::PhantomData};

use super::{Table, flat::flatten, value::Value};
use crate::domain::Schema;

/// The columns that a CSV or Parquet file of some rows needs. JSON Lines has none: there a shape that
/// has seen nothing will do.
#[derive(Debug, Clone)]
pub struct Shape<T> {
    schema: Schema,
    seen: BTreeMap<String, Kind>,
    table: PhantomData<fn() -> T>,
}

/// The narrowest kind of column that holds all values seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bool,
    /// Whole numbers that are floats as well.
    Integer,
    /// Whole numbers, some of them too large to be floats.
    Long,
    Double,
    Texts,
    /// Anything, as JSON.
    Json,
}

/// Up to here every whole number is a float.
const EXACT: u64 = 1 << 53;

/// A column of a flat file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

impl<T: Table> Shape<T> {
    pub fn new(schema: &Schema) -> Self {
        Self { schema: schema.clone(), seen: BTreeMap::new(), table: PhantomData }
    }

    pub fn see(&mut self, row: &T) {
        for (name, value) in flatten::<T>(row.to_fields(&self.schema)) {
            let Some(kind) = Kind::of(&value) else { continue };
            match self.seen.get_mut(name.as_ref()) {
                Some(seen) => *seen = seen.with(kind),
                None => {
                    self.seen.insert(name.into_owned(), kind);
                }
            }
        }
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The table's own columns, then the features in the schema's order, then everything else by name.
    pub(super) fn columns(&self) -> Vec<Column> {
        let own = T::FIELDS.iter().map(|field| Column {
            name: field.name.to_owned(),
            kind: if field.list { Kind::Texts } else { Kind::Text },
            required: field.required,
        });
        let place = |name: &str| {
            let known = self.schema.features().iter().position(|feature| T::FEATURES && feature.name == name);
            known.unwrap_or(usize::MAX)
        };
        let mut others: Vec<Column> = self
            .seen
            .iter()
            .filter(|(name, _)| T::FIELDS.iter().all(|field| field.name != *name))
            .map(|(name, kind)| Column { name: name.clone(), kind: *kind, required: false })
            .collect();
        others.sort_by_key(|column| place(&column.name));
        own.chain(others).collect()
    }
}

impl Kind {
    /// `None` for a null, which fits every column.
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Double,
            Value::Number(number) => match number.as_i64() {
                Some(whole) if whole.unsigned_abs() <= EXACT => Self::Integer,
                Some(_) => Self::Long,
                None => Self::Json,
            },
            Value::Text(_) => Self::Text,
            Value::List(_) if value.is_texts() => Self::Texts,
            Value::List(_) | Value::Object(_) => Self::Json,
        })
    }

    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Integer, Self::Long) | (Self::Long, Self::Integer) => Self::Long,
            (Self::Integer, Self::Double) | (Self::Double, Self::Integer) => Self::Double,
            _ => Self::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{Customer, CustomerId, FeatureValue, Features},
        files::json_text::parse,
    };

    #[test]
    fn a_column_is_as_narrow_as_its_values_allow() {
        let kind = |values: &[&str]| {
            values.iter().filter_map(|json| Kind::of(&parse(json).unwrap())).reduce(Kind::with)
        };
        assert_eq!(kind(&["1", "null", "2"]), Some(Kind::Integer));
        assert_eq!(kind(&["1", "2.5"]), Some(Kind::Double));
        assert_eq!(kind(&["1", "10000000000000001"]), Some(Kind::Long));
        assert_eq!(kind(&["1.5", "10000000000000001"]), Some(Kind::Json));
        assert_eq!(kind(&["18446744073709551615"]), Some(Kind::Json));
        assert_eq!(kind(&["[]", "[\"a\"]"]), Some(Kind::Texts));
        assert_eq!(kind(&["[1]"]), Some(Kind::Json));
        assert_eq!(kind(&["\"a\"", "1"]), Some(Kind::Json));
        assert_eq!(kind(&["true", "false"]), Some(Kind::Bool));
        assert_eq!(kind(&["null"]), None);
    }

    #[test]
    fn columns_follow_the_schema_and_then_the_alphabet() {
        let mut shape = Shape::new(&Schema::default_schema());
        let features: Features = ["zeal", "country", "gender", "id"]
            .map(|name| (name.to_owned(), FeatureValue::Text("x".into())))
            .into_iter()
            .collect();
        shape.see(&Customer { id: CustomerId::new("c").unwrap(), features });
        let names: Vec<String> = shape.columns().into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["id", "gender", "country", "features.id", "zeal"]);
    }
}
