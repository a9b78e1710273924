//! Short texts that people write and the database compares.

use std::fmt;

use super::{StoreError, search::fold};

const NAME_CHARS: usize = 128;
/// Three such texts fit in one entry of Postgres's indexes (2,704 bytes), and an id with a word before it
/// in one such text.
const LINE_CHARS: usize = 200;
/// One such text fits in one entry of Postgres's indexes.
const LONG_BYTES: usize = 2400;

/// A person's name, or an API key's label: one line, not empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

/// Why a text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to {NAME_CHARS} characters, none of them a control character, and no space at either end; found {0:?}"
)]
pub struct NameError(String);

impl Name {
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        let fits = !text.is_empty() && text.trim() == text && is_line(&text, NAME_CHARS);
        if fits { Ok(Self(text)) } else { Err(NameError(text)) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What two names are compared by: "Ada" and "ada" are the same.
    pub(crate) fn key(&self) -> String {
        fold(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses what one of the databases would: Postgres stores no NUL, and indexes no long text.
pub(super) fn short_line<'a>(what: &'static str, text: &'a str) -> Result<&'a str, StoreError> {
    if is_line(text, LINE_CHARS) {
        return Ok(text);
    }
    let reason = format!("it takes up to {LINE_CHARS} characters without control characters");
    Err(StoreError::Unfit { what, reason })
}

/// As [`short_line`], for a text that has an index of its own.
pub(super) fn long_line<'a>(what: &'static str, text: &'a str) -> Result<&'a str, StoreError> {
    if text.len() <= LONG_BYTES && is_line(text, LONG_BYTES) {
        return Ok(text);
    }
    let reason = format!("it takes up to {LONG_BYTES} bytes without control characters");
    Err(StoreError::Unfit { what, reason })
}

fn is_line(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_short_line_and_compare_without_case() {
        assert_eq!(Name::new("Änne Weiß").unwrap().key(), Name::new("änne weiß").unwrap().key());
        let long = "x".repeat(129);
        for refused in ["", " Ada", "A\0da", "A\nda", &long] {
            assert_eq!(Name::new(refused), Err(NameError(refused.into())));
        }
    }
}
