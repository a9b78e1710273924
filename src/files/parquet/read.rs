//! Parquet files, a batch of rows at a time.
//!
//! Columns are read through the crate's column readers rather than through its rows: those panic on
//! types they do not know, and one bad text ends the file.

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
    column::{self, Cell},
    guard::guarded,
    plan::{Leaf, plan},
};
use crate::files::{
    ExchangeError, Row, RowError, Table,
    error::Unit,
    flat::Gathered,
    value::{Fields, Value},
};

/// Rows of a batch: enough to read columns in one go, few enough to keep in the cache.
const BATCH: usize = 1024;

pub(in crate::files) struct Reader {
    file: SerializedFileReader<File>,
    leaves: Vec<Leaf>,
    /// The next row group, and the columns of the current one with its rows that are left.
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
    /// If it is no Parquet file, or not of this table.
    pub(in crate::files) fn new<T: Table>(file: File, path: &Path) -> Result<Self, ExchangeError> {
        let refuse = |reason: String| ExchangeError::Parquet { path: path.to_owned(), reason };
        let file = guarded(|| SerializedFileReader::new(file)).map_err(|error| refuse(said(error)))?;
        let metadata = file.metadata();
        let leaves = compression(metadata)
            .and_then(|()| plan::<T>(metadata.file_metadata().schema()))
            .map_err(|reason| ExchangeError::Columns { path: path.to_owned(), reason })?;
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
                    let reason = format!("the file is damaged here: {}", said(error));
                    return Some(Err(RowError::fatal(Unit::Row, self.read + 1, reason)));
                }
            }
        }
        self.read += 1;
        self.at += 1;
        Some(finish(self.read, self.fields::<T>()))
    }

    /// The row before the place in the batch.
    fn fields<T: Table>(&mut self) -> Result<Fields<'_>, String> {
        let mut gathered = Gathered::default();
        for (leaf, cells) in self.leaves.iter().zip(&mut self.batch) {
            let value = std::mem::replace(&mut cells[self.at - 1], Ok(Value::Null))?;
            gathered.put(&leaf.place, &leaf.inside, value);
        }
        gathered.finish::<T>()
    }

    /// Reads the next batch; false at the end of the file.
    fn fill(&mut self) -> Result<bool, ParquetError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = guarded(|| self.file.get_row_group(self.group))?;
            self.group += 1;
            self.left = u64::try_from(group.metadata().num_rows())
                .map_err(|_| ParquetError::General("a row group has a negative number of rows".into()))?;
            let columns = self.leaves.iter().map(|leaf| guarded(|| group.get_column_reader(leaf.column)));
            self.columns = columns.collect::<Result<_, _>>()?;
        }
        let rows = usize::try_from(self.left).map_or(BATCH, |left| left.min(BATCH));
        self.batch.clear();
        for (leaf, reader) in self.leaves.iter().zip(&mut self.columns) {
            let cells = column::read(reader, leaf, rows)?;
            if cells.len() != rows {
                let (name, found) = (&leaf.name, cells.len());
                return Err(ParquetError::General(format!(
                    "column {name:?} has {found} more rows where there should be {rows}"
                )));
            }
            self.batch.push(cells);
        }
        self.left -= rows as u64;
        (self.rows, self.at) = (rows, 0);
        Ok(true)
    }
}

/// Refuses what this build of the crate cannot unpack while the file is opened, not in its middle.
fn compression(metadata: &ParquetMetaData) -> Result<(), String> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let known = |found: &Compression| {
        matches!(found, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_))
    };
    match columns.map(ColumnChunkMetaData::compression).find(|found| !known(found)) {
        Some(found) => {
            let found = found.to_string();
            // Without the level, which is ours and not the file's.
            let name = found.split('(').next().unwrap_or(&found);
            Err(format!("it is compressed with {name}; write it with zstd, snappy or nothing"))
        }
        None => Ok(()),
    }
}

fn said(error: ParquetError) -> String {
    match error {
        ParquetError::General(reason) | ParquetError::EOF(reason) => reason,
        ParquetError::External(source) => source.to_string(),
        other => other.to_string(),
    }
}
