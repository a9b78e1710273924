//! CSV files, record by record.
//!
//! The reader uses `csv-core`, the state machine of the `csv` crate, because that crate's line numbers are off by one
//! after CRLF and count blank lines with the record before them.

mod cell;

use std::{
    collections::HashMap,
    io::{self, BufRead, Write},
    path::Path,
};

use atelier_core::{domain::Schema, util::csv::Lines};
use csv_core::ReadRecordResult;

use self::cell::Reading;
use super::{
    Columns, FileError, Row, RowError, Table,
    columns::{Place, RowFields, find_places, flatten},
    error::Unit,
    input::Input,
    json::Fields,
    read::{LONGEST, read_failure},
    write::WriteError,
};

/// The most cells of a record: above any sensible table, so that a line of commas takes little memory.
const MOST_CELLS: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Reader {
    records: Records,
    columns: Vec<(Place, Reading, String)>,
}

impl Reader {
    /// # Errors
    /// If the header cannot be read, or does not fit the table.
    pub(crate) fn new<T: Table>(input: Input, path: &Path, schema: &Schema) -> Result<Self, FileError> {
        let refuse = |reason: String| FileError::Columns { path: path.to_owned(), reason };
        let mut records = Records::new(input, b',');
        let header = match records.next() {
            Ok(Some(line)) => line,
            Ok(None) => {
                return Err(refuse(
                    "the file is empty; expected a header with the names of the columns".into(),
                ));
            }
            Err(End::Disk(source)) => return Err(FileError::Open { path: path.to_owned(), source }),
            Err(End::Format(reason)) => return Err(refuse(format!("in the header, {reason}"))),
        };
        let names = records.cells().map_err(|reason| refuse(format!("line {header}: {reason}")))?;
        if names.iter().any(|name| name.contains('\0')) {
            return Err(refuse("the name of a column contains the character NUL; remove it".into()));
        }
        let places = find_places::<T>(names.iter().copied()).map_err(|reason| {
            let hint = if names.len() == 1 { "; commas separate the columns" } else { "" };
            refuse(format!("{reason}{hint}"))
        })?;
        let columns = places.into_iter().zip(&names);
        let columns = columns
            .map(|(place, name)| {
                let reading = Reading::for_place::<T>(&place, schema);
                (place, reading, (*name).to_owned())
            })
            .collect();
        Ok(Self { records, columns })
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        self.records.progress()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.records.read
    }

    pub(crate) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, String>) -> Result<Row<T>, RowError>,
    ) -> Option<Result<Row<T>, RowError>> {
        let begins = self.records.next_line();
        let line = match self.records.next() {
            Ok(None) => return None,
            Ok(Some(line)) => line,
            Err(End::Disk(error)) => {
                return Some(Err(RowError::fatal(Unit::Line, begins, read_failure(&error))));
            }
            Err(End::Format(reason)) => {
                return Some(Err(RowError::fatal(Unit::Line, self.records.begins, reason)));
            }
        };
        Some(finish(line, self.fields::<T>()))
    }

    fn fields<T: Table>(&self) -> Result<Fields, String> {
        let cells = self.records.cells()?;
        if cells.len() != self.columns.len() {
            let lines = self.records.next_line() - self.records.begins;
            let hint = if lines > 1 {
                format!(" (it spans {lines} lines: is a closing quote missing?)")
            } else {
                String::new()
            };
            let (found, expected) = (cells.len(), self.columns.len());
            return Err(format!("the header has {expected} cells, but this row has {found}{hint}"));
        }
        let mut fields = RowFields::default();
        for ((place, reading, name), cell) in self.columns.iter().zip(cells) {
            let value = reading.read(cell).map_err(|reason| format!("column {name:?}: {reason}"))?;
            fields.insert(place, &[], value);
        }
        fields.into_fields::<T>()
    }
}

