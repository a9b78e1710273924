//! CSV files, written record by record.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use super::cell::Reading;
use crate::files::{
    Shape, Table,
    flat::{Place, flatten},
    value::Fields,
    writer::WriteError,
};

#[derive(Debug)]
pub(in crate::files) struct Writer {
    /// By the columns' names.
    places: HashMap<String, usize>,
    readings: Vec<Reading>,
    cells: Vec<String>,
}

impl Writer {
    /// Writes the header.
    pub(in crate::files) fn new<T: Table>(shape: &Shape<T>, output: &mut impl Write) -> io::Result<Self> {
        let cells: Vec<String> = shape.columns().into_iter().map(|column| column.name).collect();
        record(&cells, output)?;
        let reading = |name: &String| Reading::of::<T>(&Place::of::<T>(name), shape.schema());
        Ok(Self {
            readings: cells.iter().map(reading).collect(),
            places: cells.iter().cloned().zip(0..).collect(),
            cells,
        })
    }

    pub(in crate::files) fn write<T: Table>(
        &mut self,
        fields: Fields<'_>,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        self.cells.iter_mut().for_each(String::clear);
        for (name, value) in flatten::<T>(fields) {
            let Some(&place) = self.places.get(name.as_ref()) else {
                return Err(WriteError::Column(name.into_owned()));
            };
            self.cells[place].push_str(&self.readings[place].write(&value));
        }
        Ok(record(&self.cells, output)?)
    }
}

fn record(cells: &[String], output: &mut impl Write) -> io::Result<()> {
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 {
            output.write_all(b",")?;
        }
        if cell.contains(['"', ',', '\r', '\n']) {
            write!(output, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            output.write_all(cell.as_bytes())?;
        }
    }
    output.write_all(b"\n")
}
