//! How a shop's own files differ from those that Atelier writes: the delimiter and the encoding of their text, and the names of
//! their columns.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use atelier_core::domain::fold;

use super::{NotWorn, Table};

/// The delimiters of CSV.
pub(super) const DELIMITERS: [Delimiter; 4] =
    [Delimiter::COMMA, Delimiter(b';'), Delimiter::TAB, Delimiter(b'|')];

/// Differences between files of an import.
#[derive(Debug, Clone, Default)]
pub struct Dialect {
    /// Of CSV and Shopify's exports. Without one it is the first of `,`, `;`, tab and `|` with which the header has the columns
    /// that are needed.
    pub delimiter: Option<Delimiter>,
    /// Of CSV and feeds that do not begin with a byte order mark; UTF-8 if none is named.
    pub encoding: Option<Encoding>,
    /// Of CSV and Parquet.
    pub map: Vec<Mapping>,
    /// Left out of feeds.
    pub not_worn: NotWorn,
}

/// Separates the cells of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter(pub(super) u8);

impl Delimiter {
    pub(super) const COMMA: Self = Self(b',');
    const TAB: Self = Self(b'\t');
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = match name {
            "tab" | "\\t" => Some(&Self::TAB),
            _ => DELIMITERS.iter().find(|delimiter| name.as_bytes() == [delimiter.0]),
        };
        found.copied().ok_or_else(|| format!("expected \",\", \";\", \"|\" or tab, found {name:?}"))
    }
}

/// As a shell needs it.
impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::TAB { f.write_str("tab") } else { write!(f, "'{}'", char::from(self.0)) }
    }
}

/// An encoding of the [Encoding Standard](https://encoding.spec.whatwg.org), by one of its names there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(pub(super) &'static encoding_rs::Encoding);

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        encoding_rs::Encoding::for_label_no_replacement(name.as_bytes()).map(Self).ok_or_else(|| {
            format!("expected utf-8, windows-1252, utf-16le or another name of the Encoding Standard, found {name:?}")
        })
    }
}

/// `FROM=TO`: the column FROM is TO. `articles.FROM=TO` is about the table of articles only, and without TO the column is left
/// out. Case and spaces around the name do not matter.
#[derive(Debug, Clone)]
pub struct Mapping {
    from: String,
    to: String,
    used: Arc<AtomicBool>,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.rsplit_once('=').ok_or_else(|| {
            format!("expected the name in the file and the name in Atelier, as in Artikelnummer=id, found {text:?}")
        })?;
        Ok(Self { from: from.trim().to_owned(), to: to.trim().to_owned(), used: Arc::default() })
    }
}

impl Dialect {
    /// The name of a file's column in Atelier; `None` if the column is left out.
    pub(super) fn rename<'n, T: Table>(&'n self, column: &'n str) -> Option<&'n str> {
        let folded = fold(column);
        let of_table = format!("{}.{folded}", T::NAME);
        let find = |name: &str| self.map.iter().rfind(|mapping| fold(&mapping.from) == name);
        let Some(mapping) = find(&of_table).or_else(|| find(&folded)) else { return Some(column) };
        mapping.used.store(true, Ordering::Relaxed);
        Some(mapping.to.as_str()).filter(|to| !to.is_empty())
    }

    /// Call this after all files are opened.
    pub fn check_used(&self) -> Result<(), String> {
        match self.map.iter().find(|mapping| !mapping.used.load(Ordering::Relaxed)) {
            Some(Mapping { from, to, .. }) => {
                Err(format!("--map {from}={to}: no CSV or Parquet file has a column {from:?}"))
            }
            None => Ok(()),
        }
    }
}
