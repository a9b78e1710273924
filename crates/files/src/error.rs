//! Why a file cannot be read or written.

use std::{
    io,
    path::{Path, PathBuf},
};

use atelier_core::domain::SchemaError;

use super::RowError;

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
    Feed { path: PathBuf, feed: &'static str },
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

/// Why a header does not fit, and the flags of the command with which it would.
#[derive(Debug, PartialEq)]
pub(super) struct Misfit {
    pub(super) reason: String,
    pub(super) flags: Vec<String>,
}

impl From<String> for Misfit {
    fn from(reason: String) -> Self {
        Self { reason, flags: Vec::new() }
    }
}

/// Why a row could not be written.
pub(super) enum WriteError {
    Disk(io::Error),
    /// The columns do not include this one, or its type is narrower.
    Column(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
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
                Err(errors.reduce(Self::join).expect("one of them is an error"))
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
