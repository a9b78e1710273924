//! Writing Parquet files, a row group at a time.

use std::{collections::HashMap, io, sync::Arc};

use ::parquet::{
    basic::{LogicalType, Repetition},
    errors::ParquetError,
    file::writer::SerializedFileWriter,
    schema::types::{Type, TypePtr},
};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::{
    PlainColumn, Table, TableColumns,
    columns::{Column, Kind, flatten},
    error::WriteError,
    json::{Fields, size},
};

/// Rows of a row group, and about their bytes as JSON. They are in memory at once, because a row group is written column by
/// column; and a reader takes no more values of lists at once than such a group has.
const GROUP: usize = 100_000;
const GROUP_BYTES: usize = 16 << 20;

pub(crate) struct ParquetWriter {
    file: SerializedFileWriter<NamedTempFile>,
    /// By the names of the columns.
    indices: HashMap<String, usize>,
    columns: Vec<Buffer>,
    rows: usize,
    bytes: usize,
}

impl ParquetWriter {
    pub(crate) fn new<T: Table>(columns: &TableColumns<T>, file: NamedTempFile) -> io::Result<Self> {
        let columns: Vec<Buffer> = columns.columns().into_iter().map(Buffer::new).collect();
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let indices = columns.iter().map(|buffer| buffer.column.name.clone()).zip(0..).collect();
        Ok(Self { file: super::create(T::NAME, fields, file)?, indices, columns, rows: 0, bytes: 0 })
    }

    pub(crate) fn write<T: Table>(&mut self, fields: Fields) -> Result<(), WriteError> {
        for (name, value) in flatten::<T>(fields) {
            self.bytes += size(&value);
            let fits = self.indices.get(&name).is_some_and(|index| self.columns[*index].push(value));
            if !fits {
                return Err(WriteError::Column(name));
            }
        }
        self.rows += 1;
        for column in &mut self.columns {
            if column.rows < self.rows {
                column.push(Value::Null);
            }
        }
        if self.rows == GROUP || self.bytes >= GROUP_BYTES {
            self.flush().map_err(io::Error::from)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<NamedTempFile> {
        if self.rows > 0 {
            self.flush()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for buffer in &mut self.columns {
            let definitions = buffer.has_definitions().then_some(buffer.definitions.as_slice());
            let repetitions = (buffer.column.kind == Kind::Texts).then_some(buffer.repetitions.as_slice());
            buffer.values.write(&mut group, definitions, repetitions)?;
            buffer.clear();
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

fn field(Buffer { column, values, .. }: &Buffer) -> Result<TypePtr, ParquetError> {
    let repetition = if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    match column.kind {
        Kind::Json => values.field_of(&column.name, repetition, LogicalType::Json),
        Kind::Texts => {
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![values.field("element")?])
                .build()?;
            Type::group_type_builder(&column.name)
                .with_repetition(repetition)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()
                .map(Arc::new)
        }
        _ => values.field_of(&column.name, repetition, LogicalType::String),
    }
}

/// A column of the row group being filled.
struct Buffer {
    column: Column,
    rows: usize,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: PlainColumn,
}

impl Buffer {
    fn new(column: Column) -> Self {
        let values = match column.kind {
            Kind::Bool => PlainColumn::Bools(Vec::new()),
            Kind::Integer | Kind::Long => PlainColumn::Longs(Vec::new()),
            Kind::Double => PlainColumn::Doubles(Vec::new()),
            Kind::Text | Kind::Texts | Kind::Json => PlainColumn::Texts(Vec::new()),
        };
        Self { column, rows: 0, definitions: Vec::new(), repetitions: Vec::new(), values }
    }

    fn has_definitions(&self) -> bool {
        !self.column.required || self.column.kind == Kind::Texts
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.definitions.clear();
        self.repetitions.clear();
    }

    /// Adds the value of the next row. False if it does not fit the column.
    fn push(&mut self, value: Value) -> bool {
        self.rows += 1;
        let present = i16::from(!self.column.required);
        if matches!(value, Value::Null) {
            self.definitions.push(0);
            self.repetitions.push(0);
            return present > 0;
        }
        if !Kind::for_value(&value).is_some_and(|kind| self.column.kind.widen(kind) == self.column.kind) {
            return false;
        }
        if let (Kind::Texts, PlainColumn::Texts(texts), Value::Array(values)) =
            (self.column.kind, &mut self.values, &value)
        {
            if values.is_empty() {
                self.definitions.push(present);
                self.repetitions.push(0);
            }
            for (index, value) in values.iter().enumerate() {
                let Value::String(text) = value else { return false };
                self.definitions.push(present + 1);
                self.repetitions.push(i16::from(index > 0));
                texts.push(text.as_str().into());
            }
            return true;
        }
        self.definitions.push(present);
        match (&mut self.values, value) {
            (PlainColumn::Bools(values), Value::Bool(truth)) => values.push(truth),
            (PlainColumn::Longs(values), Value::Number(number)) => {
                values.push(number.as_i64().expect("checked by its kind"));
            }
            (PlainColumn::Doubles(values), Value::Number(number)) => {
                values.push(number.as_f64().expect("checked by its kind"));
            }
            (PlainColumn::Texts(values), Value::String(text)) if self.column.kind == Kind::Text => {
                values.push(text.into_bytes().into());
            }
            (PlainColumn::Texts(values), value) => {
                let json = serde_json::to_vec(&value).expect("finite numbers and texts are JSON");
                values.push(json.into());
            }
            _ => return false,
        }
        true
    }
}
