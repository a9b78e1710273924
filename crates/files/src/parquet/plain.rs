//! Plain columns of numbers and texts as a Parquet file in memory.

use std::{io, sync::Arc};

use ::parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    schema::types::Type,
};

/// A column, of as many values as the others have.
#[derive(Debug)]
pub enum PlainColumn {
    Longs(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Vec<String>),
}

/// The bytes of a file with these columns, by their names.
///
/// # Errors
/// If the columns have different lengths.
pub fn write_columns(name: &str, columns: Vec<(&str, PlainColumn)>) -> io::Result<Vec<u8>> {
    let field = |(name, column): &(&str, PlainColumn)| {
        let (physical, logical) = match column {
            PlainColumn::Longs(_) => (Physical::INT64, None),
            PlainColumn::Doubles(_) => (Physical::DOUBLE, None),
            PlainColumn::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        Ok(Arc::new(field.with_logical_type(logical).build()?))
    };
    let fields = columns.iter().map(field).collect::<io::Result<_>>()?;
    let mut file = super::create(name, fields, Vec::new())?;
    let mut group = file.next_row_group()?;
    for (_, values) in columns {
        let mut column = group.next_column()?.expect("every column has a field; this is a bug");
        match values {
            PlainColumn::Longs(values) => column.typed::<Int64Type>().write_batch(&values, None, None)?,
            PlainColumn::Doubles(values) => column.typed::<DoubleType>().write_batch(&values, None, None)?,
            PlainColumn::Texts(values) => {
                let values: Vec<ByteArray> =
                    values.into_iter().map(|text| text.into_bytes().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None)?
            }
        };
        column.close()?;
    }
    group.close()?;
    Ok(file.into_inner()?)
}

#[cfg(test)]
mod tests {
    use ::parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::RowAccessor,
    };

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
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let read = |row: &::parquet::record::Row| {
            (row.get_long(0).unwrap(), row.get_string(1).unwrap().clone(), row.get_double(2).unwrap())
        };
        assert_eq!(
            rows.iter().map(read).collect::<Vec<_>>(),
            [(7, "today".to_owned(), 0.5), (-8, "ä".to_owned(), 129.9)]
        );
        assert!(
            write_columns(
                "rows",
                vec![("a", PlainColumn::Longs(vec![1])), ("b", PlainColumn::Longs(vec![]))]
            )
            .is_err()
        );
    }
}
