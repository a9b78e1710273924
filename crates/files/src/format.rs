//! The three file formats.

use std::path::{Path, PathBuf};

use atelier_core::named;

use super::FileError;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    JsonLines,
    Csv,
    Parquet,
}

// Its words are also file extensions.
named!(Format, "expected jsonl, csv or parquet", JsonLines = "jsonl", Csv = "csv", Parquet = "parquet");

impl Format {
    /// By the file's extension: `.jsonl` or `.ndjson`, `.csv`, `.parquet`, in any case.
    pub fn from_path(path: &Path) -> Result<Self, FileError> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            "csv" => Ok(Self::Csv),
            "parquet" => Ok(Self::Parquet),
            _ => Err(FileError::Extension { path: path.to_owned() }),
        }
    }

    /// Like [`Format::from_path`], for a file to read: `.tsv` and `.txt` are CSV, too, and `.gz` may follow, except after `.parquet`,
    /// which is compressed inside.
    pub fn from_input(path: &Path) -> Result<Self, FileError> {
        let inner = without_gz(path);
        if ["tsv", "txt"].iter().any(|text| has_extension(&inner, text)) {
            return Ok(Self::Csv);
        }
        match Self::from_path(&inner) {
            Ok(format) if format != Self::Parquet || inner == path => Ok(format),
            _ => Err(FileError::Extension { path: path.to_owned() }),
        }
    }
}

/// The path of what is compressed in a file.
pub(super) fn without_gz(path: &Path) -> PathBuf {
    if has_extension(path, "gz") { path.with_extension("") } else { path.to_owned() }
}

fn has_extension(path: &Path, expected: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_an_extension_and_a_name() {
        for (path, written, read) in [
            ("a/articles.jsonl", Some(Format::JsonLines), Some(Format::JsonLines)),
            ("articles.ndjson", Some(Format::JsonLines), Some(Format::JsonLines)),
            ("articles.v2.CSV", Some(Format::Csv), Some(Format::Csv)),
            ("articles.parquet", Some(Format::Parquet), Some(Format::Parquet)),
            ("articles.TXT", None, Some(Format::Csv)),
            ("articles.tsv.gz", None, Some(Format::Csv)),
            ("articles.xlsx", None, None),
            ("csv", None, None),
            ("a/articles.CSV.GZ", None, Some(Format::Csv)),
            ("articles.parquet.gz", None, None),
        ] {
            let found = (Format::from_path(Path::new(path)).ok(), Format::from_input(Path::new(path)).ok());
            assert_eq!(found, (written, read), "{path}");
        }
        for format in [Format::JsonLines, Format::Csv, Format::Parquet] {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        assert_eq!("json".parse::<Format>().unwrap_err(), "expected jsonl, csv or parquet; found \"json\"");
    }
}
