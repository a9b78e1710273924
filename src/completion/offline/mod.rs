//! Completing outfits from files into files without a service, such as every night for millions of customers.
//!
//! The input is a folder of parts (`part-00000.parquet` …, Parquet or JSON Lines). The output is a folder with a part of
//! the same name for each, which contains the suggestions for its blanks. A part appears when it is complete, and an
//! existing part is not made again, so an interrupted run can be restarted. Outfits are answered as `/complete` answers
//! them.
//!
//! It knows files, the engine and profiles; it must not know the terminal or HTTP.

mod part;
mod profiles;

use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use atelier_core::domain::Method;
use atelier_engine::inference::AskError;
use atelier_files::{FileError, Format, RowError};

pub use self::{
    part::{BATCH, Job, complete_part},
    profiles::Profiles,
};

use super::Filters;
use crate::platform::db::StoreError;

/// The number of bad rows, and of different warnings, that are reported of a part.
pub const LISTED: usize = 20;

/// How every outfit is completed.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub method: Method,
    pub k: usize,
    pub filters: Filters,
    pub diversity: f64,
    /// Whether a part with bad rows is written without them, rather than not at all.
    pub skip_bad: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Counts of completed outfits and of their suggestions.
    pub outfits: u64,
    pub suggestions: u64,
    /// The count of bad rows, and the first ones with their reasons.
    pub bad: u64,
    pub errors: Vec<(u64, String)>,
    /// The first different warnings, and how many more were given.
    pub warnings: Vec<CountedWarning>,
    pub more_warnings: u64,
    /// Says which columns of the part are not read.
    pub unread: Option<String>,
    pub written: bool,
}

/// A warning, the first row whose answer has it, and the number of such answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedWarning {
    pub detail: String,
    pub row: u64,
    pub answers: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path}, {error}", path = .path.display())]
    Row { path: PathBuf, error: RowError },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("{path}: {source}", path = .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{path} contains no parts, which are files that end in .parquet, .jsonl or .ndjson", path = .path.display())]
    Empty { path: PathBuf },
}

/// The share of the parts that one of several processes makes: the `index`th of `count`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: usize,
    count: usize,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if index < count => Ok(Self { index, count }),
            _ => Err(format!("a share is INDEX/COUNT with an index from 0, as in 0/4; found {text:?}")),
        }
    }
}

/// The folder's parts of this share, sorted by name. Files whose names begin with `.` or `_` are not parts: Spark and
/// others name their own files so.
pub fn find_parts(folder: &Path, share: Share) -> Result<Vec<PathBuf>, OfflineError> {
    let at = |source| OfflineError::Folder { path: folder.to_owned(), source };
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(at)? {
        let path = entry.map_err(at)?.path();
        let hidden = path.file_name().is_some_and(|name| {
            name.as_encoded_bytes().starts_with(b".") || name.as_encoded_bytes().starts_with(b"_")
        });
        if !hidden && matches!(Format::from_path(&path), Ok(Format::Parquet | Format::JsonLines)) {
            parts.push(path);
        }
    }
    if parts.is_empty() {
        return Err(OfflineError::Empty { path: folder.to_owned() });
    }
    parts.sort_unstable();
    Ok(share.of(parts.into_iter()).collect())
}

impl Share {
    /// Its parts of all.
    pub fn of<T>(self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        all.skip(self.index).step_by(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_belongs_to_one_share() {
        let folder = tempfile::tempdir().unwrap();
        let names = "part-2.parquet part-0.jsonl part-1.parquet _SUCCESS .part-3.parquet _x.jsonl a.txt";
        for name in names.split(' ') {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |share: &str| -> Vec<String> {
            let parts = find_parts(folder.path(), share.parse().unwrap()).unwrap();
            parts.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names("0/1"), ["part-0.jsonl", "part-1.parquet", "part-2.parquet"]);
        assert_eq!(names("0/2"), ["part-0.jsonl", "part-2.parquet"]);
        assert_eq!(names("1/2"), ["part-1.parquet"]);
        assert!(names("3/4").is_empty(), "more processes than parts");
        for wrong in ["1/1", "0/0", "1", "a/b", "-1/2"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
