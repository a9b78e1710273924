//! What is the matter at one place of a request: the items of a problem's `errors` and of an answer's
//! `warnings`.

use serde::Serialize;
use utoipa::ToSchema;

/// One thing that was found, and where: in a JSON body by pointer, in a path or query by the parameter's
/// name, in JSON Lines by the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Finding {
    /// A JSON pointer (RFC 6901) into the body; empty for the whole of it.
    #[schema(examples("/features/age"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The name of a parameter in the path or query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The line of the body, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What was found, what was expected, what to do.
    pub detail: String,
}

impl Finding {
    /// At a place of a JSON body, such as `/features/age`.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), parameter: None, line: None, detail: detail.into() }
    }

    /// In a parameter of the path or query.
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: None, parameter: Some(name.into()), line: None, detail: detail.into() }
    }

    /// In a line of a stream.
    pub fn line(line: u64, detail: impl Into<String>) -> Self {
        Self { pointer: None, parameter: None, line: Some(line), detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_its_place_and_no_other() {
        let finding = serde_json::to_string(&Finding::line(3, "x")).unwrap();
        assert_eq!(finding, r#"{"line":3,"detail":"x"}"#);
    }
}
