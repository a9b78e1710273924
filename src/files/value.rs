//! A row between file and domain: the fields of a JSON object, borrowed from the file's bytes where
//! that is possible.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Number;

use crate::domain::json_number;

/// Fields in the order of the file.
pub(super) type Fields<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// A JSON value that borrows its texts and keeps the order of its objects. Numbers are as they were
/// written, because `17` can be an id and `17.0` cannot; what becomes a domain value, or comes from one,
/// has their one form ([`json_number`]).
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Fields<'a>),
}

impl<'a> Value<'a> {
    /// `None` for NaN and the infinities, which are no numbers to JSON.
    pub(super) fn from_f64(number: f64) -> Option<Self> {
        json_number(number).map(Self::Number)
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_texts(&self) -> bool {
        matches!(self, Self::List(values) if values.iter().all(|value| matches!(value, Self::Text(_))))
    }

    /// Whether it is a list of what a set can hold.
    pub(super) fn is_words(&self) -> bool {
        matches!(self, Self::List(values)
            if values.iter().all(|value| matches!(value, Self::Text(_) | Self::Number(_))))
    }

    /// Whether a text or key in it, however deep, holds the character NUL.
    pub(super) fn holds_nul(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
            Self::Text(text) => text.contains('\0'),
            Self::List(values) => values.iter().any(Self::holds_nul),
            Self::Object(fields) => {
                fields.iter().any(|(name, value)| name.contains('\0') || value.holds_nul())
            }
        }
    }

    pub(super) fn into_json(self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(truth) => truth.into(),
            Self::Number(number) => serde_json::Value::Number(normal(number)),
            Self::Text(text) => text.into_owned().into(),
            Self::List(values) => values.into_iter().map(Self::into_json).collect(),
            Self::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name.into_owned(), value.into_json())).collect()
            }
        }
    }

    /// Objects come out sorted by name: the canonical form asks for it.
    pub(super) fn from_json(json: &'a serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => Self::Number(normal(number.clone())),
            serde_json::Value::String(text) => Self::text(text),
            serde_json::Value::Array(values) => Self::List(values.iter().map(Self::from_json).collect()),
            serde_json::Value::Object(map) => {
                let mut fields: Fields<'a> =
                    map.iter().map(|(name, value)| (name.into(), Self::from_json(value))).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Object(fields)
            }
        }
    }
}

/// A number in its one form.
pub(super) fn normal(number: Number) -> Number {
    if number.is_f64() {
        number.as_f64().and_then(json_number).expect("JSON numbers are finite; this is a bug")
    } else {
        number
    }
}

/// The name that stands twice, if one does.
pub(super) fn twice<'f>(fields: &'f Fields<'_>) -> Option<&'f str> {
    // Most rows have a handful of fields, for which looking at all pairs is the fastest way.
    if fields.len() <= 16 {
        let mut rest = fields.as_slice();
        while let [(name, _), others @ ..] = rest {
            if others.iter().any(|(other, _)| other == name) {
                return Some(name);
            }
            rest = others;
        }
        return None;
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields.iter().map(|(name, _)| name.as_ref()).find(|name| !seen.insert(*name))
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value<'de>, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::text(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut fields = Fields::new();
        while let Some(key) = map.next_key()? {
            let Value::Text(name) = key else { unreachable!("JSON keys are texts; this is a bug") };
            fields.push((name, map.next_value()?));
        }
        match twice(&fields) {
            Some(name) => Err(de::Error::custom(format_args!("field {name:?} stands in it twice"))),
            None => Ok(Value::Object(fields)),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::json_text::parse, *};

    fn again(json: &str) -> String {
        parse(json).unwrap().into_json().to_string()
    }

    #[test]
    fn a_number_has_one_form() {
        for (written, canonical) in [
            ("79.0", "79"),
            ("79.90", "79.9"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740992.0", "9007199254740992"),
            ("5e-324", "5e-324"),
            ("0.1", "0.1"),
        ] {
            assert_eq!(again(written), canonical);
            assert_eq!(again(canonical), canonical);
        }
        let large = again("10000000000000000.0");
        assert_eq!(again(&large), large);
        assert_eq!(Value::from_f64(f64::NAN), None);
    }

    #[test]
    fn nul_is_found_at_any_depth() {
        for json in [r#""\u0000""#, r#"[1,{"a":["x\u0000"]}]"#, r#"{"a":{"b\u0000":1}}"#] {
            assert!(parse(json).unwrap().holds_nul(), "{json}");
        }
        assert!(!parse(r#"{"a":["\u0001",null,1,true]}"#).unwrap().holds_nul());
    }
}
