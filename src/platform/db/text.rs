//! Short texts that people write and the database compares.

use std::fmt;

use atelier_core::domain::fold;

use super::StoreError;

const NAME_CHARS: usize = 128;
const NOTE_CHARS: usize = 2000;
/// An index entry of Postgres (2,704 bytes) has space for three such texts, and such a text for an id and a word.
const LINE_CHARS: usize = 200;
/// An index entry of Postgres has space for one such text.
const LONG_BYTES: usize = 2400;

/// A person's name, that of an outfit, or the label of an API key: one non-empty line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to {NAME_CHARS} characters, no control characters, and no space at either end; found {0:?}"
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

    /// The form for comparing names: "Ada" and "ada" are the same.
    pub(crate) fn key(&self) -> String {
        fold(&self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A note of several lines, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a note has at most {NOTE_CHARS} characters, and no control characters but line breaks")]
pub struct NoteError;

impl Note {
    /// Spaces at the ends are dropped, and browsers' line breaks become the usual ones.
    pub fn new(text: &str) -> Result<Self, NoteError> {
        let text = text.replace("\r\n", "\n").trim().to_owned();
        let is_plain = !text.chars().any(|c| c.is_control() && c != '\n');
        if is_plain && text.chars().count() <= NOTE_CHARS { Ok(Self(text)) } else { Err(NoteError) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Refuses texts that Postgres would refuse: it stores no NUL, and indexes no long text.
pub(crate) fn short_line<'a>(what: &'static str, text: &'a str) -> Result<&'a str, StoreError> {
    if is_line(text, LINE_CHARS) {
        return Ok(text);
    }
    let reason = format!("expected at most {LINE_CHARS} characters, and no control characters");
    Err(StoreError::Unfit { what, reason })
}

/// Like [`short_line`], for a text with its own index.
pub(crate) fn long_line<'a>(what: &'static str, text: &'a str) -> Result<&'a str, StoreError> {
    if text.len() <= LONG_BYTES && is_line(text, LONG_BYTES) {
        return Ok(text);
    }
    let reason = format!("expected at most {LONG_BYTES} bytes, and no control characters");
    Err(StoreError::Unfit { what, reason })
}

fn is_line(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_lines_and_ignore_case() {
        assert_eq!(Name::new("Änne Weiß").unwrap().key(), Name::new("änne weiß").unwrap().key());
        let long = "x".repeat(129);
        for refused in ["", " Ada", "A\0da", "A\nda", &long] {
            assert_eq!(Name::new(refused), Err(NameError(refused.into())));
        }
    }

    #[test]
    fn notes_have_lines_and_an_end() {
        assert_eq!(Note::new(" Call\r\nher \n").unwrap().as_str(), "Call\nher");
        assert_eq!(Note::new("  "), Ok(Note::default()));
        for refused in ["a\0b", "a\tb", &"x".repeat(2001)] {
            assert_eq!(Note::new(refused), Err(NoteError));
        }
    }
}
