//! Reading the cells of CSV files, and writing them so that they are read back the same.

use std::borrow::Cow;

use atelier_core::domain::{Kind, Schema, is_ambiguous_price, json_number, parse_decimal};
use serde_json::Value;

use crate::{
    Table,
    columns::Target,
    json::{JsonError, is_texts, make_canonical, parse},
};

/// How the cells of a column are read. An empty cell always means "not given", and so does one of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// An id, a type or a split: plain text.
    Text,
    /// Ids joined with `|`, which no id contains.
    Ids,
    Category,
    Set,
    Number,
    /// An attribute: the type is inferred.
    Attribute,
    /// An attribute, whose `1.299` stays text: the article refuses it, because it may be a thousand.
    Price,
    /// A feature that the schema does not list: the type is inferred, among those that features may have.
    Feature,
}

impl Reading {
    pub(super) fn for_target<T: Table>(target: &Target, schema: &Schema) -> Self {
        match target {
            Target::Field(name) => match T::FIELDS.iter().find(|field| field.name == name) {
                Some(field) if field.list => Self::Ids,
                Some(_) => Self::Text,
                None if name == "price" => Self::Price,
                None => Self::Attribute,
            },
            Target::Feature(name) => match schema.feature(name).map(|feature| &feature.kind) {
                Some(Kind::Category) => Self::Category,
                Some(Kind::Set) => Self::Set,
                Some(Kind::Number { .. }) => Self::Number,
                None => Self::Feature,
            },
        }
    }

    pub(super) fn read(self, cell: &str) -> Result<Value, String> {
        let trimmed = cell.trim();
        if trimmed.is_empty() {
            return Ok(Value::Null);
        }
        let parsed = match self {
            Self::Text => return Ok(trimmed.into()),
            // One id is too few for an outfit, so this is a list in another notation.
            Self::Ids if !cell.contains('|') && trimmed.contains([',', ';', ' ', '[']) => {
                return Err(format!("join the ids with |, as in a|b|c|d; found {cell:?}"));
            }
            Self::Ids => return Ok(cell.split('|').map(str::trim).collect()),
            // The encoder refuses other text.
            Self::Number => {
                if is_ambiguous_price(trimmed.trim_start_matches(['-', '+'])) {
                    let digits = trimmed.replace(['.', ','], "");
                    return Err(format!("{trimmed:?} can mean {digits} or {trimmed}0: write one of these"));
                }
                let unsigned = trimmed.strip_prefix('+').filter(|rest| !rest.starts_with('-'));
                let decimal = || parse_decimal(unsigned.unwrap_or(trimmed));
                let number = trimmed.parse().ok().or_else(decimal).and_then(json_number);
                return Ok(number.map_or_else(|| cell.into(), Value::Number));
            }
            Self::Price if is_ambiguous_price(cell) => return Ok(cell.into()),
            Self::Price => return Self::Attribute.read(cell),
            Self::Category | Self::Set | Self::Attribute | Self::Feature => parse_json(cell)?,
        };
        Ok(match (self, parsed) {
            (Self::Attribute, Some(json)) | (_, Some(json @ Value::String(_))) => json,
            (Self::Set, Some(json)) if is_words(&json) => json,
            (Self::Set, _) => split(cell),
            (Self::Attribute, None) => infer(cell),
            (Self::Feature, json) => {
                // A feature cannot be other JSON or a boolean, so those stay text.
                let value = json.unwrap_or_else(|| infer(cell));
                if value.is_number() || is_texts(&value) { value } else { cell.into() }
            }
            _ => cell.into(),
        })
    }

    /// Whether the type of a cell is inferred from it.
    pub(super) fn is_inferred(self) -> bool {
        matches!(self, Self::Attribute | Self::Feature)
    }

