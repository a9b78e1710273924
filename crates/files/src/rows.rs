//! Rows of fixed columns as Parquet or JSON Lines: the suggestions of `atelier complete`, and the looks of `atelier looks`.
//!
//! There are many times more of them than of a table's rows, so this writes Parquet columns directly rather than through a row's
//! fields.

use std::{
    fmt,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use ::parquet::file::writer::SerializedFileWriter;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{
    FileError, Format, PlainColumn, parquet,
    write::{buffered, complete, create_beside},
};

/// Rows of a row group, which are in memory at once.
const GROUP: usize = 200_000;

/// One suggestion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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

/// One article of a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LookPiece<'a> {
    /// The article whose look it is.
    pub article: &'a str,
    /// Of the look, from 1.
    pub rank: i32,
    /// The name of a published look; empty for an outfit that the model made.
    pub look: &'a str,
    /// In the look, from 1.
    pub position: i32,
    pub piece: &'a str,
    /// The id of its only variant; empty if there are several or none.
    pub variant: &'a str,
    /// The look's own article, which cannot be had; empty if it is this one.
    pub replaces: &'a str,
    /// Price of the look; null in JSON Lines and NaN in Parquet if an article has no price.
    pub total: f64,
}

/// A row of fixed columns.
pub trait FlatRow: Serialize + Default {
    const TABLE: &'static str;

    /// The columns with the row's cells, each of the same kind in every row.
    fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)>;
}

#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Text(&'a str),
    Long(i64),
    Int(i32),
    Double(f64),
}

macro_rules! flat_row {
    ($row:ident, $table:literal, $($kind:ident $column:ident),+) => {
        impl FlatRow for $row<'_> {
            const TABLE: &'static str = $table;

            fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)> {
                [$((stringify!($column), Cell::$kind(self.$column))),+].into_iter()
            }
        }
    };
}

flat_row!(
    SuggestionRow, "suggestions",
    Long row, Text customer, Int slot, Int rank, Text article, Text variant, Double share
);
flat_row!(
    LookPiece, "looks",
    Text article, Int rank, Text look, Int position, Text piece, Text variant, Text replaces, Double total
);

/// Writes rows of one type to a file, which appears when [`RowWriter::finish`] is called.
pub struct RowWriter {
    sink: Sink,
    target: PathBuf,
}

impl fmt::Debug for RowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriter").field("target", &self.target).finish_non_exhaustive()
    }
}

enum Sink {
    JsonLines(BufWriter<NamedTempFile>),
    Parquet(Box<Columns>),
}

impl RowWriter {
    pub fn create<Row: FlatRow>(path: &Path) -> Result<Self, FileError> {
        let write = |source| FileError::Write { path: path.to_owned(), source };
        let sink = match Format::from_path(path)? {
            Format::JsonLines => Sink::JsonLines(buffered(create_beside(path).map_err(write)?)),
            Format::Parquet => {
                let columns = create_beside(path).and_then(Columns::new::<Row>);
                Sink::Parquet(Box::new(columns.map_err(write)?))
            }
            Format::Csv => return Err(FileError::Extension { path: path.to_owned() }),
        };
        Ok(Self { sink, target: path.to_owned() })
    }

    pub fn write(&mut self, row: &impl FlatRow) -> Result<(), FileError> {
        let written = match &mut self.sink {
            Sink::JsonLines(output) => serde_json::to_writer(&mut *output, row)
                .map_err(io::Error::from)
                .and_then(|()| output.write_all(b"\n")),
            Sink::Parquet(columns) => columns.push(row),
        };
        written.map_err(|source| FileError::Write { path: self.target.clone(), source })
    }

    /// Moves the file into place.
    pub fn finish(self) -> Result<(), FileError> {
        let Self { sink, target } = self;
        complete(&target, || match sink {
            Sink::JsonLines(output) => Ok(output.into_inner()?),
            Sink::Parquet(columns) => columns.finish(),
        })
    }
}

/// The row group being filled.
struct Columns {
    file: SerializedFileWriter<NamedTempFile>,
    filled: Vec<PlainColumn>,
    rows: usize,
}

impl Columns {
    fn new<Row: FlatRow>(file: NamedTempFile) -> io::Result<Self> {
        let (mut fields, mut filled) = (Vec::new(), Vec::new());
        for (name, cell) in Row::default().cells() {
            let column = match cell {
                Cell::Text(_) => PlainColumn::Texts(Vec::new()),
                Cell::Long(_) => PlainColumn::Longs(Vec::new()),
                Cell::Int(_) => PlainColumn::Ints(Vec::new()),
                Cell::Double(_) => PlainColumn::Doubles(Vec::new()),
            };
            fields.push(column.field(name)?);
            filled.push(column);
        }
        Ok(Self { file: parquet::create(Row::TABLE, fields, file)?, filled, rows: 0 })
    }

    fn push(&mut self, row: &impl FlatRow) -> io::Result<()> {
        for (column, (_, cell)) in self.filled.iter_mut().zip(row.cells()) {
            match (column, cell) {
                // Texts that follow each other are often the same, and share their bytes.
                (PlainColumn::Texts(texts), Cell::Text(text)) => texts.push(match texts.last() {
                    Some(last) if last.data() == text.as_bytes() => last.clone(),
                    _ => text.into(),
                }),
                (PlainColumn::Longs(numbers), Cell::Long(number)) => numbers.push(number),
                (PlainColumn::Ints(numbers), Cell::Int(number)) => numbers.push(number),
                (PlainColumn::Doubles(numbers), Cell::Double(number)) => numbers.push(number),
                (column, cell) => unreachable!("{cell:?} in {column:?}"),
            }
        }
        self.rows += 1;
        if self.rows == GROUP { self.flush() } else { Ok(()) }
    }

    fn finish(mut self) -> io::Result<NamedTempFile> {
        if self.rows > 0 {
            self.flush()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.filled {
            column.write(&mut group, None, None)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}
