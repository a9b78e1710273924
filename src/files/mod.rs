//! The three tables (articles, customers, outfits) as files: JSON Lines, CSV and Parquet, read and
//! written a row at a time.
//!
//! This module knows files and domain types. It must never know the database, HTTP or the terminal:
//! whoever calls it shows the progress and keeps the rows. Data comes in through [`read`], which turns
//! each row of a file into a domain value or into a [`RowError`] that a shop's data person
//! understands; [`Checker`] adds what no single row can show (repetitions, unknown references). It goes
//! out through [`Writer`], which shows a file only once it is whole.
//!
//! Inside, every row of every format becomes the same thing, the fields of a JSON object
//! (`value::Fields`), and `table` alone turns those into domain values and back. So the formats
//! cannot disagree on what is valid.
//!
//! # JSON Lines, and the canonical form
//!
//! One object a line: an article is `{"id","type", …attributes…}`, a customer `{"id","features":{…}}`,
//! an outfit `{"customer","articles":[…],"split","features":{…}}` where split and features may be
//! missing. Blank lines, CRLF and a byte order mark are read over; `null` stands for "not given". An id may
//! be a whole number, as pandas and SQL write it, and is the text of its digits; a number with a fraction,
//! `17.0` among them, is no id: beyond 2^53 floats have lost digits that mattered.
//!
//! What [`Writer`] writes is the canonical form, and reading it and writing it again gives the same
//! bytes:
//! - no spaces; one `\n` after every row, the last one too; no byte order mark;
//! - fields in the order above; attributes, features, and the keys of nested objects sorted by the bytes
//!   of their names;
//! - an outfit without split or features lacks the field; a customer always has `features`;
//! - what is not given is left out, never `null` (a `null` inside a list or a nested object stays);
//! - an id is a text;
//! - a number is written with the fewest digits that read back as it, a whole one below 10^16 without
//!   `.0` or exponent; zero has no sign;
//! - a feature that the schema calls a set is a list, even of one;
//! - texts escape what JSON demands and nothing else.
//!
//! Of a whole table, as `atelier export` writes it, articles and customers come sorted by the bytes of
//! their ids, outfits in the order in which they came. An outfit that a file holds more than once (customer,
//! set of articles and features alike) comes back as often; its import notes it ([`Checker`]).
//!
//! # CSV
//!
//! A header, then a record a row; a set's values and an outfit's articles are joined with `|`, an empty
//! cell is "not given". A feature's column has its name (`age` or `features.age`), and the schema says
//! how it is read: a category is text as it stands, a set is split, a number must be one. Attributes of
//! articles, and features that the schema does not know, are inferred: `true` and `false`
//! (`True` from pandas, `TRUE` from Excel), numbers as JSON writes them, `a|b` as a list, a cell that
//! begins with `"`, `[` or `{` and is JSON as that JSON, all else as text. A value that would be misread
//! so is written as JSON in its cell, and JSON texts are understood in every such column, so nothing is
//! lost on the way.
//!
//! # Parquet
//!
//! The same flat columns. Lists may have two or three levels and any inner names, features may stand in
//! a struct column `features`, an annotated JSON column is read as JSON. Ids may be columns of whole numbers.
//! Decimals are read as numbers,
//! dates and timestamps as ISO 8601 texts; pandas' index column is left out. Columns are written as
//! narrow as their values allow: text, truth, whole number, number, list of texts, else JSON.
//!
//! # Outfits to complete, and what belongs in them
//!
//! `atelier complete` reads outfits with blanks in the same formats (`open_outfits`), and writes a table of its own
//! that nobody imports, through [`SuggestionWriter`].

mod check;
mod csv;
mod error;
mod features;
mod flat;
mod folder;
mod format;
mod json_lines;
mod json_text;
mod known;
mod open_outfits;
mod parquet;
mod rows;
mod shape;
mod suggestions;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod writer;

pub use check::{BadRow, Checked, Checker, Noted, Report, Warning};
pub use error::{ExchangeError, RowError, Unit};
pub use folder::{Files, SCHEMA, read_schema, schema_of};
pub use format::Format;
pub use json_lines::json_line;
pub use json_text::json_reason;
pub(crate) use parquet::guarded;
pub use rows::{Row, Rows, read};
pub use shape::Shape;
pub use suggestions::{SuggestionRow, SuggestionWriter};
pub use table::Table;
pub use writer::Writer;
