//! What belongs in outfits' blanks, as Parquet or JSON Lines: a row a suggestion.
//!
//! Its columns are known beforehand and it has twenty rows where the other tables have one, so Parquet's columns are
//! filled without the way through a row's fields.

use std::{
    fmt,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use ::parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::Type,
};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{
    ExchangeError, Format,
    writer::{beside, buffered, put_in_place},
};

/// Rows of a row group: all of them are in memory at once.
const GROUP: usize = 200_000;

/// One suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SuggestionRow<'a> {
    /// Which row of the part with the outfits it is for, from 1.
    pub row: i64,
    pub customer: &'a str,
    /// The blank's place in the outfit, from 0; one past its end where it had none.
    pub slot: i32,
    /// From 1 up.
    pub rank: i32,
    pub article: &'a str,
    /// Over the whole vocabulary.
    pub probability: f64,
}

/// Writes suggestions to a file that appears, whole, when [`SuggestionWriter::finish`] is called.
#[derive(Debug)]
pub struct SuggestionWriter {
    sink: Sink,
    target: PathBuf,
}

#[derive(Debug)]
enum Sink {
    JsonLines(BufWriter<NamedTempFile>),
    Parquet(Box<Columns>),
}

impl SuggestionWriter {
    /// # Errors
    /// If the folder is not there or cannot be written to, or the ending says neither Parquet nor JSON Lines.
    pub fn create(path: &Path) -> Result<Self, ExchangeError> {
        let write = |source| ExchangeError::Write { path: path.to_owned(), source };
        let sink = match Format::of(path)? {
            Format::JsonLines => Sink::JsonLines(buffered(beside(path).map_err(write)?)),
            Format::Parquet => {
                let columns = beside(path).and_then(Columns::new);
                Sink::Parquet(Box::new(columns.map_err(write)?))
            }
            Format::Csv => return Err(ExchangeError::Ending { path: path.to_owned() }),
        };
        Ok(Self { sink, target: path.to_owned() })
    }

    pub fn write(&mut self, row: SuggestionRow<'_>) -> Result<(), ExchangeError> {
        let written = match &mut self.sink {
            Sink::JsonLines(output) => serde_json::to_writer(&mut *output, &row)
                .map_err(io::Error::from)
                .and_then(|()| output.write_all(b"\n")),
            Sink::Parquet(columns) => columns.push(row),
        };
        written.map_err(|source| ExchangeError::Write { path: self.target.clone(), source })
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<(), ExchangeError> {
        let Self { sink, target } = self;
        let file = || -> io::Result<NamedTempFile> {
            Ok(match sink {
                Sink::JsonLines(output) => output.into_inner()?,
                Sink::Parquet(columns) => columns.finish()?,
            })
        };
        file()
            .and_then(|file| put_in_place(file, &target))
            .map_err(|source| ExchangeError::Write { path: target.clone(), source })
    }
}

/// A row group that is being filled.
struct Columns {
    file: SerializedFileWriter<NamedTempFile>,
    rows: Vec<i64>,
    customers: Vec<ByteArray>,
    slots: Vec<i32>,
    ranks: Vec<i32>,
    articles: Vec<ByteArray>,
    probabilities: Vec<f64>,
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl Columns {
    fn new(file: NamedTempFile) -> io::Result<Self> {
        let column = |name, physical, logical| {
            let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
            column.with_logical_type(logical).build().map(Arc::new)
        };
        let text = || Some(LogicalType::String);
        let fields = vec![
            column("row", Physical::INT64, None)?,
            column("customer", Physical::BYTE_ARRAY, text())?,
            column("slot", Physical::INT32, None)?,
            column("rank", Physical::INT32, None)?,
            column("article", Physical::BYTE_ARRAY, text())?,
            column("probability", Physical::DOUBLE, None)?,
        ];
        let root = Type::group_type_builder("suggestions").with_fields(fields).build()?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        Ok(Self {
            file: SerializedFileWriter::new(file, Arc::new(root), Arc::new(properties))?,
            rows: Vec::new(),
            customers: Vec::new(),
            slots: Vec::new(),
            ranks: Vec::new(),
            articles: Vec::new(),
            probabilities: Vec::new(),
        })
    }

    fn push(&mut self, row: SuggestionRow<'_>) -> io::Result<()> {
        // The suggestions of one blank follow each other: they share the customer's bytes.
        let customer = match self.customers.last() {
            Some(last) if last.data() == row.customer.as_bytes() => last.clone(),
            _ => row.customer.into(),
        };
        self.rows.push(row.row);
        self.customers.push(customer);
        self.slots.push(row.slot);
        self.ranks.push(row.rank);
        self.articles.push(row.article.into());
        self.probabilities.push(row.probability);
        if self.rows.len() == GROUP { self.flush() } else { Ok(()) }
    }

    fn finish(mut self) -> io::Result<NamedTempFile> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group()?;
        macro_rules! column {
            ($type:ty, $values:expr) => {
                let mut column = group.next_column()?.expect("as many columns as fields; this is a bug");
                column.typed::<$type>().write_batch($values, None, None)?;
                column.close()?;
                $values.clear();
            };
        }
        column!(Int64Type, &mut self.rows);
        column!(ByteArrayType, &mut self.customers);
        column!(Int32Type, &mut self.slots);
        column!(Int32Type, &mut self.ranks);
        column!(ByteArrayType, &mut self.articles);
        column!(DoubleType, &mut self.probabilities);
        group.close()?;
        Ok(())
    }
}
