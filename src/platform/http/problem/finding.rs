//! One located error or warning in a request: the items of a problem's `errors` and of an answer's `warnings`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error or warning and its place: a pointer into a JSON body, a parameter of the path or query, a header, or a line
/// of a JSON Lines body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// A JSON pointer (RFC 6901) into the body; empty for the complete body.
    #[schema(examples("/features/age"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The name of a parameter in the path or query, or of a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The line of the body, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The error, what was expected, and what to do.
    pub detail: String,
}

impl Finding {
    /// A finding about all that the caller sent.
    pub fn general(detail: impl Into<String>) -> Self {
        Self { pointer: None, parameter: None, line: None, detail: detail.into() }
    }

    /// A finding at a place in a JSON body, such as `/features/age`.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), parameter: None, line: None, detail: detail.into() }
    }

    /// A finding in a parameter of the path or query, or in a header.
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: None, parameter: Some(name.into()), line: None, detail: detail.into() }
    }

    /// A finding in a line of a stream.
    pub fn line(line: u64, detail: impl Into<String>) -> Self {
        Self { pointer: None, parameter: None, line: Some(line), detail: detail.into() }
    }
}

/// The value, or `None` with the error added to `findings`.
pub(crate) fn value_or_finding<T, E: ToString>(
    result: Result<T, E>,
    pointer: impl FnOnce() -> String,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    result.map_err(|error| findings.push(Finding::at(pointer(), error.to_string()))).ok()
}
