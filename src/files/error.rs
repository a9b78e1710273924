//! What can be wrong with a row, and with a file.

use std::{fmt, io, path::PathBuf};

use crate::domain::SchemaError;

/// A row that cannot be used, and why, in words for whoever made the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The line that the row begins on, from 1 (a CSV header has line 1); in Parquet, which has no
    /// lines, the number of the row.
    pub line: u64,
    pub reason: String,
    unit: Unit,
    fatal: bool,
}

/// What a row's number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Line,
    Row,
}

impl RowError {
    pub(super) fn new(unit: Unit, line: u64, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), unit, fatal: false }
    }

    /// The file cannot be read past this row.
    pub(super) fn fatal(unit: Unit, line: u64, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into(), unit, fatal: true }
    }

    /// Whether reading ended here although the file did not: rows after this one were never seen, so
    /// skipping it as a bad row would lose them silently.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }
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

/// Why a file as a whole cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(
        "{}: the ending says no known format; expected .jsonl, .ndjson, .csv or .parquet", path.display()
    )]
    Ending { path: PathBuf },
    #[error("expected jsonl, csv or parquet, found {name:?}")]
    Format { name: String },
    #[error("cannot read {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read {}: it is a folder; name a file in it", path.display())]
    Folder { path: PathBuf },
    /// The header, or the columns of a Parquet file, are not those of the table.
    #[error("{}: {reason}", path.display())]
    Columns { path: PathBuf, reason: String },
    #[error("{}: this is no Parquet file that can be read: {reason}", path.display())]
    Parquet { path: PathBuf, reason: String },
    /// See [`RowError::is_fatal`].
    #[error("{}: reading stopped at {error}", path.display())]
    Interrupted { path: PathBuf, error: RowError },
    #[error("{}: {source}", path.display())]
    Schema { path: PathBuf, source: Box<SchemaError> },
    #[error("{} holds {table} more than once: {}; leave one there", folder.display(), names.join(", "))]
    Several { folder: PathBuf, table: &'static str, names: Vec<String> },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "cannot write {}: a row's {column:?} does not fit what the first pass saw; \
         the data changed in between, write it again", path.display()
    )]
    Shape { path: PathBuf, column: String },
}
