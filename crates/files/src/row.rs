//! A row of a file: its value, with what is unusual about it, or why it cannot be used.

use std::io;

use atelier_core::{domain::FeatureWarning, named, util::text::abbreviate};

/// The longest row, in bytes: far above any sensible one. Callers hold several rows in memory, parsed.
pub(super) const LONGEST: usize = 1 << 20;
/// The most characters of a reason.
const REASON_LENGTH: usize = 1000;
const OTHER_SPLIT: &str =
    ", which is in another split: models would be tested on an outfit they have learned";

/// A usable row.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRow<T> {
    /// As in [`RowError`].
    pub line: u64,
    pub value: T,
    pub warnings: Vec<Warning>,
}

/// A row that cannot be used, and why, in words for the person who made the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{unit} {line}: {reason}")]
pub struct RowError {
    /// The line that the row begins on, from 1 (a CSV header is line 1); in Parquet, which has no lines, the number
    /// of the row.
    pub line: u64,
    pub reason: String,
    /// The ids in the row of its article or variant, as far as they can be read.
    pub(super) ids: Vec<String>,
    unit: Unit,
    fatal: bool,
}

/// Why a row cannot be used, with the ids in it that can be read.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) reason: String,
    pub(super) ids: Vec<String>,
}

impl<S: Into<String>> From<S> for Bad {
    fn from(reason: S) -> Self {
        Self { reason: reason.into(), ids: Vec::new() }
    }
}

/// The unit that locates a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    Line,
    Row,
}

named!(Unit, "a unit is line or row", Line = "line", Row = "row");

impl RowError {
    pub(super) fn new(unit: Unit, line: u64, bad: impl Into<Bad>) -> Self {
        let Bad { mut reason, ids } = bad.into();
        // It may quote a cell.
        abbreviate(&mut reason, REASON_LENGTH);
        Self { line, reason, ids, unit, fatal: false }
    }

    /// An error after which the file cannot be read.
    pub(super) fn fatal(unit: Unit, line: u64, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), ids: Vec::new(), unit, fatal: true }
    }

    /// The kind of the first of the reasons: see [`strip_values`].
    pub(super) fn kind(&self) -> String {
        strip_values(&self.reason)
    }

    /// Whether reading stopped here. Skipping such a row would silently lose the rows after it.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }
}

/// The first of several reasons without what was found: texts in quotes, numbers, and what follows "found". The names of
/// fields, columns and features stay, so it is one sentence about one of them.
pub fn strip_values(reason: &str) -> String {
    let (mut kind, mut rest) = (String::new(), reason);
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                });
                let quoted = &rest[..end.map_or(rest.len(), |end| end + 2)];
                let is_name = ["field ", "column ", "feature "].iter().any(|noun| kind.ends_with(noun));
                kind.push_str(if is_name { quoted } else { "…" });
                quoted.len()
            }
            '0'..='9' => {
                kind.push('…');
                let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
                rest.len() - digits.len()
            }
            _ if rest.starts_with("; ") || rest.starts_with("found ") => break,
            other => {
                kind.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    kind
}

/// Something unusual about a good row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Warning {
    #[error(transparent)]
    Feature(FeatureWarning),
    /// Two variants of an article in a feed disagree.
    #[error("the variant of this article in line {line} has another {attribute}, {found}; {kept} is kept")]
    Variants {
        attribute: &'static str,
        /// The line of the variant that is not the first.
        line: u64,
        kept: String,
        found: String,
    },
    /// A feed names a category of Google's by a number that has no name here, and no type.
    #[error(
        "the type is \"category {0}\": there is no \"product_type\", and google_product_category {0} has no name here"
    )]
    Category(u64),
    /// The inventory of a product in Shopify's export is tracked, but not in the file.
    #[error(
        "the inventory is tracked, but the file has no \"Variant Inventory Qty\" of it: it counts as in stock"
    )]
    NotCounted,
    /// The outfit repeats the one in an earlier row.
    #[error(
        "this outfit repeats {unit} {first}{}",
        .other_split.then_some(OTHER_SPLIT).unwrap_or_default()
    )]
    Repetition {
        unit: Unit,
        first: u32,
        /// The earlier row is in another split, so a model would be tested on an outfit that it has learned.
        other_split: bool,
    },
}

impl Warning {
    /// Whether both are counted as one. Repetitions are, whichever row they repeat.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Repetition { other_split, .. }, Self::Repetition { other_split: other, .. }) => {
                other_split == other
            }
            (Self::Feature(warning), Self::Feature(other)) => warning.is_like(other),
            (Self::Variants { attribute, .. }, Self::Variants { attribute: other, .. }) => attribute == other,
            _ => self == other,
        }
    }
}

/// Says that the disk or the network failed.
pub(super) fn read_failure(error: &io::Error) -> String {
    format!("cannot read the rest of the file: {error}")
}
