//! Columns of numbers and texts that are written to a Parquet file.

use std::{io, sync::Arc};

use ::parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::writer::SerializedRowGroupWriter,
    schema::types::{Type, TypePtr},
};

/// The values of a column.
#[derive(Debug)]
pub enum PlainColumn {
    Bools(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl PlainColumn {
    /// A field whose every row has a value.
    pub(crate) fn field(&self, name: &str) -> Result<TypePtr, ParquetError> {
        self.field_of(name, Repetition::REQUIRED, LogicalType::String)
    }

    /// `of_texts` is what texts mean.
    pub(super) fn field_of(
        &self,
        name: &str,
        repetition: Repetition,
        of_texts: LogicalType,
    ) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Self::Bools(_) => (Physical::BOOLEAN, None),
            Self::Ints(_) => (Physical::INT32, None),
            Self::Longs(_) => (Physical::INT64, None),
            Self::Doubles(_) => (Physical::DOUBLE, None),
            Self::Texts(_) => (Physical::BYTE_ARRAY, Some(of_texts)),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        field.with_logical_type(logical).build().map(Arc::new)
    }

    /// Writes the values as the group's next column, and forgets them.
    pub(crate) fn write<W: io::Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        definitions: Option<&[i16]>,
        repetitions: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("every field has a column");
        macro_rules! write_batch {
            ($type:ty, $values:expr) => {{
                column.typed::<$type>().write_batch($values, definitions, repetitions)?;
                $values.clear();
            }};
        }
        match self {
            Self::Bools(values) => write_batch!(BoolType, values),
            Self::Ints(values) => write_batch!(Int32Type, values),
            Self::Longs(values) => write_batch!(Int64Type, values),
            Self::Doubles(values) => write_batch!(DoubleType, values),
            Self::Texts(values) => write_batch!(ByteArrayType, values),
        }
        column.close()
    }
}

/// The bytes of a file with these columns, by their names.
pub fn write_columns(name: &str, columns: Vec<(&str, PlainColumn)>) -> io::Result<Vec<u8>> {
    let fields = columns.iter().map(|(name, column)| column.field(name)).collect::<Result<_, _>>()?;
    let mut file = super::create(name, fields, Vec::new())?;
    let mut group = file.next_row_group()?;
    for (_, mut column) in columns {
        column.write(&mut group, None, None)?;
    }
    group.close()?;
    Ok(file.into_inner()?)
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn plain_columns_are_read_back() {
        let columns = vec![
            ("n", PlainColumn::Longs(vec![7, -8])),
            ("arm", PlainColumn::Texts(vec!["today".into(), "ä".into()])),
            ("x", PlainColumn::Doubles(vec![0.5, 129.9])),
        ];
        let bytes = write_columns("rows", columns).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
        let expected = [r#"{n: 7, arm: "today", x: 0.5}"#, r#"{n: -8, arm: "ä", x: 129.9}"#];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let uneven = vec![("a", PlainColumn::Longs(vec![1])), ("b", PlainColumn::Longs(vec![]))];
        assert!(write_columns("rows", uneven).is_err());
    }
}
