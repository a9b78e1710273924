//! Which of the three formats a file has.

use std::{fmt, path::Path, str::FromStr};

use super::ExchangeError;

/// A file format for the three tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    JsonLines,
    Csv,
    Parquet,
}

impl Format {
    /// By the file's ending: `.jsonl` or `.ndjson`, `.csv`, `.parquet`, in any case.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn of(path: &Path) -> Result<Self, ExchangeError> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            "csv" => Ok(Self::Csv),
            "parquet" => Ok(Self::Parquet),
            _ => Err(ExchangeError::Ending { path: path.to_owned() }),
        }
    }

    /// The name, which is also the ending of files of this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

impl FromStr for Format {
    type Err = ExchangeError;

    fn from_str(name: &str) -> Result<Self, ExchangeError> {
        [Self::JsonLines, Self::Csv, Self::Parquet]
            .into_iter()
            .find(|format| format.extension() == name)
            .ok_or_else(|| ExchangeError::Format { name: name.to_owned() })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_ending_and_by_name() {
        let of = |path: &str| Format::of(Path::new(path));
        assert_eq!(of("a/articles.jsonl").unwrap(), Format::JsonLines);
        assert_eq!(of("articles.ndjson").unwrap(), Format::JsonLines);
        assert_eq!(of("articles.v2.CSV").unwrap(), Format::Csv);
        assert_eq!(of("articles.parquet").unwrap(), Format::Parquet);
        assert_eq!(
            of("articles.xlsx").unwrap_err().to_string(),
            "articles.xlsx: the ending says no known format; expected .jsonl, .ndjson, .csv or .parquet"
        );
        assert!(of("csv").is_err(), "a name is no ending");
        for format in [Format::JsonLines, Format::Csv, Format::Parquet] {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        assert_eq!(
            "json".parse::<Format>().unwrap_err().to_string(),
            "expected jsonl, csv or parquet, found \"json\""
        );
    }
}
