//! The columns of flat files (CSV, Parquet): where a column belongs in a row's fields, and which columns a file needs.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    marker::PhantomData,
    mem,
};

use atelier_core::domain::Schema;
use serde_json::{Value, map::Entry};

use super::{
    Format, Table,
    error::Misfit,
    header::{map_flag, propose},
    json::{Fields, is_texts},
    row::LONGEST,
    table::{Field, readable_id},
};

/// The most cells of a record: above any sensible table, so that a line of commas takes little memory.
pub(super) const MOST_CELLS: usize = 1 << 16;
const FEATURES: &str = "features";
const PREFIX: &str = "features.";
/// Cut at the beginning and end of a column's name.
pub(super) const PADDING: [char; 3] = [' ', '\t', '\u{a0}'];
/// The most columns in a message.
const SHOWN: usize = 20;

/// Where the value of a column belongs in a row's fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// In the field of this name: one of the table's, or an attribute.
    Field(String),
    Feature(String),
}

impl Target {
    pub(super) fn from_column<T: Table>(column: &str) -> Self {
        if !T::FEATURES || is_own::<T>(column) {
            Self::Field(column.to_owned())
        } else {
            Self::Feature(column.strip_prefix(PREFIX).unwrap_or(column).to_owned())
        }
    }
}

/// Whether it is a field of the table, and not a feature.
fn is_own<T: Table>(column: &str) -> bool {
    column == FEATURES || T::FIELDS.iter().any(|field| field.name == column)
}

/// The targets of the columns of a header.
pub(super) fn find_targets<T: Table>(columns: &[&str], schema: &Schema) -> Result<Vec<Target>, Misfit> {
    let (mut targets, mut seen) = (Vec::new(), HashSet::new());
    for (number, column) in (1..).zip(columns) {
        if column.is_empty() {
            let reason = format!("column {number} has no name; name it or remove it (pandas: `index=False`)");
            return Err(reason.into());
        }
        let target = Target::from_column::<T>(column);
        if !seen.insert(target.clone()) {
            return Err(format!("column {column:?} appears twice").into());
        }
        targets.push(target);
    }
    let missing: Vec<&str> = missing::<T>(columns).collect();
    if missing.is_empty() {
        return Ok(targets);
    }
    let quote = |names: &[&str], between: &str| {
        names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(between)
    };
    let needed = if missing.len() > 1 { "the columns" } else { "a column" };
    let more = if columns.len() > SHOWN { ", …" } else { "" };
    let mut reason = format!(
        "{} need {needed} {}, found {}{more}",
        T::NAME,
        quote(&missing, " and "),
        quote(&columns[..columns.len().min(SHOWN)], ", ")
    );
    let proposals = propose::<T>(columns, schema);
    for name in missing {
        if proposals.iter().all(|(_, to)| *to != name) {
            let _ = write!(reason, "; if one of them is the {name}, say so: --map {}.COLUMN={name}", T::NAME);
        }
    }
    let flags = proposals.into_iter().map(|(from, to)| map_flag::<T>(from, to)).collect();
    Err(Misfit { reason, flags })
}

/// The columns that the table needs and the header lacks.
pub(super) fn missing<T: Table>(columns: &[&str]) -> impl Iterator<Item = &'static str> {
    let needed = T::FIELDS.iter().filter(|field| field.required).map(|field| field.name);
    needed.filter(|name| !columns.contains(name))
}

/// Collects the cells of a flat row into its fields.
#[derive(Debug, Default)]
pub(super) struct RowFields {
    fields: Fields,
    features: Fields,
}

impl RowFields {
    /// `inside` is the path of a value in an object of the target.
    pub(super) fn insert(&mut self, target: &Target, inside: &[String], value: Value) {
        match target {
            _ if value.is_null() => {}
            Target::Field(name) => insert(&mut self.fields, name, inside, value),
            Target::Feature(name) => insert(&mut self.features, name, inside, value),
        }
    }

    pub(super) fn readable_id(&self) -> Vec<String> {
        readable_id(&self.fields)
    }

    pub(super) fn into_fields<T: Table>(mut self) -> Result<Fields, String> {
        if T::FEATURES {
            let nested = self.fields.remove(FEATURES).unwrap_or_default();
            self.fields.insert(FEATURES.into(), add_features(nested, self.features)?);
        }
        Ok(self.fields)
    }
}

/// The field `features` with those that have columns of their own.
pub(super) fn add_features(
    field: Value,
    columns: impl IntoIterator<Item = (String, Value)>,
) -> Result<Value, String> {
    let mut features = match field {
        Value::Null => Fields::new(),
        Value::Object(features) => features,
        // Not an object, which the table refuses.
        other => return Ok(other),
    };
    for (name, value) in columns {
        match features.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(value)),
            Entry::Occupied(entry) => {
                return Err(format!("feature {:?} is given in two columns", entry.key()));
            }
        }
    }
    Ok(features.into())
}

