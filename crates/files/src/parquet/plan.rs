//! The columns of a Parquet file: their types, and where their values belong in a row's fields.

use ::parquet::{
    basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical},
    schema::types::Type,
};
use atelier_core::domain::{Schema, Use, is_used};

use crate::{
    Dialect, Table,
    columns::{Target, find_targets},
    error::Misfit,
};

/// pandas stores its row numbers in columns whose names begin so.
const PANDAS_INDEX: &str = "__index_level_";

/// A column of values, as Parquet stores it.
pub(super) struct Leaf {
    /// The column's number in the file.
    pub(super) column: usize,
    pub(super) target: Target,
    /// The path of structs within the target.
    pub(super) inside: Vec<String>,
    /// The name for messages.
    pub(super) name: String,
    pub(super) holds: Holds,
    /// The definition level of a value that is present.
    pub(super) present: i16,
    /// For a list, the definition level of its elements.
    pub(super) element: Option<i16>,
}

/// The meaning of the stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// That of the physical type: booleans, signed integers, floats.
    Plain,
    Unsigned,
    Decimal {
        scale: i32,
    },
    /// Days since 1970.
    Date,
    /// Time since 1970 in units of which a second has `parts`; in UTC or in an unknown time zone.
    Moment {
        parts: u32,
        utc: bool,
    },
    Text,
    Json,
}

/// The columns of a file that are read.
pub(super) struct Plan {
    pub(super) leaves: Vec<Leaf>,
    /// Says which columns are not, and why.
    pub(super) unread: Option<String>,
}

/// Finds the columns of a table. One that cannot be read and that nothing needs is left out.
pub(super) fn find_columns<T: Table>(
    root: &Type,
    schema: &Schema,
    dialect: &Dialect,
) -> Result<Plan, Misfit> {
    let mut walk = Walk { leaves: Vec::new(), refused: Vec::new(), columns: 0, path: Vec::new() };
    let mut names = Vec::new();
    for field in root.get_fields() {
        let name = dialect.rename::<T>(field.name()).filter(|_| !field.name().starts_with(PANDAS_INDEX));
        let Some(name) = name else {
            walk.columns += count_columns(field);
            continue;
        };
        walk.step::<T>(field, name, 0);
        if T::FEATURES && name == "features" && !field.is_primitive() {
            names.extend(field.get_fields().iter().map(|inner| format!("features.{}", inner.name())));
        } else {
            names.push(name.to_owned());
        }
    }
    if let Some(needed) = walk.refused.iter().find(|refused| refused.is_needed::<T>(schema)) {
        return Err(needed.reason().into());
    }
    find_targets::<T>(&names.iter().map(String::as_str).collect::<Vec<_>>(), schema)?;
    let unread: Vec<String> = walk.refused.iter().map(Refused::describe).collect();
    let unread = (!unread.is_empty()).then(|| {
        format!(
            "these columns are not read: {}; write those that you need as text, or as JSON text",
            unread.join(", ")
        )
    });
    Ok(Plan { leaves: walk.leaves, unread })
}

struct Walk {
    leaves: Vec<Leaf>,
    refused: Vec<Refused>,
    columns: usize,
    path: Vec<String>,
}

/// The target of a column's value, and its path of structs within it.
fn find_target<T: Table>(path: &[String]) -> (Target, &[String]) {
    let (outer, inside) = path.split_first().expect("a column has a name");
    match (Target::from_column::<T>(outer), inside) {
        (Target::Field(name), [feature, inside @ ..]) if T::FEATURES && name == "features" => {
            (Target::Feature(feature.clone()), inside)
        }
        (target, inside) => (target, inside),
    }
}

/// A column that cannot be read.
struct Refused {
    path: Vec<String>,
    found: String,
}

impl Refused {
    fn is_needed<T: Table>(&self, schema: &Schema) -> bool {
        match find_target::<T>(&self.path).0 {
            Target::Feature(name) => schema.feature(&name).is_some(),
            // Every field but an article's attributes is the table's own.
            Target::Field(_) if T::FEATURES => true,
            Target::Field(name) => {
                T::FIELDS.iter().any(|field| field.name == name)
                    || is_used(&name, Use::Read)
                    || schema.names_attribute(&name)
            }
        }
    }

    fn reason(&self) -> String {
        let (column, found) = (self.path.join("."), &self.found);
        format!("column {column:?} contains {found}, which cannot be read; write it as text, or as JSON text")
    }

    fn describe(&self) -> String {
        format!("{:?} ({})", self.path.join("."), self.found)
    }
}

impl Walk {
    /// `level` is the definition level of the parent.
    fn step<T: Table>(&mut self, field: &Type, name: &str, level: i16) {
        self.path.push(name.to_owned());
        let before = self.columns;
        if let Err(found) = self.read::<T>(field, level) {
            self.refused.push(Refused { path: self.path.clone(), found });
            self.columns = before + count_columns(field);
        }
        self.path.pop();
    }

