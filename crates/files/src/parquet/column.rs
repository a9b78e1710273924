//! Reading the values of a Parquet column.

use std::{iter::Peekable, vec};

use ::parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::DataType,
    errors::ParquetError,
};
use atelier_core::util::calendar::{date, moment};
use serde_json::{Number, Value};

use super::{
    catch_panic,
    plan::{Holds, Leaf},
};
use crate::{
    json::{JsonError, parse, size},
    row::LONGEST,
};

/// The value of a row, or why it cannot be used.
pub(super) type Cell = Result<Value, String>;

/// The next rows of a column. They become cells one row at a time: a file of some kilobytes may repeat a long value
/// in every row.
pub(super) struct Batch {
    pub(super) rows: usize,
    /// Values and missing values.
    pub(super) values: usize,
    cells: Box<dyn NextCell>,
}

impl Batch {
    /// The cell of the next row. `left` is how many more bytes the row may have.
    pub(super) fn next_cell(&mut self, leaf: &Leaf, left: &mut usize) -> Result<Cell, ParquetError> {
        let cell = self.cells.next_cell(leaf, left)?;
        Ok(cell.map_err(|reason| format!("column {:?} {reason}", leaf.name)))
    }
}

/// Reads up to `rows` rows, fewer at the end of the column.
pub(super) fn read(reader: &mut ColumnReader, leaf: &Leaf, rows: usize) -> Result<Batch, ParquetError> {
    let holds = leaf.holds;
    match reader {
        ColumnReader::BoolColumnReader(reader) => batch(reader, leaf, rows, |truth| Ok(truth.into())),
        ColumnReader::Int32ColumnReader(reader) => {
            batch(reader, leaf, rows, move |number: i32| match holds {
                Holds::Unsigned => Ok(number.cast_unsigned().into()),
                Holds::Date => Ok(date(number.into()).into()),
                Holds::Decimal { scale } => decimal(number.into(), scale),
                _ => Ok(number.into()),
            })
        }
        ColumnReader::Int64ColumnReader(reader) => {
            batch(reader, leaf, rows, move |number: i64| match holds {
                Holds::Unsigned => Ok(number.cast_unsigned().into()),
                Holds::Decimal { scale } => decimal(number.into(), scale),
                Holds::Moment { parts, utc } => Ok(moment(number, parts, utc).into()),
                _ => Ok(number.into()),
            })
        }
        ColumnReader::Int96ColumnReader(reader) => {
            batch(reader, leaf, rows, |number| Ok(moment(number.to_micros(), 1_000_000, true).into()))
        }
        // By way of its shortest text, 79.9, which the writer meant, rather than 79.9000015258789.
        ColumnReader::FloatColumnReader(reader) => batch(reader, leaf, rows, |number: f32| {
            float(number.to_string().parse().expect("the text of a number is a number"))
        }),
        ColumnReader::DoubleColumnReader(reader) => batch(reader, leaf, rows, float),
        ColumnReader::ByteArrayColumnReader(reader) => {
            batch(reader, leaf, rows, move |bytes| from_bytes(bytes.data(), holds))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            batch(reader, leaf, rows, move |bytes| from_bytes(bytes.data(), holds))
        }
    }
}

trait NextCell: Send {
    fn next_cell(&mut self, leaf: &Leaf, left: &mut usize) -> Result<Cell, ParquetError>;
}

/// The part of a column read so far.
struct Levels<V, C> {
    definitions: vec::IntoIter<i16>,
    repetitions: Peekable<vec::IntoIter<i16>>,
    values: vec::IntoIter<V>,
    convert: C,
}

fn batch<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    leaf: &Leaf,
    rows: usize,
    convert: impl Fn(D::T) -> Cell + Send + 'static,
) -> Result<Batch, ParquetError>
where
    D::T: Send + 'static,
{
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (rows, _, levels) = catch_panic(|| {
        reader.read_records(rows, Some(&mut definitions), Some(&mut repetitions), &mut values)
    })?;
    // A column without optional parts stores no levels.
    if definitions.is_empty() {
        definitions.resize(levels, leaf.present);
    }
    let cells = Levels {
        definitions: definitions.into_iter(),
        repetitions: repetitions.into_iter().peekable(),
        values: values.into_iter(),
        convert,
    };
    Ok(Batch { rows, values: levels, cells: Box::new(cells) })
}

impl<V: Send, C: Fn(V) -> Cell + Send> NextCell for Levels<V, C> {
    fn next_cell(&mut self, leaf: &Leaf, left: &mut usize) -> Result<Cell, ParquetError> {
        match leaf.element {
            None => {
                let definition = self.next_definition()?;
                self.next_value(leaf, definition, left)
            }
            Some(element) => self.next_list(leaf, element, left),
        }
    }
}

impl<V, C: Fn(V) -> Cell> Levels<V, C> {
    fn next_definition(&mut self) -> Result<i16, ParquetError> {
        self.definitions.next().ok_or_else(incomplete)
    }

    fn next_value(&mut self, leaf: &Leaf, definition: i16, left: &mut usize) -> Result<Cell, ParquetError> {
        if definition < leaf.present {
            return Ok(Ok(Value::Null));
        }
        let value = self.values.next().ok_or_else(incomplete)?;
        // Once a row is too long, its other values are only skipped.
        if *left == 0 {
            return Ok(Err(too_long()));
        }
        let value = (self.convert)(value);
        *left = left.saturating_sub(value.as_ref().map_or(1, size));
        Ok(if *left == 0 { Err(too_long()) } else { value })
    }

    fn next_list(&mut self, leaf: &Leaf, element: i16, left: &mut usize) -> Result<Cell, ParquetError> {
        if self.repetitions.next() != Some(0) {
            return Err(ParquetError::General("a list has no beginning".into()));
        }
        let mut definition = self.next_definition()?;
        // A list is empty one level below its elements, and null further below.
        let mut list: Cell =
            Ok(if definition >= element - 1 { Value::Array(Vec::new()) } else { Value::Null });
        loop {
            if definition >= element {
                let value = self.next_value(leaf, definition, left)?;
                match (&mut list, value) {
                    (Ok(Value::Array(values)), Ok(value)) => values.push(value),
                    (Ok(_), Err(reason)) => list = Err(reason),
                    // An earlier element cannot be used.
                    _ => {}
                }
            }
            if self.repetitions.next_if(|repetition| *repetition > 0).is_none() {
                return Ok(list);
            }
            definition = self.next_definition()?;
        }
    }
}

fn incomplete() -> ParquetError {
    ParquetError::General("a column has fewer values than it declares".into())
}

fn too_long() -> String {
    format!("makes the row longer than {} MiB", LONGEST >> 20)
}

fn float(number: f64) -> Cell {
    Number::from_f64(number).map(Value::Number).ok_or_else(|| {
        format!("contains {number}, which is not a finite number; write null for unknown values")
    })
}

fn decimal(unscaled: i128, scale: i32) -> Cell {
    // Databases without an integer type store ids as decimals.
    if let (0, Ok(whole)) = (scale, i64::try_from(unscaled)) {
        return Ok(whole.into());
    }
    let number = format!("{unscaled}e{}", -i64::from(scale));
    float(number.parse().expect("digits and an exponent are a number"))
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
    if bytes.len() > LONGEST {
        return Err(too_long());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "contains bytes that are not UTF-8 text".to_owned())?;
    if holds != Holds::Json {
        return Ok(text.into());
    }
    parse(text).map_err(|error| {
        let (JsonError::Syntax(reason) | JsonError::Early(reason) | JsonError::Content(reason)) = error;
        format!("contains invalid JSON: {reason}")
    })
}
