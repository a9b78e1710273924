//! CSV files, record by record.
//!
//! Built on `csv-core`, the state machine inside the `csv` crate, because that crate's line numbers are
//! off by one after CRLF and count blank lines with the record before them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use csv_core::ReadRecordResult;

use super::cell::Reading;
use crate::{
    domain::Schema,
    files::{
        ExchangeError, Row, RowError, Table,
        error::Unit,
        flat::{Gathered, Place, places},
        text::{LONGEST, skip_byte_order_mark, stopped},
        value::Fields,
    },
};

/// Most cells of a record: above any table that makes sense, so that a line of commas stays small.
const MOST_CELLS: usize = 1 << 16;

#[derive(Debug)]
pub(in crate::files) struct Reader {
    records: Records,
    columns: Vec<(Place, Reading, String)>,
    total: u64,
}

impl Reader {
    /// # Errors
    /// If the header cannot be read, or is not that of the table.
    pub(in crate::files) fn new<T: Table>(
        file: File,
        total: u64,
        path: &Path,
        schema: &Schema,
    ) -> Result<Self, ExchangeError> {
        let refuse = |reason: String| ExchangeError::Columns { path: path.to_owned(), reason };
        let mut records = Records::new(file);
        let header = match records.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Err(refuse("it is empty; expected a header with the columns' names".into())),
            Err(End::Disk(source)) => return Err(ExchangeError::Open { path: path.to_owned(), source }),
            Err(End::Format(reason)) => return Err(refuse(format!("in the header, {reason}"))),
        };
        let names = records.cells().map_err(|reason| refuse(format!("line {header}: {reason}")))?;
        if names.iter().any(|name| name.contains('\0')) {
            return Err(refuse("a column's name holds the character NUL: take it out".into()));
        }
        let places = places::<T>(names.iter().copied()).map_err(|reason| {
            let hint = if names.len() == 1 { "; commas separate the columns" } else { "" };
            refuse(format!("{reason}{hint}"))
        })?;
        let columns = places.into_iter().zip(&names);
        let columns = columns
            .map(|(place, name)| {
                let reading = Reading::of::<T>(&place, schema);
                (place, reading, (*name).to_owned())
            })
            .collect();
        Ok(Self { records, columns, total })
    }

    pub(in crate::files) fn progress(&self) -> (u64, u64) {
        (self.records.read, self.total)
    }

    pub(in crate::files) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields<'_>, String>) -> Result<Row<T>, RowError>,
    ) -> Option<Result<Row<T>, RowError>> {
        let begins = self.records.next_line();
        let line = match self.records.next() {
            Ok(None) => return None,
            Ok(Some(line)) => line,
            Err(End::Disk(error)) => return Some(Err(RowError::fatal(Unit::Line, begins, stopped(&error)))),
            Err(End::Format(reason)) => {
                return Some(Err(RowError::fatal(Unit::Line, self.records.begins, reason)));
            }
        };
        Some(finish(line, self.fields::<T>()))
    }

    fn fields<T: Table>(&self) -> Result<Fields<'_>, String> {
        let cells = self.records.cells()?;
        if cells.len() != self.columns.len() {
            let lines = self.records.next_line() - self.records.begins;
            let hint = if lines > 1 {
                format!(" (it spans {lines} lines: is a quote left open?)")
            } else {
                String::new()
            };
            let (found, expected) = (cells.len(), self.columns.len());
            return Err(format!("the header has {expected} cells, this row has {found}{hint}"));
        }
        let mut gathered = Gathered::default();
        for ((place, reading, name), cell) in self.columns.iter().zip(cells) {
            let value = reading.read(cell).map_err(|reason| format!("column {name:?}: {reason}"))?;
            gathered.put(place, &[], value);
        }
        gathered.finish::<T>()
    }
}

/// Why there is no next record although the file has not ended.
enum End {
    Disk(io::Error),
    Format(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Records as cells, with the lines they begin on.
#[derive(Debug)]
struct Records {
    input: BufReader<File>,
    core: csv_core::Reader,
    /// Bytes consumed, and line ends among them.
    read: u64,
    line_ends: u64,
    /// The line on which the current record begins.
    begins: u64,
    /// The current record: its cells' bytes one after another, where each ends, and how many they are.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    cells: usize,
}

impl Records {
    fn new(file: File) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, file),
            core: csv_core::Reader::new(),
            read: 0,
            line_ends: 0,
            begins: 1,
            bytes: vec![0; 4096],
            ends: vec![0; 64],
            cells: 0,
        }
    }

    /// The line that the next byte stands on.
    fn next_line(&self) -> u64 {
        self.line_ends + 1
    }

    /// Reads the next record and says on which line it begins.
    fn next(&mut self) -> Result<Option<u64>, End> {
        if self.read == 0 {
            self.read += skip_byte_order_mark(&mut self.input)?;
        }
        if !self.skip_line_ends()? {
            return Ok(None);
        }
        self.begins = self.next_line();
        self.cells = 0;
        let (start, mut filled) = (self.read, 0);
        loop {
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            // A last line without an end gets one. Inside quotes that ends nothing.
            let input = if at_end { b"\n" } else { input };
            let (result, consumed, written, ended) =
                self.core.read_record(input, &mut self.bytes[filled..], &mut self.ends[self.cells..]);
            filled += written;
            self.cells += ended;
            if !at_end {
                self.consume(consumed);
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(self.begins)),
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(End::Format(
                        "a quote is opened in this row and never closed, which swallows all that follows"
                            .into(),
                    ));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MOST_CELLS => {
                    return Err(End::Format(format!("this row has over {MOST_CELLS} cells")));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::End => return Ok(None),
            }
            if self.read - start > LONGEST as u64 {
                let most = LONGEST >> 20;
                return Err(End::Format(format!(
                    "this row is longer than {most} MiB: is a quote left open?"
                )));
            }
        }
    }

    /// Steps over blank lines and what is left of the last record's line end; false at the file's end.
    fn skip_line_ends(&mut self) -> io::Result<bool> {
        loop {
            let input = self.input.fill_buf()?;
            let length = input.len();
            let blank = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if length == 0 {
                return Ok(false);
            }
            self.consume(blank);
            if blank < length {
                return Ok(true);
            }
        }
    }

    fn consume(&mut self, length: usize) {
        let consumed = &self.input.buffer()[..length];
        self.line_ends += consumed.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        self.read += length as u64;
        self.input.consume(length);
    }

    fn cells(&self) -> Result<Vec<&str>, String> {
        let mut start = 0;
        let cell = |(number, end): (usize, &usize)| {
            let bytes = &self.bytes[start..*end];
            start = *end;
            std::str::from_utf8(bytes)
                .map_err(|_| format!("cell {number} is not UTF-8 text: save the file as UTF-8"))
        };
        (1..).zip(&self.ends[..self.cells]).map(cell).collect()
    }
}
