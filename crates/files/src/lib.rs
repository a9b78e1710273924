//! The three tables (articles, customers, outfits) as files: JSON Lines, CSV and Parquet, read and written row by row.
//!
//! This crate knows files and domain types. It must not know the database, HTTP or the terminal: callers show the
//! progress and store the rows. [`read()`] turns each row of a file into a domain value or a [`RowError`] that the shop's
//! data people understand; [`Checker`] adds the checks that need more than one row. [`Writer`] writes a file, which
//! appears only once it is complete.
//!
//! Every row of every format becomes the fields of a JSON object (`json::Fields`), and only the tables (`catalogue`, `orders`,
//! `events`, `looks`, `accepted`) turn those into domain values and back. So all formats accept the same data. A row has at most 1 MiB: callers hold several, parsed.
//!
//! Imports between the modules go one way: rows and their errors (`json`, `row`, `error`, `format`, `input`); what a table is
//! (`seen`, `table`); its columns (`header`, `columns`, `dialect`); the formats (`json_lines`, `csv`, `parquet`, `feed`); the tables;
//! whole files (`read`, `write`, `rows`, `folder`, `check`).
//!
//! # JSON Lines, and the canonical form
//!
//! Each line is an object: an article is `{"id","type", …attributes…}`, a customer `{"id","features":{…}}`, an outfit
//! `{"customer","articles":[…],"split","features":{…}}` with optional split and features. The reader skips blank lines
//! and a byte order mark, and accepts CRLF; `null` means "not given". An id may be a whole number, as pandas and SQL
//! write it, and becomes the text of its digits. A number with a fraction, such as `17.0`, is not an id: above 2^53
//! floats lose digits.
//!
//! [`Writer`] writes the canonical form. Reading and writing it again gives the same bytes:
//! - no spaces; `\n` after every row, including the last; no byte order mark;
//! - fields in the order above; attributes, features and the names of nested objects sorted by bytes;
//! - an outfit without split or features omits the field; a customer always has `features`;
//! - what is not given is omitted, never `null` (a `null` inside a list or a nested object stays);
//! - an id is a string;
//! - a number has the fewest digits that read back as it; below 10^16 a whole number has no `.0` or exponent; zero has
//!   no sign;
//! - a feature that the schema calls a set is a list, even of one value;
//! - strings escape only what JSON requires.
//!
//! `atelier export` sorts articles and customers by the bytes of their ids, and writes outfits in the order in which
//! they came. An outfit that a file contains several times (same customer, set of articles and features) is exported as
//! often; the import warns of it ([`Checker`]).
//!
//! # CSV
//!
//! A header, then a record for each row. A set's values and an outfit's articles are joined with `|`; an empty cell means "not
//! given". A feature's column is named after it (`age` or `features.age`), and the schema determines how it is read: a category
//! is plain text, a set is split, a number must be one, written as prices are. The types of attributes, and of features that the
//! schema does not list, are inferred: `true` and `false` (`True` from pandas, `TRUE` from Excel), numbers as JSON writes them,
//! `a|b` as a list, a cell that begins with `"`, `[` or `{` and is valid JSON as that JSON, and other cells as text; in a
//! `price`, `1.299` is a text, which [`Checker`] refuses because it may be a thousand. A value that would be misread is written
//! as JSON, which every such column accepts, so nothing is lost. If most cells of a column are texts, or one is a code like
//! `007`, cells that look like numbers are texts, too. The texts of a column that has both are therefore written as JSON.
//! [`Dialect`] is about delimiters, encodings and the names of columns in files of other systems.
//!
//! # Parquet
//!
//! The same flat columns. Lists may have two or three levels and any inner names, features may be in a struct column
//! `features`, and a column annotated as JSON is read as JSON. Ids may be columns of whole numbers. Decimals are read as
//! numbers, dates and timestamps as ISO 8601 texts; the index column of pandas is ignored. Columns are written with the
//! narrowest type for their values: text, boolean, whole number, number, list of texts, else JSON. A column that cannot be read
//! is left out, with a note, unless the table or the schema needs it.
//!
//! # Compressed files
//!
//! A file of any format but Parquet, which is compressed inside, may be compressed with gzip. Its first bytes say so.
//!
//! # Feeds
//!
//! `feed` reads the product feeds of other systems as articles; [`read_open()`] recognises them.
//!
//! # Orders and events
//!
//! [`OrderLine`] is a purchase: `atelier export` writes purchases, and `atelier-training import` makes outfits from them.
//! [`EventRow`] is something that a customer did in the shop, for `atelier import`.
//!
//! # Outfits to complete, and suggestions
//!
//! `atelier complete` reads outfits with blanks ([`OpenOutfit`](atelier_core::domain::OpenOutfit)) in the same formats, and
//! writes suggestions through [`RowWriter`].
//!
//! # Looks
//!
//! [`LookRow`] is a table of the looks that editors publish.

mod accepted;
mod catalogue;
mod check;
mod columns;
mod csv;
mod dialect;
mod error;
mod events;
mod feed;
mod folder;
mod format;
mod header;
mod input;
mod json;
mod json_lines;
mod looks;
mod not_worn;
mod orders;
mod parquet;
mod read;
mod row;
mod rows;
mod seen;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use accepted::AcceptedOutfit;
pub use catalogue::Deletion;
pub use check::{BadRows, Checked, Checker, CountedWarning, Report};
pub use columns::TableColumns;
pub use dialect::{Delimiter, Dialect, Encoding, Mapping};
pub use error::FileError;
pub use events::EventRow;
pub use feed::Feed;
pub use folder::{
    Files, RETIRED, SCHEMA, find_table, read_folder_schema, read_schema, read_times, write_lines,
    write_retired, write_times,
};
pub use format::Format;
pub use json::{
    contains_nul, describe_type, explain_json_error, explain_utf8_error, find_repeated_name, make_canonical,
};
pub use json_lines::json_line;
pub use looks::LookRow;
pub use not_worn::NotWorn;
pub use orders::OrderLine;
pub use parquet::{PlainColumn, catch_panic, write_columns};
pub use read::{InputFormat, Rows, open, read, read_as, read_json_lines, read_open};
pub use row::{FileRow, RowError, Unit, Warning, strip_values};
pub use rows::{LookPiece, RowWriter, SuggestionRow};
pub use table::Table;
pub use write::Writer;
