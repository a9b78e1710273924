//! Errors in rows and in files.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use atelier_core::{domain::SchemaError, util::text::abbreviate};

use super::{Feed, columns::Misfit};

/// The most characters of a reason.
const REASON_LENGTH: usize = 1000;

/// A row that cannot be used, and why, in words for the person who made the file.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.unit, self.line, self.reason)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "line",
            Self::Row => "row",
        })
    }
}

impl std::error::Error for RowError {}

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(
        "{}: unknown format; the file name must end in .jsonl, .ndjson, .csv or .parquet", path.display()
    )]
    Extension { path: PathBuf },
    /// As [`Self::Extension`], of a catalogue, which may be a feed.
    #[error(
        "{}: unknown format; name it with --format, or end the file name in .jsonl, .ndjson, .csv or .parquet. A feed ends in .xml \
         and begins with <, or it ends in .tsv or .txt and has tabs in its first line, or it is Shopify's .csv", path.display()
    )]
    Catalogue { path: PathBuf },
    #[error("expected jsonl, csv or parquet, found {name:?}")]
    Format { name: String },
    #[error("cannot read {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read {}: it is a folder; name a file in it", path.display())]
    Folder { path: PathBuf },
    /// The header, or the columns of a Parquet file, do not fit the table.
    #[error("{}: {reason}", path.display())]
    Columns { path: PathBuf, reason: String },
    /// As [`Self::Columns`], of one or more files, with the flags of the command that would make them fit.
    #[error("{}", describe_headers(refusals, flags))]
    Headers { refusals: Vec<(PathBuf, String)>, flags: Vec<String> },
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Parquet { path: PathBuf, reason: String },
    #[error(
        "{} is a feed ({feed}), which describes whole articles: import it as articles, and let them replace stored ones", path.display()
    )]
    Feed { path: PathBuf, feed: Feed },
    #[error("{} is {what}", path.display())]
    NoRows { path: PathBuf, what: &'static str },
    /// See [`RowError::is_fatal`].
    #[error("{}: reading stopped at {error}", path.display())]
    Interrupted { path: PathBuf, error: RowError },
    /// See [`super::Checker::at_most`].
    #[error("{}: reading stopped at {error}", path.display())]
    TooManyRows { path: PathBuf, error: RowError },
    #[error("{}: {source}", path.display())]
    Schema { path: PathBuf, source: Box<SchemaError> },
    #[error("{} contains {table} more than once: {}; keep one file", folder.display(), names.join(", "))]
    Several { folder: PathBuf, table: &'static str, names: Vec<String> },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "cannot write {}: {column:?} changed while the file was written; try again", path.display()
    )]
    Column { path: PathBuf, column: String },
}

impl FileError {
    pub(super) fn header(path: &Path, misfit: Misfit) -> Self {
        Self::Headers { refusals: vec![(path.to_owned(), misfit.reason)], flags: misfit.flags }
    }

    /// The tables of three files, or one error that says what is wrong with all their headers.
    pub fn together<A, B, C>(
        a: Result<A, Self>,
        b: Result<B, Self>,
        c: Result<C, Self>,
    ) -> Result<(A, B, C), Self> {
        match (a, b, c) {
            (Ok(a), Ok(b), Ok(c)) => Ok((a, b, c)),
            (a, b, c) => {
                let errors = [a.err(), b.err(), c.err()].into_iter().flatten();
                Err(errors.reduce(Self::join).expect("one of them is an error; this is a bug"))
            }
        }
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Headers { mut refusals, mut flags }, Self::Headers { refusals: others, flags: more }) => {
                refusals.extend(others);
                for flag in more {
                    if !flags.contains(&flag) {
                        flags.push(flag);
                    }
                }
                Self::Headers { refusals, flags }
            }
            (first, _) => first,
        }
    }
}

fn describe_headers(refusals: &[(PathBuf, String)], flags: &[String]) -> String {
    let mut lines: Vec<String> =
        refusals.iter().map(|(path, reason)| format!("{}: {reason}", path.display())).collect();
    if !flags.is_empty() {
        lines.push(format!("if these columns are what they seem, add: {}", flags.join(" ")));
    }
    lines.join("\n")
}