fn insert(fields: &mut Fields, name: &str, inside: &[String], value: Value) {
    if let [inner, deeper @ ..] = inside {
        if let Value::Object(nested) = fields.entry(name).or_insert_with(|| Fields::new().into()) {
            insert(nested, inner, deeper, value);
        }
    } else {
        fields.insert(name.to_owned(), value);
    }
}

/// A row's fields as flat columns. Features have their own columns, named after them unless the table has a field of
/// that name.
pub(super) fn flatten<T: Table>(mut fields: Fields) -> impl Iterator<Item = (String, Value)> {
    let features = match fields.get_mut(FEATURES) {
        Some(Value::Object(features)) if T::FEATURES => mem::take(features),
        _ => Fields::new(),
    };
    let features = features.into_iter().map(|(name, value)| (column_name::<T>(name), value));
    let own = fields.into_iter().filter(|(name, _)| !T::FEATURES || name != FEATURES);
    own.chain(features)
}

/// The feature of a column that is not a field of the table.
pub(super) fn feature_name<T: Table>(column: String) -> String {
    match Target::from_column::<T>(&column) {
        Target::Feature(name) => name,
        Target::Field(_) => column,
    }
}

fn column_name<T: Table>(feature: String) -> String {
    if is_own::<T>(&feature) || feature.starts_with(PREFIX) { format!("{PREFIX}{feature}") } else { feature }
}

/// The columns that a CSV or Parquet file needs for its rows. JSON Lines has no columns, so an empty set is enough.
#[derive(Debug, Clone)]
pub struct TableColumns<T> {
    schema: Schema,
    seen: BTreeMap<String, Kind>,
    table: PhantomData<fn() -> T>,
}

/// The narrowest type of column that fits all its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bool,
    /// Whole numbers that a float represents exactly.
    Integer,
    /// Whole numbers, some of which are too large for a float.
    Long,
    Double,
    Texts,
    /// Any values, as JSON.
    Json,
}

/// Up to here a float represents every whole number.
const EXACT: u64 = 1 << 53;

/// A column of a flat file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

impl<T: Table> TableColumns<T> {
    pub fn new(schema: &Schema) -> Self {
        Self { schema: schema.clone(), seen: BTreeMap::new(), table: PhantomData }
    }

    /// Adds the columns that the row needs.
    pub fn include(&mut self, row: &T) {
        for (name, value) in flatten::<T>(row.to_fields(&self.schema)) {
            let Some(kind) = Kind::for_value(&value) else { continue };
            self.seen.entry(name).and_modify(|seen| *seen = seen.widen(kind)).or_insert(kind);
        }
    }

    pub(super) fn check(&self, format: Format) -> Result<(), String> {
        let is_cut = |name: &&String| format == Format::Csv && name.trim_matches(PADDING) != **name;
        if let Some(name) = self.seen.keys().find(is_cut) {
            return Err(format!(
                "the name of the attribute or feature {name:?} begins or ends with a space, which a header cannot have; write jsonl"
            ));
        }
        let (columns, bytes) =
            (self.seen.len(), self.seen.keys().map(|name| 2 * name.len() + 3).sum::<usize>());
        if columns < MOST_CELLS - 8 && bytes < LONGEST - 64 {
            return Ok(());
        }
        let name = T::NAME;
        Err(format!(
            "the {name} have {columns} different attributes or features, whose names have {bytes} bytes in a header: more than a \
             file with columns can have; write jsonl"
        ))
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The table's fields, then the features in the schema's order, then other columns by name.
    pub(super) fn columns(&self) -> Vec<Column> {
        let kind = |field: &Field| match self.seen.get(field.name) {
            _ if field.list => Kind::Texts,
            Some(seen) => *seen,
            None => Kind::Text,
        };
        let own = T::FIELDS.iter().map(|field| Column {
            name: field.name.to_owned(),
            kind: kind(field),
            required: field.required,
        });
        let position = |name: &str| {
            let position =
                self.schema.features().iter().position(|feature| T::FEATURES && feature.name == name);
            position.unwrap_or(usize::MAX)
        };
        let mut others: Vec<Column> = self
            .seen
            .iter()
            .filter(|(name, _)| T::FIELDS.iter().all(|field| field.name != *name))
            .map(|(name, kind)| Column { name: name.clone(), kind: *kind, required: false })
            .collect();
        others.sort_by_key(|column| position(&column.name));
        own.chain(others).collect()
    }
}

impl Kind {
    /// `None` for a null, which fits every column.
    pub(super) fn for_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Double,
            Value::Number(number) => match number.as_i64() {
                Some(whole) if whole.unsigned_abs() <= EXACT => Self::Integer,
                Some(_) => Self::Long,
                None => Self::Json,
            },
            Value::String(_) => Self::Text,
            Value::Array(_) if is_texts(value) => Self::Texts,
            Value::Array(_) | Value::Object(_) => Self::Json,
        })
    }

    pub(super) fn widen(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Integer, Self::Long) | (Self::Long, Self::Integer) => Self::Long,
            (Self::Integer, Self::Double) | (Self::Double, Self::Integer) => Self::Double,
            _ => Self::Json,
        }
    }
}
