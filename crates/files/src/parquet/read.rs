//! Reading Parquet files, a batch of rows at a time.
//!
//! It uses the column readers of the `parquet` crate, because its row reader panics on unknown types and stops at one
//! bad text.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ::parquet::{
    basic::Compression,
    column::reader::{ColumnReader, get_column_reader},
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        reader::{FileReader, SerializedFileReader},
    },
};
use atelier_core::domain::Schema;

use super::{
    bound::{BoundedFile, BoundedPages, Held, MAX_VALUES, too_many_values},
    catch_panic,
    column::{self, Batch},
    plan::{Leaf, Plan, find_columns},
};
use crate::{
    Dialect, FileError, FileRow, RowError, Table, Unit,
    columns::RowFields,
    error::Misfit,
    json::Fields,
    row::{Bad, LONGEST},
};

/// Rows of a batch: enough to read columns efficiently, few enough for the CPU cache.
const BATCH: usize = 1024;

pub(crate) struct ParquetReader {
    file: SerializedFileReader<BoundedFile>,
    leaves: Vec<Leaf>,
    unread: Option<String>,
    /// The next row group; the columns of the current one, and its remaining rows.
    group: usize,
    columns: Vec<ColumnReader>,
    /// The values of the pages that the column being read has loaded for the batch.
    loaded: Arc<AtomicUsize>,
    left: u64,
    /// The current batch, column by column, and the next row of it.
    batch: Vec<Batch>,
    rows: usize,
    at: usize,
    read: u64,
    total: u64,
    /// About the bytes of the rows read so far, as JSON.
    bytes: u64,
}

impl ParquetReader {
    /// Whether a file begins as Parquet does. A pipe cannot be Parquet.
    pub(crate) fn recognise(file: &File) -> bool {
        let mut begin = [0; 4];
        file.read_exact_at(&mut begin, 0).is_ok() && &begin == b"PAR1"
    }

    pub(crate) fn new<T: Table>(
        file: File,
        path: &Path,
        schema: &Schema,
        dialect: &Dialect,
    ) -> Result<Self, FileError> {
        let refuse = |reason: String| FileError::Parquet { path: path.to_owned(), reason };
        let file = catch_panic(|| BoundedFile::open(file)).map_err(|error| refuse(describe(error)))?;
        let metadata = file.metadata();
        let Plan { leaves, unread } = check_compression(metadata)
            .map_err(Misfit::from)
            .and_then(|()| find_columns::<T>(metadata.file_metadata().schema(), schema, dialect))
            .map_err(|misfit| FileError::header(path, misfit))?;
        let total = metadata.row_groups().iter().filter_map(|group| u64::try_from(group.num_rows()).ok());
        Ok(Self {
            total: total.fold(0, u64::saturating_add),
            leaves,
            unread,
            file,
            group: 0,
            columns: Vec::new(),
            loaded: Arc::default(),
            left: 0,
            batch: Vec::new(),
            rows: 0,
            at: 0,
            read: 0,
            bytes: 0,
        })
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.read, self.total)
    }

    /// Says which columns are not read.
    pub(crate) fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, Bad>) -> Result<FileRow<T>, RowError>,
    ) -> Option<Result<FileRow<T>, RowError>> {
        if self.at == self.rows {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(damaged(self.read + 1, error))),
            }
        }
        self.read += 1;
        self.at += 1;
        let row = self.read;
        Some(match self.fields::<T>() {
            Ok(fields) => finish(row, fields),
            Err(error) => Err(damaged(row, error)),
        })
    }

    /// The next row of the batch.
    fn fields<T: Table>(&mut self) -> Result<Result<Fields, Bad>, ParquetError> {
        let (mut fields, mut wrong, mut left) = (RowFields::default(), None, LONGEST);
        for (leaf, batch) in self.leaves.iter().zip(&mut self.batch) {
            match batch.next_cell(leaf, &mut left)? {
                Ok(value) => fields.insert(&leaf.target, &leaf.inside, value),
                Err(reason) => wrong = wrong.or(Some(reason)),
            }
        }
        self.bytes += (LONGEST - left) as u64;
        Ok(match wrong {
            Some(reason) => Err(Bad { reason, ids: fields.readable_id() }),
            None => fields.into_fields::<T>().map_err(Bad::from),
        })
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
            let held = Held::default();
            let description = self.file.metadata().file_metadata().schema_descr();
            let column = |leaf: &Leaf| {
                let pages = catch_panic(|| group.get_column_page_reader(leaf.column))?;
                let loaded = leaf.element.map(|_| Arc::clone(&self.loaded));
                let pages = BoundedPages::new(pages, held.clone(), loaded);
                catch_panic(|| Ok(get_column_reader(description.column(leaf.column), Box::new(pages))))
            };
            self.columns = self.leaves.iter().map(column).collect::<Result<_, _>>()?;
        }
        let rows = usize::try_from(self.left).map_or(BATCH, |left| left.min(BATCH));
        self.batch.clear();
        let mut values = 0;
        for (leaf, reader) in self.leaves.iter().zip(&mut self.columns) {
            self.loaded.store(0, Ordering::Relaxed);
            let batch = column::read(reader, leaf, rows)?;
            if batch.rows != rows {
                let (name, found) = (&leaf.name, batch.rows);
                return Err(ParquetError::General(format!(
                    "column {name:?} has {found} rows left, expected {rows}"
                )));
            }
            values += if leaf.element.is_some() { batch.values } else { 0 };
            if values > MAX_VALUES {
                return Err(too_many_values());
            }
            self.batch.push(batch);
        }
        self.left -= rows as u64;
        (self.rows, self.at) = (rows, 0);
        Ok(true)
    }
}

fn damaged(row: u64, error: ParquetError) -> RowError {
    RowError::fatal(Unit::Row, row, format!("the file is damaged here: {}", describe(error)))
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
