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
    FileError, FileRow, RowError, Table, TableColumns,
    columns::{RowFields, Target, find_targets, flatten},
    error::Unit,
    input::Input,
    json::Fields,
    read::{LONGEST, read_failure},
    write::WriteError,
};

/// The most cells of a record: above any sensible table, so that a line of commas takes little memory.
pub(super) const MOST_CELLS: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct CsvReader {
    records: Records,
    columns: Vec<(Target, Reading, String)>,
}

impl CsvReader {
    /// # Errors
    /// If the header cannot be read, or does not fit the table.
    pub(crate) fn new<T: Table>(input: Input, path: &Path, schema: &Schema) -> Result<Self, FileError> {
        let refuse = |reason: String| FileError::Columns { path: path.to_owned(), reason };
        let mut records = Records::new(input, b',');
        let names = records.read_header(path)?;
        if names.iter().any(|name| name.contains('\0')) {
            return Err(refuse("the name of a column contains the character NUL; remove it".into()));
        }
        let targets = find_targets::<T>(names.iter().map(String::as_str)).map_err(|reason| {
            let hint = if names.len() == 1 { "; commas separate the columns" } else { "" };
            refuse(format!("{reason}{hint}"))
        })?;
        let columns = targets.into_iter().zip(names).map(|(target, name)| {
            let reading = Reading::for_target::<T>(&target, schema);
            (target, reading, name)
        });
        Ok(Self { columns: columns.collect(), records })
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        self.records.progress()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.records.read
    }

    pub(crate) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, String>) -> Result<FileRow<T>, RowError>,
    ) -> Option<Result<FileRow<T>, RowError>> {
        match self.records.next_record().transpose()? {
            Ok(line) => Some(finish(line, self.fields::<T>())),
            Err(error) => Some(Err(error)),
        }
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
        for ((target, reading, name), cell) in self.columns.iter().zip(cells) {
            let value = reading.read(cell).map_err(|reason| format!("column {name:?}: {reason}"))?;
            fields.insert(target, &[], value);
        }
        fields.into_fields::<T>()
    }
}

/// Why a record cannot be read.
enum End {
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

    /// The line of the next byte.
    fn next_line(&self) -> u64 {
        self.line_ends + 1
    }

    /// Reads the names of the columns.
    pub(crate) fn read_header(&mut self, path: &Path) -> Result<Vec<String>, FileError> {
        let refuse = |reason: String| FileError::Columns { path: path.to_owned(), reason };
        match self.next() {
            Ok(Some(line)) => {
                let cells = self.cells().map_err(|reason| refuse(format!("line {line}: {reason}")))?;
                Ok(cells.into_iter().map(str::to_owned).collect())
            }
            Ok(None) => {
                Err(refuse("the file is empty; expected a header with the names of the columns".into()))
            }
            Err(End::Disk(source)) => Err(FileError::Open { path: path.to_owned(), source }),
            Err(End::Format(reason)) => Err(refuse(format!("in the header, {reason}"))),
        }
    }

    /// Reads the next record, and gives the line on which it begins. An error is fatal.
    pub(crate) fn next_record(&mut self) -> Result<Option<u64>, RowError> {
        let begins = self.next_line();
        self.next().map_err(|end| match end {
            End::Disk(error) => RowError::fatal(Unit::Line, begins, read_failure(&error)),
            End::Format(reason) => RowError::fatal(Unit::Line, self.begins, reason),
        })
    }

    fn next(&mut self) -> Result<Option<u64>, End> {
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
pub(crate) struct CsvWriter {
    /// By the names of the columns: the index of the cell, and how it is read.
    columns: HashMap<String, (usize, Reading)>,
    cells: Vec<String>,
    lines: Lines,
}

impl CsvWriter {
    /// Writes the header.
    pub(crate) fn new<T: Table>(columns: &TableColumns<T>, output: &mut impl Write) -> io::Result<Self> {
        let cells: Vec<String> = columns.columns().into_iter().map(|column| column.name).collect();
        let reading =
            |name: &str| Reading::for_target::<T>(&Target::from_column::<T>(name), columns.schema());
        let columns = cells.iter().zip(0..).map(|(name, index)| (name.clone(), (index, reading(name))));
        let mut writer = Self { columns: columns.collect(), cells, lines: Lines::exact() };
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
            let Some((index, reading)) = self.columns.get(&name) else {
                return Err(WriteError::Column(name));
            };
            self.cells[*index].push_str(&reading.write(&value));
        }
        Ok(self.write_cells(output)?)
    }

    fn write_cells(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.lines.push(&self.cells);
        output.write_all(self.lines.drain().as_str().as_bytes())
    }
}
