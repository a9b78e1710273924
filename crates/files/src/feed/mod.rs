//! Product feeds as other systems write them: Google Merchant Center's in XML and as tab-separated text, and Shopify's
//! export of products.
//!
//! Each entry of such a feed is a variant, an article in one size. [`variants`] puts the variants of an article together,
//! and gives its fields as every other format does, so the same checks follow. Entries that are not worn are left out, and so are
//! attributes that are not listed: descriptions alone would fill the memory of a catalogue.
//!
//! docs/feeds.md has the attributes and the rules.

mod categories;
mod google;
mod shopify;
mod variants;
mod xml;

use std::{io::BufRead, path::Path};

use atelier_core::{domain::Timestamp, named};
use serde_json::Value;

pub(super) use self::google::read_moment;
use self::variants::{Article, Variant, Variants};
use super::{
    Delimiter, Dialect, FileError, FileRow, NotWorn, RowError, Unit,
    csv::Records,
    dialect::DELIMITERS,
    input::Input,
    json::{self, Fields},
    row::Bad,
};

/// A format of product feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    GoogleXml,
    GoogleTsv,
    ShopifyCsv,
}

named!(
    Feed,
    "expected google-xml, google-tsv or shopify-csv",
    GoogleXml = "google-xml",
    GoogleTsv = "google-tsv",
    ShopifyCsv = "shopify-csv",
);

impl Feed {
    /// The feed that a file holds, by its extension and its first line. `None` if it may be one of our own tables.
    pub(super) fn recognise(path: &Path, input: &mut Input) -> std::io::Result<Option<Self>> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let extension = Path::new(name).extension().unwrap_or_default().to_string_lossy().into_owned();
        let Head { line, is_marked } = Head::new(input.fill_buf()?);
        let shopify = || {
            let has = |names: &[&str]| line_has(&line, shopify_delimiter(&line), names);
            // Our own tables have a column `id`, which Shopify's do not have.
            let is_ours = has(&["id"]);
            (has(&HANDLE) && has(&["variant price", "price"]) && has(&["option1 name"]) && !is_ours)
                .then_some(Self::ShopifyCsv)
        };
        Ok(match extension.as_str() {
            "xml" if line.trim_start().starts_with('<') => Some(Self::GoogleXml),
            "tsv" | "txt" => {
                let has = |name: &str| {
                    let mut cells = line.split('\t').map(|cell| cell.trim().replace(' ', "_"));
                    cells.any(|cell| cell.strip_prefix("g:").unwrap_or(&cell) == name)
                };
                let has_type = has("product_type") || has("google_product_category");
                // Our own tables have a column `type`.
                let is_google = !is_marked && (has_type || has("id") && has("title") && !has("type"));
                if is_google { Some(Self::GoogleTsv) } else { shopify() }
            }
            "csv" => shopify(),
            _ => None,
        })
    }
}

/// The beginning of a file of text with a header.
struct Head {
    /// The header, in lower case.
    line: String,
    /// Whether a line before the header says the delimiter, as Excel has it: `sep=;`.
    is_marked: bool,
}

impl Head {
    fn new(begin: &[u8]) -> Self {
        let is_marked = begin.starts_with(b"sep=");
        let line = begin.split(|byte| *byte == b'\n').nth(is_marked.into()).unwrap_or_default();
        Self { line: String::from_utf8_lossy(line).to_ascii_lowercase(), is_marked }
    }
}

/// The first columns of a header, for messages.
fn list_begin(header: &[String]) -> String {
    header.iter().take(8).map(|cell| format!("{cell:?}")).collect::<Vec<_>>().join(", ")
}

/// The column that every export of Shopify has.
const HANDLE: [&str; 2] = ["handle", "url handle"];

fn line_has(line: &str, delimiter: Delimiter, names: &[&str]) -> bool {
    line.split(char::from(delimiter.0)).any(|cell| names.contains(&cell.trim().trim_matches('"')))
}

/// The first delimiter with which a header is one of Shopify's: Excel saves its exports again with others.
fn shopify_delimiter(line: &str) -> Delimiter {
    let splits = |delimiter: &Delimiter| line_has(line, *delimiter, &HANDLE);
    DELIMITERS.into_iter().find(splits).unwrap_or(Delimiter::COMMA)
}

/// Reads the articles of a feed.
pub(super) struct FeedReader {
    source: Source,
    variants: Variants,
    /// When the feed is read: prices may hold for a time.
    now: Timestamp,
    not_worn: NotWorn,
    /// About the bytes of the articles so far.
    given: u64,
    left_out: u64,
    /// Whether there was an entry.
    has_entries: bool,
    ended: bool,
}

enum Source {
    Xml(Box<xml::Items>),
    Tsv(Box<Records>, google::MerchantColumns),
    Shopify(Box<Records>, shopify::ProductColumns, Box<shopify::Product>),
}

/// An entry of a feed.
enum Entry {
    Variant(Box<Variant>),
    /// It is not for sale, or nobody wears it.
    LeftOut,
    /// It says nothing of its own, such as a further picture.
    Nothing,
}

