//! The fields of a row as JSON, and reading JSON with error messages for people.

use std::{borrow::Cow, collections::HashSet, fmt, str::Utf8Error};

use atelier_core::domain::{JsonLayer, json_number};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Number;

/// The fields of a row in the order of the file.
pub(super) type Fields<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// A JSON value that borrows its texts from the file and keeps the order of its fields. A number keeps its written
/// form, because `17` can be an id and `17.0` cannot; domain values get the canonical form ([`json_number`]).
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
    /// `None` for NaN and the infinities, which JSON cannot express.
    pub(super) fn from_f64(number: f64) -> Option<Self> {
        json_number(number).map(Self::Number)
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Its type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
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

    /// Whether it is a list of texts and numbers, as a set is.
    pub(super) fn is_words(&self) -> bool {
        matches!(self, Self::List(values)
            if values.iter().all(|value| matches!(value, Self::Text(_) | Self::Number(_))))
    }

    /// About its bytes in JSON, and at least one.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => 8,
            Self::Text(text) => text.len() + 8,
            Self::List(values) => 8 + values.iter().map(Self::size).sum::<usize>(),
            Self::Object(fields) => {
                8 + fields.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>()
            }
        }
    }

    /// Whether a text or name in it, at any depth, contains the character NUL.
    pub(super) fn contains_nul(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
            Self::Text(text) => text.contains('\0'),
            Self::List(values) => values.iter().any(Self::contains_nul),
            Self::Object(fields) => {
                fields.iter().any(|(name, value)| name.contains('\0') || value.contains_nul())
            }
        }
    }

    pub(super) fn into_json(self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(truth) => truth.into(),
            Self::Number(number) => serde_json::Value::Number(canonical(number)),
            Self::Text(text) => text.into_owned().into(),
            Self::List(values) => values.into_iter().map(Self::into_json).collect(),
            Self::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name.into_owned(), value.into_json())).collect()
            }
        }
    }

    /// Objects are sorted by name, as the canonical form requires.
    pub(super) fn from_json(json: &'a serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => Self::Number(canonical(number.clone())),
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

/// The canonical form of a number.
pub(super) fn canonical(number: Number) -> Number {
    if number.is_f64() {
        number.as_f64().and_then(json_number).expect("JSON numbers are finite; this is a bug")
    } else {
        number
    }
}

/// A name that appears twice, if there is one.
pub(super) fn find_duplicate<'f>(fields: &'f Fields<'_>) -> Option<&'f str> {
    // Most rows have a handful of fields, for which comparing all pairs is fastest.
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

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(values: Vec<Value<'a>>) -> Self {
        Self::List(values)
    }
}

impl<'a> From<Value<'a>> for JsonLayer<Value<'a>> {
    fn from(value: Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Number(number) => Self::Number(number),
            Value::Text(text) => Self::Text(text.into_owned()),
            Value::List(values) => Self::List(values),
            Value::Object(_) => Self::Object,
        }
    }
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
        match find_duplicate(&fields) {
            Some(name) => Err(de::Error::custom(format_args!("field {name:?} appears twice"))),
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

/// Why a text cannot be read as JSON.
#[derive(Debug, PartialEq)]
pub(super) enum JsonError {
    /// It is not JSON, or too large or too deep.
    Syntax(String),
    /// It ends before the value does.
    Early(String),
    /// It is JSON, but a name appears twice.
    Content(String),
}

/// `serde_json` limits the nesting to 128 levels, so no input overflows the stack.
pub(super) fn parse(text: &str) -> Result<Value<'_>, JsonError> {
    serde_json::from_str(text).map_err(|error| {
        let reason = explain_json_error(&error);
        let at = count_characters(text, error.line(), error.column());
        if error.is_data() {
            JsonError::Content(reason)
        } else if error.is_eof() {
            JsonError::Early(format!("{reason}, after character {at}"))
        } else {
            JsonError::Syntax(format!("{reason} (character {at})"))
        }
    })
}

/// Says which name appears twice in an object of a JSON text: most readers take one of the values and drop the other.
pub fn find_repeated_name(text: &[u8]) -> Option<String> {
    match parse(std::str::from_utf8(text).ok()?) {
        Err(JsonError::Content(reason)) => Some(reason),
        _ => None,
    }
}

/// Says from where on a text is not UTF-8.
pub fn explain_utf8_error(error: Utf8Error) -> String {
    format!("not UTF-8 text from byte {} on", error.valid_up_to() + 1)
}