/// Why a record cannot be read.
pub(crate) enum End {
    Disk(io::Error),
    Format(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Splits the file into cells, and counts its lines.
#[derive(Debug)]
pub(crate) struct Records {
    input: Input,
    core: csv_core::Reader,
    /// The bytes read so far, and the number of line ends in them.
    read: u64,
    line_ends: u64,
    /// The line on which the current record begins.
    begins: u64,
    /// The current record: the bytes of its cells, the end of each cell, and the number of cells.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    cells: usize,
}

impl Records {
    pub(crate) fn new(input: Input, delimiter: u8) -> Self {
        Self {
            input,
            core: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            read: 0,
            line_ends: 0,
            begins: 1,
            bytes: vec![0; 4096],
            ends: vec![0; 64],
            cells: 0,
        }
    }

    /// As in [`Input::progress`].
    pub(crate) fn progress(&self) -> (u64, u64) {
        self.input.progress()
    }

    /// The line on which the current record begins.
    pub(crate) fn begins(&self) -> u64 {
        self.begins
    }

    /// The line of the next byte.
    pub(crate) fn next_line(&self) -> u64 {
        self.line_ends + 1
    }

    /// Reads the next record, and gives the line on which it begins.
    pub(crate) fn next(&mut self) -> Result<Option<u64>, End> {
        if !self.skip_line_ends()? {
            return Ok(None);
        }
        self.begins = self.next_line();
        self.cells = 0;
        let (start, mut filled) = (self.read, 0);
        loop {
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            // A line end completes a last line that has none, unless it is inside quotes.
            let input = if at_end { b"\n" } else { input };
            let (result, consumed, written, ended) =
                self.core.read_record(input, &mut self.bytes[filled..], &mut self.ends[self.cells..]);
            filled += written;
            self.cells += ended;
            if !at_end {
                self.consume(consumed)?;
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(self.begins)),
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(End::Format("a quote that opens in this row is never closed".into()));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MOST_CELLS => {
                    return Err(End::Format(format!("this row has more than {MOST_CELLS} cells")));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::End => return Ok(None),
            }
            if self.read - start > LONGEST as u64 {
                let most = LONGEST >> 20;
                return Err(End::Format(format!(
                    "this row is longer than {most} MiB; is a closing quote missing?"
                )));
            }
        }
    }

    /// Skips blank lines and the rest of the last line end. False at the end of the file.
    fn skip_line_ends(&mut self) -> io::Result<bool> {
        loop {
            let input = self.input.fill_buf()?;
            let length = input.len();
            let blank = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if length == 0 {
                return Ok(false);
            }
            self.consume(blank)?;
            if blank < length {
                return Ok(true);
            }
        }
    }

    /// Consumes bytes that are buffered.
    fn consume(&mut self, length: usize) -> io::Result<()> {
        if length > 0 {
            let consumed = &self.input.fill_buf()?[..length];
            self.line_ends += consumed.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
            self.read += length as u64;
            self.input.consume(length);
        }
        Ok(())
    }

    pub(crate) fn cells(&self) -> Result<Vec<&str>, String> {
        let mut start = 0;
        let cell = |(number, end): (usize, &usize)| {
            let bytes = &self.bytes[start..*end];
            start = *end;
            std::str::from_utf8(bytes)
                .map_err(|_| format!("cell {number} is not UTF-8 text; save the file as UTF-8"))
        };
        (1..).zip(&self.ends[..self.cells]).map(cell).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Writer {
    /// By the names of the columns.
    places: HashMap<String, usize>,
    readings: Vec<Reading>,
    cells: Vec<String>,
    lines: Lines,
}

impl Writer {
    /// Writes the header.
    pub(crate) fn new<T: Table>(columns: &Columns<T>, output: &mut impl Write) -> io::Result<Self> {
        let cells: Vec<String> = columns.columns().into_iter().map(|column| column.name).collect();
        let reading =
            |name: &String| Reading::for_place::<T>(&Place::from_column::<T>(name), columns.schema());
        let mut writer = Self {
            readings: cells.iter().map(reading).collect(),
            places: cells.iter().cloned().zip(0..).collect(),
            cells,
            lines: Lines::exact(),
        };
        writer.write_cells(output)?;
        Ok(writer)
    }

    pub(crate) fn write<T: Table>(
        &mut self,
        fields: Fields,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        self.cells.iter_mut().for_each(String::clear);
        for (name, value) in flatten::<T>(fields) {
            let Some(&place) = self.places.get(&name) else {
                return Err(WriteError::Column(name));
            };
            self.cells[place].push_str(&self.readings[place].write(&value));
        }
        Ok(self.write_cells(output)?)
    }

    fn write_cells(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.lines.push(&self.cells);
        output.write_all(self.lines.drain().as_str().as_bytes())
    }
}
