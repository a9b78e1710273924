//! Texts that are to be JSON, and what is said of those that are not.

use super::value::Value;

/// Why a text is no JSON value.
#[derive(Debug, PartialEq)]
pub(super) enum JsonError {
    /// It is not JSON, or more than can be held.
    Syntax(String),
    /// It might have become JSON, had it gone on.
    Early(String),
    /// It is, but not what can be taken: a key stands twice.
    Content(String),
}

/// Nesting is limited to what `serde_json` takes (128 levels), so no input overflows the stack.
pub(super) fn parse(text: &str) -> Result<Value<'_>, JsonError> {
    serde_json::from_str(text).map_err(|error| {
        let reason = json_reason(&error);
        let at = character(text, error.line(), error.column());
        if error.is_data() {
            JsonError::Content(reason)
        } else if error.is_eof() {
            JsonError::Early(format!("{reason}, after character {at}"))
        } else {
            JsonError::Syntax(format!("{reason} (character {at})"))
        }
    })
}

/// Why a text is not the JSON that it should be, in plain words and without the place: whoever shows it
/// counts lines, bytes or characters.
pub fn json_reason(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = error.to_string();
    let reason = said.strip_suffix(&place).unwrap_or(&said);
    if error.is_data() {
        reason.to_owned()
    } else if error.is_eof() {
        "not JSON: it ends too early".to_owned()
    } else {
        in_plain_words(reason)
    }
}

/// `serde_json` counts bytes, people count characters. Its lines and columns begin at 1.
fn character(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (before + column).min(text.len());
    text.char_indices().filter(|(place, _)| *place < end).count()
}

/// What `serde_json` says is meant for programmers. Its reasons have no codes, so they are known by their
/// words; a test holds the common ones, and one that is not known stays as it is.
fn in_plain_words(reason: &str) -> String {
    let plain = match reason {
        "expected value" | "expected ident" => {
            "expected a value: a text in double quotes, a number, true, false, null, a list or an object"
        }
        "expected `:`" => "expected a colon between name and value",
        "expected `,` or `}`" => "expected a comma or the object's closing }",
        "expected `,` or `]`" => "expected a comma or the list's closing ]",
        "key must be a string" => "expected a name in double quotes",
        "trailing comma" => "there is a comma too many",
        "trailing characters" => "something follows after its end",
        "invalid number" => "a number is written wrongly",
        "invalid escape" => "a backslash in a text begins none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000",
        "lone leading surrogate in hex escape"
        | "unexpected end of hex escape"
        | "invalid unicode code point" => "a \\u in a text names no whole character",
        "number out of range" => return "a number is too large".into(),
        "recursion limit exceeded" => return "lists and objects are nested too deeply".into(),
        reason if reason.starts_with("control character") => {
            "a text holds a line break, tab or other control character; write it as \\n, \\t or \\u0000"
        }
        other => other,
    };
    format!("not JSON: {plain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> String {
        match parse(json).unwrap_err() {
            JsonError::Syntax(reason) => format!("syntax {reason}"),
            JsonError::Early(reason) => format!("early {reason}"),
            JsonError::Content(reason) => format!("content {reason}"),
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        for (json, reason) in [
            ("{\"a\":1 \"b\":2}", "expected a comma or the object's closing } (character 8)"),
            ("[1 2]", "expected a comma or the list's closing ] (character 4)"),
            ("{\"a\" 1}", "expected a colon between name and value (character 6)"),
            ("{a:1}", "expected a name in double quotes (character 2)"),
            ("{'a':1}", "expected a name in double quotes (character 2)"),
            ("{\"a\":1,}", "there is a comma too many (character 8)"),
            ("{\"ä\":1} {}", "something follows after its end (character 9)"),
            ("{\"a\":01}", "a number is written wrongly (character 7)"),
            (
                "\"a\tb\"",
                "a text holds a line break, tab or other control character; write it as \\n, \\t or \\u0000 (character 3)",
            ),
        ] {
            assert_eq!(said(json), format!("syntax not JSON: {reason}"));
        }
        for json in ["nan", "None", "{\"a\":NaN}", "{\"a\":c-1}"] {
            assert!(
                said(json).starts_with("syntax not JSON: expected a value: a text in double quotes"),
                "{json}"
            );
        }
        for json in ["\"\\x\"", "\"C:\\data\""] {
            assert!(
                said(json).starts_with("syntax not JSON: a backslash in a text begins none of"),
                "{json}"
            );
        }
        for json in ["\"\\ud800\"", "\"\\ud800\\u0041\""] {
            assert!(
                said(json).starts_with("syntax not JSON: a \\u in a text names no whole character"),
                "{json}"
            );
        }
        assert_eq!(said("{\"a\":"), "early not JSON: it ends too early, after character 5");
        assert!(said("1e999").starts_with("syntax a number is too large"));
        assert!(said(&"[".repeat(1_000_000)).starts_with("syntax lists and objects are nested too deeply"));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        assert_eq!(said("[{\"a\":1,\"b\":{},\"a\":2}]"), "content field \"a\" stands in it twice");
        let many: Vec<String> = (0..40).chain([7]).map(|n| format!("\"f{n}\":0")).collect();
        assert_eq!(said(&format!("{{{}}}", many.join(","))), "content field \"f7\" stands in it twice");
    }
}
