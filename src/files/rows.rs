//! Reading a file row by row, whatever its format.

use std::{
    fs::File,
    marker::PhantomData,
    path::{Path, PathBuf},
};

use super::{ExchangeError, Format, RowError, Table, csv, error::Unit, json_lines, parquet, value::Fields};
use crate::domain::{FeatureWarning, Schema};

/// A row that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<T> {
    /// As in [`RowError`].
    pub line: u64,
    pub value: T,
    pub warnings: Vec<FeatureWarning>,
}

/// The rows of a file, one at a time. A bad row does not end it; what does end it before the file's end
/// is an error that says so ([`RowError::is_fatal`]).
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

/// Opens a file by its ending. The schema says how features are read.
///
/// # Errors
/// If the file cannot be opened, or its columns are not those of the table.
pub fn read<T: Table>(path: &Path, schema: &Schema) -> Result<Rows<T>, ExchangeError> {
    let format = Format::of(path)?;
    let open = |source| ExchangeError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(open)?;
    let about = file.metadata().map_err(open)?;
    if about.is_dir() {
        return Err(ExchangeError::Folder { path: path.to_owned() });
    }
    let source = match format {
        Format::JsonLines => Source::JsonLines(json_lines::Reader::new(file, about.len())),
        Format::Csv => Source::Csv(Box::new(csv::Reader::new::<T>(file, about.len(), path, schema)?)),
        Format::Parquet => Source::Parquet(parquet::Reader::new::<T>(file, path)?),
    };
    Ok(Rows { source, path: path.to_owned(), schema: schema.clone(), ended: false, table: PhantomData })
}

impl<T> Rows<T> {
    /// How much is read, of how much: bytes, or rows in Parquet. For a progress bar.
    pub fn progress(&self) -> (u64, u64) {
        match &self.source {
            Source::JsonLines(reader) => reader.progress(),
            Source::Csv(reader) => reader.progress(),
            Source::Parquet(reader) => reader.progress(),
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
