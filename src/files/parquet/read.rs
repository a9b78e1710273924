//! Reading Parquet files, a batch of rows at a time.
//!
//! It uses the column readers of the `parquet` crate, because its row reader panics on unknown types and stops at one
//! bad text.

use std::{fmt, fs::File, path::Path};

use ::parquet::{
    basic::Compression,
    column::reader::ColumnReader,
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        reader::{FileReader, SerializedFileReader},
    },
};

use super::{
    catch_panic,
    column::{self, Cell},
    plan::{Leaf, find_columns},
};
use crate::files::{
    FileError, Row, RowError, Table,
    columns::RowFields,
    error::Unit,
    json::{Fields, Value},
};

/// Rows of a batch: enough to read columns efficiently, few enough for the CPU cache.
const BATCH: usize = 1024;

pub(in crate::files) struct Reader {
    file: SerializedFileReader<File>,
    leaves: Vec<Leaf>,
    /// The next row group; the columns of the current one, and its remaining rows.
    group: usize,
    columns: Vec<ColumnReader>,
    left: u64,
    /// The current batch, column by column, and the place in it.
    batch: Vec<Vec<Cell>>,
    rows: usize,
    at: usize,
    read: u64,
    total: u64,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("leaves", &self.leaves)
            .field("read", &self.read)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// # Errors
    /// If it is not a readable Parquet file, or its columns do not fit the table.
    pub(in crate::files) fn new<T: Table>(file: File, path: &Path) -> Result<Self, FileError> {
        let refuse = |reason: String| FileError::Parquet { path: path.to_owned(), reason };
        let file =
            catch_panic(|| SerializedFileReader::new(file)).map_err(|error| refuse(describe(error)))?;
        let metadata = file.metadata();
        let leaves = check_compression(metadata)
            .and_then(|()| find_columns::<T>(metadata.file_metadata().schema()))
            .map_err(|reason| FileError::Columns { path: path.to_owned(), reason })?;
        let total = metadata.row_groups().iter().filter_map(|group| u64::try_from(group.num_rows()).ok());
        Ok(Self {
            total: total.fold(0, u64::saturating_add),
            leaves,
            file,
            group: 0,
            columns: Vec::new(),
            left: 0,
            batch: Vec::new(),
            rows: 0,
            at: 0,
            read: 0,
        })
    }

    pub(in crate::files) fn progress(&self) -> (u64, u64) {
        (self.read, self.total)
    }

    pub(in crate::files) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields<'_>, String>) -> Result<Row<T>, RowError>,
    ) -> Option<Result<Row<T>, RowError>> {
        if self.at == self.rows {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    let reason = format!("the file is damaged here: {}", describe(error));
                    return Some(Err(RowError::fatal(Unit::Row, self.read + 1, reason)));
                }
            }
        }
        self.read += 1;
        self.at += 1;
        Some(finish(self.read, self.fields::<T>()))
    }

    /// The row before `at` in the batch.
    fn fields<T: Table>(&mut self) -> Result<Fields<'_>, String> {
        let mut fields = RowFields::default();
        for (leaf, cells) in self.leaves.iter().zip(&mut self.batch) {
            let value = std::mem::replace(&mut cells[self.at - 1], Ok(Value::Null))?;
            fields.insert(&leaf.place, &leaf.inside, value);
        }
        fields.into_fields::<T>()
    }

    /// Reads the next batch. False at the end of the file.
    fn fill(&mut self) -> Result<bool, ParquetError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = catch_panic(|| self.file.get_row_group(self.group))?;
            self.group += 1;
            self.left = u64::try_from(group.metadata().num_rows())
                .map_err(|_| ParquetError::General("a row group has a negative number of rows".into()))?;
            let columns = self.leaves.iter().map(|leaf| catch_panic(|| group.get_column_reader(leaf.column)));
            self.columns = columns.collect::<Result<_, _>>()?;
        }
        let rows = usize::try_from(self.left).map_or(BATCH, |left| left.min(BATCH));
        self.batch.clear();
        for (leaf, reader) in self.leaves.iter().zip(&mut self.columns) {
            let cells = column::read(reader, leaf, rows)?;
            if cells.len() != rows {
                let (name, found) = (&leaf.name, cells.len());
                return Err(ParquetError::General(format!(
                    "column {name:?} has {found} rows left, expected {rows}"
                )));
            }
            self.batch.push(cells);
        }
        self.left -= rows as u64;
        (self.rows, self.at) = (rows, 0);
        Ok(true)
    }
}

/// Refuses unsupported compression when the file is opened rather than midway.
fn check_compression(metadata: &ParquetMetaData) -> Result<(), String> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let supported = |found: &Compression| {
        matches!(found, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_))
    };
    match columns.map(ColumnChunkMetaData::compression).find(|found| !supported(found)) {
        Some(found) => {
            let found = found.to_string();
            // Without the level, which the file does not record.
            let name = found.split('(').next().unwrap_or(&found);
            Err(format!("{name} compression is not supported; use zstd, snappy or none"))
        }
        None => Ok(()),
    }
}

fn describe(error: ParquetError) -> String {
    match error {
        ParquetError::General(reason) | ParquetError::EOF(reason) => reason,
        ParquetError::External(source) => source.to_string(),
        other => other.to_string(),
    }
}
