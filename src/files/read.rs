//! Reading a file of any format row by row.

use std::{
    fs::File,
    io::{self, BufRead},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use super::{FileError, Format, RowError, Table, csv, error::Unit, json::Fields, json_lines, parquet};
use crate::domain::{FeatureWarning, Schema};

/// A usable row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<T> {
    /// As in [`RowError`].
    pub line: u64,
    pub value: T,
    pub warnings: Vec<FeatureWarning>,
}

/// The rows of a file, one at a time. Reading goes on after a bad row, and stops at a fatal error
/// ([`RowError::is_fatal`]).
#[derive(Debug)]
pub struct Rows<T> {
    source: Source,
    path: PathBuf,
    schema: Schema,
    ended: bool,
    table: PhantomData<fn() -> T>,
}

#[derive(Debug)]
enum Source {
    JsonLines(json_lines::Reader),
    Csv(Box<csv::Reader>),
    Parquet(parquet::Reader),
}

/// Opens a file whose extension is its format. The schema determines how features are read.
///
/// # Errors
/// If the file cannot be opened, or its columns do not fit the table.
pub fn read<T: Table>(path: &Path, schema: &Schema) -> Result<Rows<T>, FileError> {
    let format = Format::from_path(path)?;
    let open = |source| FileError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(open)?;
    let metadata = file.metadata().map_err(open)?;
    if metadata.is_dir() {
        return Err(FileError::Folder { path: path.to_owned() });
    }
    let source = match format {
        Format::JsonLines => return Ok(read_json_lines(file, metadata.len(), path, schema)),
        Format::Csv => Source::Csv(Box::new(csv::Reader::new::<T>(file, metadata.len(), path, schema)?)),
        Format::Parquet => Source::Parquet(parquet::Reader::new::<T>(file, path)?),
    };
    Ok(Rows { source, path: path.to_owned(), schema: schema.clone(), ended: false, table: PhantomData })
}

/// Reads JSON Lines of `length` bytes from a file that need not have a name; errors call it `path`.
pub fn read_json_lines<T: Table>(file: File, length: u64, path: &Path, schema: &Schema) -> Rows<T> {
    let source = Source::JsonLines(json_lines::Reader::new(file, length));
    Rows { source, path: path.to_owned(), schema: schema.clone(), ended: false, table: PhantomData }
}

impl<T> Rows<T> {
    /// How much was read, and the total: bytes, or rows in Parquet.
    pub fn progress(&self) -> (u64, u64) {
        match &self.source {
            Source::JsonLines(reader) => reader.progress(),
            Source::Csv(reader) => reader.progress(),
            Source::Parquet(reader) => reader.progress(),
        }
    }

    /// About the bytes of the rows read so far.
    pub fn bytes(&self) -> u64 {
        match &self.source {
            Source::JsonLines(reader) => reader.progress().0,
            Source::Csv(reader) => reader.progress().0,
            Source::Parquet(reader) => reader.bytes(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn unit(&self) -> Unit {
        match &self.source {
            Source::JsonLines(_) | Source::Csv(_) => Unit::Line,
            Source::Parquet(_) => Unit::Row,
        }
    }
}

impl<T: Table> Iterator for Rows<T> {
    type Item = Result<Row<T>, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let unit = self.unit();
        let schema = &self.schema;
        let finish = |line, fields: Result<Fields<'_>, String>| {
            let (value, warnings) = fields
                .and_then(|fields| T::from_fields(fields, schema))
                .map_err(|reason| RowError::new(unit, line, reason))?;
            Ok(Row { line, value, warnings })
        };
        let next = match &mut self.source {
            Source::JsonLines(reader) => reader.next(finish),
            Source::Csv(reader) => reader.next(finish),
            Source::Parquet(reader) => reader.next(finish),
        };
        self.ended = next.as_ref().is_none_or(|row| row.as_ref().is_err_and(RowError::is_fatal));
        next
    }
}

/// The longest row, in bytes: far above any sensible one. Callers hold several rows in memory, parsed.
pub(super) const LONGEST: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Skips a byte order mark, and gives its length.
pub(super) fn skip_byte_order_mark(input: &mut impl BufRead) -> io::Result<u64> {
    if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
        return Ok(BYTE_ORDER_MARK.len() as u64);
    }
    Ok(0)
}

/// Says that the disk or the network failed.
pub(super) fn read_failure(error: &io::Error) -> String {
    format!("cannot read the rest of the file: {error}")
}
