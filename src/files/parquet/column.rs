//! Reading the values of a Parquet column.

use ::parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::DataType,
    errors::ParquetError,
};
use serde_json::Number;

use super::{
    catch_panic,
    plan::{Holds, Leaf},
};
use crate::{
    files::json::{JsonError, Value, parse},
    util::calendar::{date, moment},
};

/// The value of a row, or why it cannot be used.
pub(super) type Cell = Result<Value<'static>, String>;

/// Reads up to `rows` rows, fewer at the end of the column.
pub(super) fn read(reader: &mut ColumnReader, leaf: &Leaf, rows: usize) -> Result<Vec<Cell>, ParquetError> {
    let holds = leaf.holds;
    match reader {
        ColumnReader::BoolColumnReader(reader) => cells(reader, leaf, rows, |truth| Ok(Value::Bool(truth))),
        ColumnReader::Int32ColumnReader(reader) => cells(reader, leaf, rows, |number: i32| match holds {
            Holds::Unsigned => Ok(Value::Number(number.cast_unsigned().into())),
            Holds::Date => Ok(Value::text(date(number.into()))),
            Holds::Decimal { scale } => decimal(number.into(), scale),
            _ => Ok(Value::Number(number.into())),
        }),
        ColumnReader::Int64ColumnReader(reader) => cells(reader, leaf, rows, |number: i64| match holds {
            Holds::Unsigned => Ok(Value::Number(number.cast_unsigned().into())),
            Holds::Decimal { scale } => decimal(number.into(), scale),
            Holds::Moment { parts, utc } => Ok(Value::text(moment(number, parts, utc))),
            _ => Ok(Value::Number(number.into())),
        }),
        ColumnReader::Int96ColumnReader(reader) => {
            cells(reader, leaf, rows, |number| Ok(Value::text(moment(number.to_micros(), 1_000_000, true))))
        }
        // By way of its shortest text, 79.9, which the writer meant, rather than 79.9000015258789.
        ColumnReader::FloatColumnReader(reader) => cells(reader, leaf, rows, |number: f32| {
            float(number.to_string().parse().expect("the text of a number is a number; this is a bug"))
        }),
        ColumnReader::DoubleColumnReader(reader) => cells(reader, leaf, rows, float),
        ColumnReader::ByteArrayColumnReader(reader) => {
            cells(reader, leaf, rows, |bytes| from_bytes(bytes.data(), holds))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            cells(reader, leaf, rows, |bytes| from_bytes(bytes.data(), holds))
        }
    }
}

fn cells<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    leaf: &Leaf,
    rows: usize,
    convert: impl Fn(D::T) -> Cell,
) -> Result<Vec<Cell>, ParquetError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (records, _, levels) = catch_panic(|| {
        reader.read_records(rows, Some(&mut definitions), Some(&mut repetitions), &mut values)
    })?;
    // A column without optional parts stores no levels.
    if definitions.is_empty() {
        definitions.resize(levels, leaf.present);
    }
    let mut values = values.into_iter();
    let mut next = |definition| {
        if definition < leaf.present {
            return Ok(Ok(Value::Null));
        }
        let missing = || ParquetError::General("a column has fewer values than it declares".into());
        values.next().map(&convert).ok_or_else(missing)
    };
    let mut cells: Vec<Cell> = Vec::with_capacity(records);
    let Some(element) = leaf.element else {
        for definition in definitions {
            cells.push(next(definition)?.map_err(|reason| describe(leaf, &reason)));
        }
        return Ok(cells);
    };
    for (definition, repetition) in definitions.into_iter().zip(repetitions) {
        if repetition == 0 {
            // A list is empty one level below its elements, and null further below.
            let list = if definition >= element - 1 { Value::List(Vec::new()) } else { Value::Null };
            cells.push(Ok(list));
        }
        if definition >= element {
            let value = next(definition)?;
            match (cells.last_mut(), value) {
                (Some(Ok(Value::List(list))), Ok(value)) => list.push(value),
                (Some(cell @ Ok(_)), Err(reason)) => *cell = Err(describe(leaf, &reason)),
                // An earlier element cannot be used.
                (Some(_), _) => {}
                (None, _) => return Err(ParquetError::General("a list has no beginning".into())),
            }
        }
    }
    Ok(cells)
}

fn describe(leaf: &Leaf, reason: &str) -> String {
    format!("column {:?} {reason}", leaf.name)
}

fn float(number: f64) -> Cell {
    Number::from_f64(number).map(Value::Number).ok_or_else(|| {
        format!("contains {number}, which is not a finite number; write null for unknown values")
    })
}

fn decimal(unscaled: i128, scale: i32) -> Cell {
    // Databases without an integer type store ids as decimals.
    if let (0, Ok(whole)) = (scale, i64::try_from(unscaled)) {
        return Ok(Value::Number(whole.into()));
    }
    let number = format!("{unscaled}e{}", -i64::from(scale));
    float(number.parse().expect("digits and an exponent are a number; this is a bug"))
}

fn from_bytes(bytes: &[u8], holds: Holds) -> Cell {
    if let Holds::Decimal { scale } = holds {
        let Some((first, _)) = bytes.split_first().filter(|_| bytes.len() <= 16) else {
            return Err(format!("contains a decimal of {} bytes, expected 1 to 16", bytes.len()));
        };
        let sign = if first.leading_ones() > 0 { 0xFF } else { 0 };
        let mut wide = [sign; 16];
        wide[16 - bytes.len()..].copy_from_slice(bytes);
        return decimal(i128::from_be_bytes(wide), scale);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "contains bytes that are not UTF-8 text".to_owned())?;
    if holds != Holds::Json {
        return Ok(Value::text(text.to_owned()));
    }
    match parse(text) {
        Ok(value) => Ok(into_owned(value)),
        Err(JsonError::Syntax(reason) | JsonError::Early(reason) | JsonError::Content(reason)) => {
            Err(format!("contains invalid JSON: {reason}"))
        }
    }
}

fn into_owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Bool(truth) => Value::Bool(truth),
        Value::Number(number) => Value::Number(number),
        Value::Text(text) => Value::text(text.into_owned()),
        Value::List(values) => Value::List(values.into_iter().map(into_owned).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| (name.into_owned().into(), into_owned(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_numbers() {
        assert_eq!(decimal(7990, 2), Ok(Value::from_f64(79.9).unwrap()));
        let bytes = |bytes: &[u8]| from_bytes(bytes, Holds::Decimal { scale: 1 });
        assert_eq!(bytes(&[0xFF, 0xF6]), Ok(Value::Number(Number::from_f64(-1.0).unwrap())));
        assert_eq!(bytes(&[0x00, 0xFF]), Ok(Value::from_f64(25.5).unwrap()));
        assert_eq!(decimal(9_007_199_254_740_993, 0), Ok(Value::Number(9_007_199_254_740_993_i64.into())));
        assert_eq!(bytes(&[1; 17]).unwrap_err(), "contains a decimal of 17 bytes, expected 1 to 16");
    }
}