    /// The plain form if it is read back as the same value, else JSON.
    pub(super) fn write(self, value: &Value) -> Cow<'_, str> {
        let json = || write_json(value);
        let plain: Cow<'_, str> = match value {
            Value::Null => return "".into(),
            Value::String(text) => text.into(),
            Value::Array(values) if is_texts(value) => {
                values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|").into()
            }
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => json().into(),
        };
        match (self, value) {
            _ if self.reads_back(&plain, value) => plain,
            // A fourth decimal makes it a number.
            (Self::Price | Self::Number, Value::Number(number)) => format!("{number}0").into(),
            _ => json().into(),
        }
    }

    fn reads_back(self, cell: &str, value: &Value) -> bool {
        match self {
            Self::Text | Self::Ids => true,
            _ => self.read(cell).is_ok_and(|read| read == *value),
        }
    }
}

pub(super) fn write_json(value: &Value) -> String {
    serde_json::to_string(value).expect("texts and finite numbers are JSON")
}

fn split(cell: &str) -> Value {
    cell.split('|').collect()
}

/// Whether it is a list of texts and numbers, as a set is.
fn is_words(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(|value| value.is_string() || value.is_number()))
}

/// The cell as JSON, if it is JSON in quotes, brackets or braces.
fn parse_json(cell: &str) -> Result<Option<Value>, String> {
    if !cell.starts_with(['"', '[', '{']) {
        return Ok(None);
    }
    match parse(cell) {
        Ok(value) => Ok(Some(value)),
        Err(JsonError::Syntax(_) | JsonError::Early(_)) => Ok(None),
        Err(JsonError::Content(reason)) => Err(reason),
    }
}

/// The cell as a boolean, number, list or text. Booleans may be written as JSON, pandas or Excel write them.
pub(super) fn infer(cell: &str) -> Value {
    match cell {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if cell.contains('|') {
        return split(cell);
    }
    let numeric = cell.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && cell.ends_with(|c: char| c.is_ascii_digit());
    let Some(mut number) = parse(cell).ok().filter(|value| numeric && value.is_number()) else {
        return cell.into();
    };
    make_canonical(&mut number);
    // With more digits than a number can hold it is a code.
    if number.is_f64() && !cell.contains(['.', 'e', 'E']) { cell.into() } else { number }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cells of an object's names are read as its values.
    #[track_caller]
    fn reads(reading: Reading, cells: &Value) {
        for (cell, value) in cells.as_object().unwrap() {
            assert_eq!(reading.read(cell).as_ref(), Ok(value), "{cell}");
        }
    }

    #[test]
    fn the_type_of_an_attribute_is_inferred() {
        let cells = json!({
            "": null, " \u{a0}": null, "null": "null", "True": true, "TRUE": true, "False": false, "FALSE": false,
            "tRUE": "tRUE", "yes": "yes", "38": 38, "-1.50": -1.5, "1e2": 100, "007": "007", " 38": " 38",
            "4006381333931": 4_006_381_333_931_u64, "123456789012345678901234": "123456789012345678901234",
            "1e999": "1e999", "79,9": "79,9", "38|39": ["38", "39"], "[1,2]": [1, 2], "[1,2": "[1,2",
            "{\"a\":{\"b\":null}}": {"a": {"b": null}},
        });
        reads(Reading::Attribute, &cells);
        assert_eq!(Reading::Attribute.read(r#"{"a":1,"a":2}"#).unwrap_err(), "field \"a\" appears twice");
    }

    #[test]
    fn the_schema_determines_how_a_feature_is_read() {
        reads(Reading::Category, &json!({"a|b": "a|b", "true": "true"}));
        reads(Reading::Set, &json!({"38|39": ["38", "39"]}));
        let numbers = json!({
            " 28.0": 28, "12,5": 12.5, "-1.234,5": -1234.5, "+180,5": 180.5, "+-3,5": "+-3,5", " ": null,
            "1e3": 1000, "NaN": "NaN", "old": "old",
        });
        reads(Reading::Number, &numbers);
        reads(Reading::Feature, &json!({"28": 28, "{\"a\":1}": "{\"a\":1}"}));
    }
    /// That all values come back is asked of files.
    #[test]
    fn a_number_that_could_be_thousands_has_a_fourth_decimal() {
        let price = |number: f64| Reading::Price.write(&number.into()).into_owned();
        assert_eq!([price(1.299), price(12.5)], ["1.2990", "12.5"]);
        assert_eq!(Reading::Number.write(&(-1.299).into()), "-1.2990");
    }
}
