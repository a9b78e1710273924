//! Reads whole columns of a Parquet file.
//!
//! `files` reads tables of many shapes row by row. This file has one shape: tens of thousands of rows, and a column
//! or two per method.

use std::{fs::File, path::Path};

use atelier_files::catch_panic;
use parquet::{
    column::reader::get_typed_column_reader,
    data_type::{BoolType, ByteArrayType, DataType, FloatType, Int32Type},
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
    schema::types::ColumnDescriptor,
};

/// Rows read at once. A file's own claim about its size is not trusted.
const CHUNK: usize = 8192;

/// An open file, whose columns are read by their names.
pub(super) struct ParquetColumns {
    file: SerializedFileReader<File>,
}

impl ParquetColumns {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let file = catch_panic(|| SerializedFileReader::new(file)).map_err(|error| error.to_string())?;
        Ok(Self { file })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.name())
    }

    pub(super) fn numbers(&self, name: &str) -> Result<Vec<u32>, String> {
        self.collect::<Int32Type, _>(name, |number| {
            u32::try_from(number).map_err(|_| format!("holds {number}, expected 0 or more"))
        })
    }

    pub(super) fn floats(&self, name: &str) -> Result<Vec<f32>, String> {
        self.collect::<FloatType, _>(name, |float| {
            if float.is_finite() { Ok(float) } else { Err(format!("holds {float}, expected a number")) }
        })
    }

    pub(super) fn truths(&self, name: &str) -> Result<Vec<bool>, String> {
        self.collect::<BoolType, _>(name, Ok)
    }

    fn collect<D: DataType, V>(
        &self,
        name: &str,
        convert: impl Fn(D::T) -> Result<V, String>,
    ) -> Result<Vec<V>, String> {
        let mut values = Vec::new();
        self.each::<D>(name, |value| {
            values.push(convert(value)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Passes the texts to `take` one by one, so they need not all be kept.
    pub(super) fn texts(
        &self,
        name: &str,
        mut take: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.each::<ByteArrayType>(name, |bytes| {
            let text = std::str::from_utf8(bytes.data());
            take(text.map_err(|_| "holds bytes that are not UTF-8 text".to_owned())?)
        })
    }

    fn each<D: DataType>(
        &self,
        name: &str,
        mut take: impl FnMut(D::T) -> Result<(), String>,
    ) -> Result<(), String> {
        let column = self.find::<D>(name)?;
        let describe = |reason: String| format!("column {name:?} {reason}");
        let damaged = |error: ParquetError| describe(format!("is damaged: {error}"));
        for group in 0..self.file.num_row_groups() {
            let group = catch_panic(|| self.file.get_row_group(group)).map_err(damaged)?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let reader = catch_panic(|| group.get_column_reader(column)).map_err(damaged)?;
            let mut reader = get_typed_column_reader::<D>(reader);
            let mut values = Vec::new();
            while left > 0 {
                values.clear();
                let read = catch_panic(|| reader.read_records(left.min(CHUNK), None, None, &mut values));
                let (rows, found, _) = read.map_err(damaged)?;
                if rows == 0 || found != rows {
                    return Err(describe(format!("has {found} values, expected {}", left.min(CHUNK))));
                }
                left -= rows.min(left);
                values.drain(..).try_for_each(&mut take).map_err(describe)?;
            }
        }
        Ok(())
    }

    /// The column's index, if it holds one value of the type in every row.
    fn find<D: DataType>(&self, name: &str) -> Result<usize, String> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let named = |column: &&std::sync::Arc<ColumnDescriptor>| column.name() == name;
        let index = schema.columns().iter().position(|column| named(&column));
        let index = index.ok_or_else(|| format!("there is no column {name:?}"))?;
        let column = schema.column(index);
        let (found, expected) = (column.physical_type(), D::get_physical_type());
        if found != expected {
            return Err(format!("column {name:?} holds {found}, expected {expected}"));
        }
        if column.max_def_level() > 0 || column.max_rep_level() > 0 {
            return Err(format!(
                "column {name:?} may have empty cells or lists, expected a value in every row"
            ));
        }
        Ok(index)
    }
}
