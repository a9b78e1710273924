//! JSON with each name once, one form of each number, and error messages for people.
//!
//! The values are `serde_json`'s. Its own reader keeps the last of two fields with the same name; [`parse`] refuses both.

use std::{fmt, str::Utf8Error};

use atelier_core::domain::json_number;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value, map::Entry};

/// The fields of a row, sorted by name. A number keeps its written form, because `17` can be an id and `17.0` cannot;
/// domain values get the canonical form ([`make_canonical`]).
pub(super) type Fields = Map<String, Value>;

/// The type of a value, for messages.
pub fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether it is a list of texts.
pub(super) fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
}

/// About its bytes in JSON, and at least one.
pub(super) fn size(value: &Value) -> usize {
    8 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value)).sum(),
    }
}

/// Whether a text or name in it, at any depth, contains the character NUL.
pub fn contains_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(contains_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || contains_nul(value))
        }
    }
}

/// Gives each number in it the canonical form.
pub fn make_canonical(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                *number = json_number(float).expect("JSON numbers are finite");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_canonical),
        Value::Object(fields) => fields.values_mut().for_each(make_canonical),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// A value in which no object has a name twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (mut fields, mut repeated) = (Fields::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            let Unique(value) = map.next_value()?;
            match fields.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(value)),
                Entry::Occupied(entry) => repeated = repeated.or_else(|| Some(entry.key().clone())),
            }
        }
        match repeated {
            Some(name) => Err(de::Error::custom(format_args!("field {name:?} appears twice"))),
            None => Ok(fields.into()),
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
pub(super) fn parse(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map(|Unique(value)| value).map_err(|error| {
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

/// Explains a JSON error in plain words, without its position: callers count lines, bytes or characters.
pub fn explain_json_error(error: &serde_json::Error) -> String {
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&position).unwrap_or(&text);
    if error.is_data() {
        reason.to_owned()
    } else if error.is_eof() {
        "not JSON: it ends too early".to_owned()
    } else {
        in_plain_words(reason)
    }
}

/// The number of characters up to a position. `serde_json` counts bytes; its lines and columns begin at 1.
fn count_characters(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (before + column).min(text.len());
    text.char_indices().filter(|(start, _)| *start < end).count()
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
        for (reason, texts) in [
            (
                "expected a value: a string in double quotes",
                &["nan", "None", "{\"a\":NaN}", "{\"a\":c-1}"][..],
            ),
            ("a backslash in a string begins none of", &["\"\\x\"", "\"C:\\data\""]),
            ("a \\u in a string is not a whole character", &["\"\\ud800\"", "\"\\ud800\\u0041\""]),
        ] {
            for json in texts {
                assert!(message(json).starts_with(&format!("syntax not JSON: {reason}")), "{json}");
            }
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
