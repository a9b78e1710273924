//! Suggestions as Parquet or JSON Lines, a row each.
//!
//! There are many times more suggestions than outfits, and their columns are fixed, so this writes Parquet columns
//! directly rather than through a row's fields.

use std::{
    fmt,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use ::parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type},
    file::writer::SerializedFileWriter,
    schema::types::Type,
};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{
    FileError, Format, parquet,
    write::{buffered, create_beside, move_into_place},
};

/// Rows of a row group, which are in memory at once.
const GROUP: usize = 200_000;

/// One suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SuggestionRow<'a> {
    /// The row of the outfit in its part, from 1.
    pub row: i64,
    pub customer: &'a str,
    /// The blank's slot, from 0; one past the end of an outfit without a blank.
    pub slot: i32,
    /// From 1.
    pub rank: i32,
    pub article: &'a str,
    /// The id of the variant that fits the customer; empty if there is none.
    pub variant: &'a str,
    /// Of the probability of all articles that pass the filters.
    pub share: f64,
}

/// Writes suggestions to a file, which appears when [`SuggestionWriter::finish`] is called.
#[derive(Debug)]
pub struct SuggestionWriter {
    sink: Sink,
    target: PathBuf,
}

#[derive(Debug)]
enum Sink {
    JsonLines(BufWriter<NamedTempFile>),
    Parquet(Box<SuggestionColumns>),
}

impl SuggestionWriter {
    /// # Errors
    /// If the folder is missing or cannot be written to, or the file name ends in neither `.parquet` nor `.jsonl`.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let write = |source| FileError::Write { path: path.to_owned(), source };
        let sink = match Format::from_path(path)? {
            Format::JsonLines => Sink::JsonLines(buffered(create_beside(path).map_err(write)?)),
            Format::Parquet => {
                let columns = create_beside(path).and_then(SuggestionColumns::new);
                Sink::Parquet(Box::new(columns.map_err(write)?))
            }
            Format::Csv => return Err(FileError::Extension { path: path.to_owned() }),
        };
        Ok(Self { sink, target: path.to_owned() })
    }

    pub fn write(&mut self, row: SuggestionRow<'_>) -> Result<(), FileError> {
        let written = match &mut self.sink {
            Sink::JsonLines(output) => serde_json::to_writer(&mut *output, &row)
                .map_err(io::Error::from)
                .and_then(|()| output.write_all(b"\n")),
            Sink::Parquet(columns) => columns.push(row),
        };
        written.map_err(|source| FileError::Write { path: self.target.clone(), source })
    }

    /// Moves the file into place.
    pub fn finish(self) -> Result<(), FileError> {
        let Self { sink, target } = self;
        let file = || -> io::Result<NamedTempFile> {
            Ok(match sink {
                Sink::JsonLines(output) => output.into_inner()?,
                Sink::Parquet(columns) => columns.finish()?,
            })
        };
        file()
            .and_then(|file| move_into_place(file, &target))
            .map_err(|source| FileError::Write { path: target.clone(), source })
    }
}

/// The row group being filled.
struct SuggestionColumns {
    file: SerializedFileWriter<NamedTempFile>,
    rows: Vec<i64>,
    customers: Vec<ByteArray>,
    slots: Vec<i32>,
    ranks: Vec<i32>,
    articles: Vec<ByteArray>,
    variants: Vec<ByteArray>,
    shares: Vec<f64>,
}

impl fmt::Debug for SuggestionColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuggestionColumns").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl SuggestionColumns {
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
            column("variant", Physical::BYTE_ARRAY, text())?,
            column("share", Physical::DOUBLE, None)?,
        ];
        Ok(Self {
            file: parquet::create("suggestions", fields, file)?,
            rows: Vec::new(),
            customers: Vec::new(),
            slots: Vec::new(),
            ranks: Vec::new(),
            articles: Vec::new(),
            variants: Vec::new(),
            shares: Vec::new(),
        })
    }

    fn push(&mut self, row: SuggestionRow<'_>) -> io::Result<()> {
        // The suggestions of one blank follow each other, and share the customer's bytes.
        let customer = match self.customers.last() {
            Some(last) if last.data() == row.customer.as_bytes() => last.clone(),
            _ => row.customer.into(),
        };
        self.rows.push(row.row);
        self.customers.push(customer);
        self.slots.push(row.slot);
        self.ranks.push(row.rank);
        self.articles.push(row.article.into());
        self.variants.push(row.variant.into());
        self.shares.push(row.share);
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
                let mut column = group.next_column()?.expect("every field has a column; this is a bug");
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
        column!(ByteArrayType, &mut self.variants);
        column!(DoubleType, &mut self.shares);
        group.close()?;
        Ok(())
    }
}