    fn read<T: Table>(&mut self, field: &Type, level: i16) -> Result<(), String> {
        let repetition = repetition(field);
        let level = level + i16::from(repetition != Repetition::REQUIRED);
        if repetition == Repetition::REPEATED {
            // protobuf writes a list without a group around it.
            self.leaf::<T>(field, level, Some(level))
        } else if field.is_primitive() {
            self.leaf::<T>(field, level, None)
        } else if converted_type(field) == ConvertedType::LIST {
            self.list::<T>(field, level)
        } else if matches!(converted_type(field), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) {
            Err("a map".into())
        } else if matches!(find_target::<T>(&self.path).0, Target::Feature(_)) {
            // No feature is an object.
            Err("a struct".into())
        } else {
            for inner in field.get_fields() {
                self.step::<T>(inner, inner.name(), level);
            }
            Ok(())
        }
    }

    /// Ignores the names within a list: every writer has its own.
    fn list<T: Table>(&mut self, field: &Type, level: i16) -> Result<(), String> {
        let [repeated] = field.get_fields() else { return Err("a list of an unknown form".into()) };
        if repetition(repeated) != Repetition::REPEATED {
            return Err("a list of an unknown form".into());
        }
        let element = level + 1;
        if repeated.is_primitive() {
            return self.leaf::<T>(repeated, element, Some(element));
        }
        let [inner] = repeated.get_fields() else { return Err("a list of structs".into()) };
        match repetition(inner) {
            Repetition::REQUIRED => self.leaf::<T>(inner, element, Some(element)),
            Repetition::OPTIONAL => self.leaf::<T>(inner, element + 1, Some(element)),
            Repetition::REPEATED => Err("a list of lists".into()),
        }
    }

    fn leaf<T: Table>(&mut self, field: &Type, present: i16, element: Option<i16>) -> Result<(), String> {
        if !field.is_primitive() {
            return Err("a list of lists or structs".into());
        }
        let holds = holds(field)?;
        let (target, inside) = find_target::<T>(&self.path);
        let (column, inside, name) = (self.columns, inside.to_vec(), self.path.join("."));
        self.leaves.push(Leaf { column, target, inside, name, holds, present, element });
        self.columns += 1;
        Ok(())
    }
}

/// How many columns of values a field has.
fn count_columns(field: &Type) -> usize {
    if field.is_primitive() { 1 } else { field.get_fields().iter().map(|inner| count_columns(inner)).sum() }
}

fn repetition(field: &Type) -> Repetition {
    let info = field.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

fn converted_type(field: &Type) -> ConvertedType {
    let info = field.get_basic_info();
    match ConvertedType::from(info.logical_type_ref().cloned()) {
        ConvertedType::NONE => info.converted_type(),
        known => known,
    }
}

fn holds(field: &Type) -> Result<Holds, String> {
    let Type::PrimitiveType { physical_type, scale, .. } = field else { return Err("a struct".into()) };
    // By their physical types these would be bare numbers or bytes.
    match field.get_basic_info().logical_type_ref() {
        Some(LogicalType::Timestamp(moment)) => {
            let parts = match moment.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            };
            return Ok(Holds::Moment { parts, utc: moment.is_adjusted_to_u_t_c });
        }
        Some(LogicalType::Time(_)) => return Err("times of day".into()),
        Some(LogicalType::Float16) => return Err("half floats".into()),
        Some(LogicalType::Uuid) => return Err("UUIDs in binary".into()),
        _ => {}
    }
    match (physical_type, converted_type(field)) {
        (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _)
        | (
            Physical::INT32 | Physical::INT64,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64,
        ) => Ok(Holds::Plain),
        (
            Physical::INT32 | Physical::INT64,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => Ok(Holds::Unsigned),
        (Physical::INT32, ConvertedType::DATE) => Ok(Holds::Date),
        (Physical::INT64, ConvertedType::TIMESTAMP_MILLIS) => Ok(Holds::Moment { parts: 1_000, utc: true }),
        // INT96 is Spark's; the crate turns it into microseconds.
        (Physical::INT64, ConvertedType::TIMESTAMP_MICROS) | (Physical::INT96, _) => {
            Ok(Holds::Moment { parts: 1_000_000, utc: true })
        }
        (
            Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY,
            ConvertedType::DECIMAL,
        ) => Ok(Holds::Decimal { scale: *scale }),
        // Older Spark writes text without an annotation.
        (Physical::BYTE_ARRAY, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::NONE) => {
            Ok(Holds::Text)
        }
        (Physical::BYTE_ARRAY, ConvertedType::JSON) => Ok(Holds::Json),
        (physical, ConvertedType::NONE) => Err(physical.to_string()),
        (physical, annotation) => Err(format!("{physical} as {annotation}")),
    }
}