/// Explains a JSON error in plain words, without the place: callers count lines, bytes or characters.
pub fn explain_json_error(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&place).unwrap_or(&text);
    if error.is_data() {
        reason.to_owned()
    } else if error.is_eof() {
        "not JSON: it ends too early".to_owned()
    } else {
        in_plain_words(reason)
    }
}

/// The number of characters up to a place. `serde_json` counts bytes; its lines and columns begin at 1.
fn count_characters(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (before + column).min(text.len());
    text.char_indices().filter(|(place, _)| *place < end).count()
}

/// Rewords `serde_json`'s messages, which are for programmers. They have no codes, so this compares their words; a
/// test covers the common ones, and other messages stay as they are.
fn in_plain_words(reason: &str) -> String {
    let plain = match reason {
        "expected value" | "expected ident" => {
            "expected a value: a string in double quotes, a number, true, false, null, a list or an object"
        }
        "expected `:`" => "expected a colon between name and value",
        "expected `,` or `}`" => "expected a comma or the object's closing }",
        "expected `,` or `]`" => "expected a comma or the list's closing ]",
        "key must be a string" => "expected a name in double quotes",
        "trailing comma" => "there is an extra comma",
        "trailing characters" => "unexpected text after the end",
        "invalid number" => "a number is malformed",
        "invalid escape" => {
            "a backslash in a string begins none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000"
        }
        "lone leading surrogate in hex escape"
        | "unexpected end of hex escape"
        | "invalid unicode code point" => "a \\u in a string is not a whole character",
        "number out of range" => return "a number is too large".into(),
        "recursion limit exceeded" => return "lists and objects are nested too deeply".into(),
        reason if reason.starts_with("control character") => {
            "a string contains a line break, tab or other control character; write it as \\n, \\t or \\u0000"
        }
        other => other,
    };
    format!("not JSON: {plain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(json: &str) -> String {
        parse(json).unwrap().into_json().to_string()
    }

    #[test]
    fn a_number_has_one_canonical_form() {
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
            assert!(parse(json).unwrap().contains_nul(), "{json}");
        }
        assert!(!parse(r#"{"a":["\u0001",null,1,true]}"#).unwrap().contains_nul());
    }

    fn message(json: &str) -> String {
        match parse(json).unwrap_err() {
            JsonError::Syntax(reason) => format!("syntax {reason}"),
            JsonError::Early(reason) => format!("early {reason}"),
            JsonError::Content(reason) => format!("content {reason}"),
        }
    }

    #[test]
    fn invalid_json_says_why() {
        for (json, reason) in [
            ("{\"a\":1 \"b\":2}", "expected a comma or the object's closing } (character 8)"),
            ("[1 2]", "expected a comma or the list's closing ] (character 4)"),
            ("{\"a\" 1}", "expected a colon between name and value (character 6)"),
            ("{a:1}", "expected a name in double quotes (character 2)"),
            ("{'a':1}", "expected a name in double quotes (character 2)"),
            ("{\"a\":1,}", "there is an extra comma (character 8)"),
            ("{\"ä\":1} {}", "unexpected text after the end (character 9)"),
            ("{\"a\":01}", "a number is malformed (character 7)"),
            (
                "\"a\tb\"",
                "a string contains a line break, tab or other control character; write it as \\n, \\t or \\u0000 (character 3)",
            ),
        ] {
            assert_eq!(message(json), format!("syntax not JSON: {reason}"));
        }
        for json in ["nan", "None", "{\"a\":NaN}", "{\"a\":c-1}"] {
            assert!(
                message(json).starts_with("syntax not JSON: expected a value: a string in double quotes"),
                "{json}"
            );
        }
        for json in ["\"\\x\"", "\"C:\\data\""] {
            assert!(
                message(json).starts_with("syntax not JSON: a backslash in a string begins none of"),
                "{json}"
            );
        }
        for json in ["\"\\ud800\"", "\"\\ud800\\u0041\""] {
            assert!(
                message(json).starts_with("syntax not JSON: a \\u in a string is not a whole character"),
                "{json}"
            );
        }
        assert_eq!(message("{\"a\":"), "early not JSON: it ends too early, after character 5");
        assert!(message("1e999").starts_with("syntax a number is too large"));
        assert!(
            message(&"[".repeat(1_000_000)).starts_with("syntax lists and objects are nested too deeply")
        );
    }

    #[test]
    fn a_name_that_appears_twice_is_refused() {
        assert_eq!(message("[{\"a\":1,\"b\":{},\"a\":2}]"), "content field \"a\" appears twice");
        let many: Vec<String> = (0..40).chain([7]).map(|n| format!("\"f{n}\":0")).collect();
        assert_eq!(message(&format!("{{{}}}", many.join(","))), "content field \"f7\" appears twice");
    }
}