impl Entry {
    fn of_google(variant: Variant, not_worn: &NotWorn) -> Self {
        let path = |(name, value): &(&str, Value)| {
            let path = value.as_str().filter(|_| ["product_type", "google_product_category"].contains(name));
            path.is_some_and(|path| not_worn.has(path))
        };
        let is_worn = !not_worn.has(&variant.kind) && !variant.shared.iter().any(path);
        if is_worn { Self::Variant(Box::new(variant)) } else { Self::LeftOut }
    }
}

impl FeedReader {
    pub(super) fn new(
        feed: Feed,
        mut input: Input,
        path: &Path,
        now: Timestamp,
        dialect: &Dialect,
    ) -> Result<Self, FileError> {
        let refuse = |reason: String| FileError::Columns { path: path.to_owned(), reason };
        let source = match feed {
            Feed::GoogleXml => Source::Xml(Box::new(xml::Items::new(input))),
            Feed::GoogleTsv => {
                let mut records = Records::new(input, b'\t');
                let columns = google::MerchantColumns::new(&records.read_header(path)?).map_err(refuse)?;
                Source::Tsv(Box::new(records), columns)
            }
            Feed::ShopifyCsv => {
                let head =
                    input.peek().map_err(|source| FileError::Open { path: path.to_owned(), source })?;
                let Head { line, is_marked } = Head::new(head);
                let delimiter = dialect.delimiter.unwrap_or_else(|| shopify_delimiter(&line));
                let mut records = Records::new(input, delimiter.0);
                if is_marked {
                    records.read_header(path)?;
                }
                let columns = shopify::ProductColumns::new(&records.read_header(path)?).map_err(refuse)?;
                Source::Shopify(Box::new(records), columns, Box::default())
            }
        };
        Ok(Self {
            source,
            variants: Variants::default(),
            now,
            not_worn: dialect.not_worn.clone(),
            given: 0,
            left_out: 0,
            has_entries: false,
            ended: false,
        })
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        match &self.source {
            Source::Xml(items) => items.progress(),
            Source::Tsv(records, _) | Source::Shopify(records, ..) => records.progress(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.given
    }

    /// How many entries are left out: not for sale, not clothing (such as gift cards), or parents of others.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out + self.variants.left_out()
    }

    pub(super) fn next<T>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, Bad>) -> Result<FileRow<T>, RowError>,
    ) -> Option<Result<FileRow<T>, RowError>> {
        loop {
            if let Some(Article { line, fields, warnings }) = self.variants.next() {
                self.given += fields.values().map(json::size).sum::<usize>() as u64;
                return Some(finish(line, Ok(fields)).map(|mut row| {
                    row.warnings.extend(warnings);
                    row
                }));
            }
            if self.ended {
                return None;
            }
            let (line, entry) = match self.source.next(self.now, &self.not_worn) {
                Ok(Some(read)) => read,
                // An empty catalogue is not what a shop means.
                Ok(None) if !self.has_entries => {
                    self.ended = true;
                    let reason = "a feed has a row for each variant, found only a header";
                    return Some(Err(RowError::fatal(Unit::Line, 1, reason)));
                }
                Ok(None) => {
                    self.ended = true;
                    self.variants.complete();
                    continue;
                }
                Err(fatal) => return Some(Err(fatal)),
            };
            self.has_entries = true;
            match entry {
                Ok(Entry::Variant(variant)) => match self.variants.add(line, *variant) {
                    Ok(None) => {}
                    Ok(Some(bad)) => return Some(finish(line, Err(bad))),
                    Err(reason) => return Some(Err(RowError::fatal(Unit::Line, line, reason))),
                },
                Ok(Entry::LeftOut) => self.left_out += 1,
                Ok(Entry::Nothing) => {}
                Err(bad) => return Some(finish(line, Err(bad))),
            }
        }
    }
}

impl Source {
    /// The next entry and its line; `None` at the end. An error ends the file.
    #[expect(clippy::type_complexity, reason = "an entry, or why it is none, or why the file ends")]
    fn next(
        &mut self,
        now: Timestamp,
        not_worn: &NotWorn,
    ) -> Result<Option<(u64, Result<Entry, Bad>)>, RowError> {
        match self {
            Self::Xml(items) => {
                let Some(item) = items.next()? else { return Ok(None) };
                let fields = item.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let variant = google::read(fields, item.wrong, now);
                let entry = variant.map(|variant| Entry::of_google(variant, not_worn)).map_err(|bad| {
                    match item.number {
                        Some(number) => {
                            Bad { reason: format!("in item {number} of the file, {}", bad.reason), ..bad }
                        }
                        None => bad,
                    }
                });
                Ok(Some((item.line, entry)))
            }
            Self::Tsv(records, columns) => {
                let Some(line) = records.next_record()? else { return Ok(None) };
                let read = records.cells().map_err(Bad::from).and_then(|cells| columns.read(&cells, now));
                let entry = read.map(|variant| Entry::of_google(variant, not_worn));
                Ok(Some((line, entry)))
            }
            Self::Shopify(records, columns, product) => {
                let Some(line) = records.next_record()? else { return Ok(None) };
                let cells = records.cells().map_err(Bad::from);
                Ok(Some((line, cells.and_then(|cells| columns.read(&cells, product, not_worn)))))
            }
        }
    }
}
