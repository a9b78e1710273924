//! CSV files, record by record.
//!
//! The reader uses `csv-core`, the state machine of the `csv` crate, because that crate's line numbers are off by one
//! after CRLF and count blank lines with the record before them.

mod cell;

use std::{
    collections::HashMap,
    io::{self, BufRead, Cursor, Write},
    iter,
    path::Path,
};

use atelier_core::{domain::Schema, util::csv::Lines};
use csv_core::ReadRecordResult;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use serde_json::Value;

use self::cell::{Reading, infer, write_json};
use super::{
    Delimiter, Dialect, FileError, FileRow, RowError, Table, TableColumns,
    columns::{Kind, MOST_CELLS, PADDING, RowFields, Target, find_targets, flatten, missing},
    dialect::DELIMITERS,
    error::{Misfit, WriteError},
    header::{Hint, propose_others},
    input::{Input, is_utf8},
    json::Fields,
    row::{Bad, LONGEST, Unit, read_failure},
};

pub(crate) struct CsvReader {
    records: Records,
    delimiter: Delimiter,
    columns: Vec<Column>,
    /// How many cells of a row have a name.
    named: usize,
    hint: Option<Hint>,
}

/// A column that is read.
struct Column {
    cell: usize,
    name: String,
    target: Target,
    reading: Reading,
    /// Whether a cell is a text, even if it looks like a number, because most are, or one is a code.
    is_text: bool,
}

impl CsvReader {
    pub(crate) fn new<T: Table>(
        mut input: Input,
        path: &Path,
        schema: &Schema,
        dialect: &Dialect,
    ) -> Result<Self, FileError> {
        let open = |source| FileError::Open { path: path.to_owned(), source };
        if let Some(encoding) = dialect.encoding {
            input = input.decode(encoding.0).map_err(open)?;
        }
        let head = input.peek().map_err(open)?;
        let mut head = Head::new::<T>(head, dialect);
        let mut records = Records::new(input, head.delimiter.0);
        if head.is_marked {
            records.read_header(path)?;
        }
        let mut flags = Vec::new();
        let (names, is_read) = match (records.read_header(path), head.encoding) {
            (Ok(names), encoding) if !names.iter().any(|name| name.contains('\0')) => {
                flags.extend(encoding.map(encoding_flag));
                (names, true)
            }
            (_, Some(encoding)) => {
                flags.push(encoding_flag(encoding));
                (head.records().next().unwrap_or_default(), false)
            }
            (Ok(_), None) => {
                let reason = "the name of a column contains the character NUL; remove it".to_owned();
                return Err(FileError::header(path, reason.into()));
            }
            (Err(error), None) => return Err(error),
        };
        let names = trim_header(names);
        let renamed: Vec<(usize, &str)> =
            (0..).zip(&names).filter_map(|(cell, name)| Some((cell, dialect.rename::<T>(name)?))).collect();
        let columns: Vec<&str> = renamed.iter().map(|(_, name)| *name).collect();
        let targets = match find_targets::<T>(&columns, schema) {
            Ok(targets) if is_read => targets,
            Ok(_) => return Err(FileError::header(path, Misfit { reason: NOT_UTF8.into(), flags })),
            Err(mut misfit) => {
                if !is_read {
                    misfit.reason = format!("{NOT_UTF8}, and {}", misfit.reason);
                }
                let (delimiter, usual) = (head.delimiter, head.find_delimiter::<T>(dialect));
                flags.extend((usual != delimiter).then(|| format!("--delimiter {usual}")));
                flags.append(&mut misfit.flags);
                return Err(FileError::header(path, Misfit { flags, ..misfit }));
            }
        };
        let hint = propose_others::<T>(&columns, schema);
        let mut columns: Vec<Column> = targets
            .into_iter()
            .zip(renamed)
            .map(|(target, (cell, name))| {
                let reading = Reading::for_target::<T>(&target, schema);
                Column { cell, name: name.to_owned(), target, reading, is_text: false }
            })
            .collect();
        head.find_texts(&mut columns);
        Ok(Self { records, delimiter: head.delimiter, columns, named: names.len(), hint })
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        self.records.progress()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.records.read
    }

    /// Says which columns are probably others than their names say.
    pub(crate) fn hint(&self) -> Option<&Hint> {
        self.hint.as_ref()
    }

    pub(crate) fn next<T: Table>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, Bad>) -> Result<FileRow<T>, RowError>,
    ) -> Option<Result<FileRow<T>, RowError>> {
        loop {
            match self.records.next_record().transpose()? {
                // Spreadsheets end with rows of nothing but delimiters.
                Ok(_) if self.records.is_blank() => {}
                Ok(line) => {
                    let mut row = finish(line, self.fields::<T>());
                    if let Err(RowError { ids, .. }) = &mut row
                        && !ids.is_empty()
                    {
                        ids.extend(self.swallowed_ids());
                    }
                    return Some(row);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn fields<T: Table>(&self) -> Result<Fields, Bad> {
        let cells = self.records.cells().map_err(|reason| Bad { reason, ids: self.readable_id(|_| true) })?;
        let lines = self.records.next_line() - self.records.begins;
        // Some programs end a row with a delimiter.
        let is_whole = cells.len() == self.named
            || cells.len() > self.named
                && lines <= 1
                && cells[self.named..].iter().all(|cell| cell.trim().is_empty());
        if !is_whole {
            let hint = if lines > 1 {
                format!(" (it spans {lines} lines: is a closing quote missing?)")
            } else {
                String::new()
            };
            let (found, expected) = (cells.len(), self.named);
            let reason = format!("the header has {expected} cells, but this row has {found}{hint}");
            // Before the first cell none is missing or too many. Other rows may be inside a long one.
            return Err(Bad { reason, ids: self.readable_id(|cell| cell == 0 && lines <= 1) });
        }
        let mut fields = RowFields::default();
        for Column { cell, name, target, reading, is_text } in &self.columns {
            let cell = cells[*cell];
            let mut value = reading.read(cell).map_err(|reason| Bad {
                reason: format!("column {name:?}: {reason}"),
                ids: self.readable_id(|_| true),
            })?;
            if *is_text && (value.is_number() || value.is_boolean()) {
                value = cell.into();
            }
            fields.insert(target, &[], value);
        }
        Ok(fields.into_fields::<T>()?)
    }

    fn id_cell(&self) -> Option<usize> {
        let is_id = |column: &&Column| matches!(&column.target, Target::Field(name) if name == "id");
        self.columns.iter().find(is_id).map(|column| column.cell)
    }

    /// The possible ids of rows inside a cell: a quotation mark too many in one row takes in the rows up to the next one.
    fn swallowed_ids(&self) -> impl Iterator<Item = String> {
        let id = self.id_cell().unwrap_or_default();
        let cells = (0..self.named).filter_map(|cell| self.records.cell(cell));
        cells.flat_map(|cell| cell.lines().skip(1)).filter_map(move |line| {
            let cell = line.split(char::from(self.delimiter.0)).nth(id)?;
            Some(cell.trim_matches(|c: char| c == '"' || c.is_whitespace()).to_owned())
        })
    }

    /// The id of a bad row, if its cell can be trusted.
    fn readable_id(&self, is_right: impl Fn(usize) -> bool) -> Vec<String> {
        let cell = self.id_cell().filter(|cell| is_right(*cell)).and_then(|cell| self.records.cell(cell));
        cell.map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).into_iter().collect()
    }
}

/// The beginning of a file, which shows how the rest is read.
struct Head {
    text: Vec<u8>,
    delimiter: Delimiter,
    /// The encoding that the file probably has, if it is not the one in which it is read.
    encoding: Option<&'static Encoding>,
    /// Whether a line before the header says the delimiter, as Excel has it: `sep=;`.
    is_marked: bool,
}

impl Head {
    fn new<T: Table>(bytes: &[u8], dialect: &Dialect) -> Self {
        let encoding = match bytes {
            [0, second, ..] if *second > 0 => Some(UTF_16BE),
            [_, 0, ..] => Some(UTF_16LE),
            _ => (!is_utf8(bytes)).then_some(WINDOWS_1252),
        };
        let mut text = match encoding {
            Some(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned().into_bytes(),
            None => bytes.to_vec(),
        };
        let mark = text.strip_prefix(b"sep=").and_then(|rest| rest.first().copied().map(Delimiter));
        if mark.is_some() {
            text.drain(..text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()));
        }
        let mut head = Self { text, delimiter: Delimiter::COMMA, encoding, is_marked: mark.is_some() };
        head.delimiter = dialect.delimiter.or(mark).unwrap_or_else(|| head.find_delimiter::<T>(dialect));
        head
    }

    /// The first delimiter with which the header fits the table, or the one that gives it the most columns.
    fn find_delimiter<T: Table>(&mut self, dialect: &Dialect) -> Delimiter {
        let mut most = (0, Delimiter::COMMA);
        for delimiter in DELIMITERS {
            self.delimiter = delimiter;
            let names = trim_header(self.records().next().unwrap_or_default());
            let renamed: Vec<&str> = names.iter().filter_map(|name| dialect.rename::<T>(name)).collect();
            if missing::<T>(&renamed).next().is_none() {
                return delimiter;
            }
            if names.len() > most.0 {
                most = (names.len(), delimiter);
            }
        }
        most.1
    }

    /// The records of the text, of which the last may be cut.
    fn records(&self) -> impl Iterator<Item = Vec<String>> {
        let mut records = Records::new(Input::of(Cursor::new(self.text.clone())), self.delimiter.0);
        iter::from_fn(move || {
            records.next_record().ok()??;
            Some(records.cells().ok()?.into_iter().map(str::to_owned).collect())
        })
    }

    /// Finds the columns of texts.
    fn find_texts(&self, columns: &mut [Column]) {
        let mut texts = vec![0_i32; columns.len()];
        for cells in self.records().skip(1) {
            for (column, texts) in
                columns.iter().zip(&mut texts).filter(|(column, _)| column.reading.is_inferred())
            {
                let cell = cells.get(column.cell).map_or("", String::as_str);
                *texts = texts.saturating_add(match infer(cell) {
                    _ if is_code(cell) => i32::MAX,
                    Value::String(_) if !cell.trim().is_empty() && !cell.starts_with(['"', '[', '{']) => 1,
                    Value::Number(_) | Value::Bool(_) => -1,
                    _ => 0,
                });
            }
        }
        for (column, texts) in columns.iter_mut().zip(texts) {
            column.is_text = texts > 0;
        }
    }
}

/// Whether no program writes a number so: `007`, `1E5`.
fn is_code(cell: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match cell.split_once('E') {
        Some((digits, exponent)) => !digits.is_empty() && is_digits(digits) && is_digits(exponent),
        None => cell.len() > 1 && cell.starts_with('0') && is_digits(cell),
    }
}

const NOT_UTF8: &str = "the header is not UTF-8 text";

fn encoding_flag(encoding: &'static Encoding) -> String {
    format!("--encoding {}", encoding.name().to_lowercase())
}

/// The names without space around them, and without nameless columns at the end.
fn trim_header(mut names: Vec<String>) -> Vec<String> {
    for name in &mut names {
        *name = name.trim_matches(PADDING).to_owned();
    }
    names.truncate(names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1));
    names
}

/// Splits the file into cells, and counts its lines.
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
        match self.next_record() {
            Ok(Some(line)) => {
                let cells = self.cells().map_err(|reason| refuse(format!("line {line}: {reason}")))?;
                Ok(cells.into_iter().map(str::to_owned).collect())
            }
            Ok(None) => {
                Err(refuse("the file is empty; expected a header with the names of the columns".into()))
            }
            Err(error) => Err(refuse(format!("in the header, {}", error.reason))),
        }
    }

    /// Reads the next record, and gives the line on which it begins. An error is fatal.
    pub(crate) fn next_record(&mut self) -> Result<Option<u64>, RowError> {
        self.next().map_err(|reason| RowError::fatal(Unit::Line, self.begins, reason))
    }

    /// # Errors
    /// Why the rest cannot be read.
    fn next(&mut self) -> Result<Option<u64>, String> {
        self.begins = self.next_line();
        if !self.skip_line_ends().map_err(|error| read_failure(&error))? {
            return Ok(None);
        }
        self.begins = self.next_line();
        self.cells = 0;
        let (start, mut filled) = (self.read, 0);
        loop {
            let input = self.input.fill_buf().map_err(|error| read_failure(&error))?;
            let at_end = input.is_empty();
            // A line end completes a last line that has none, unless it is inside quotes.
            let input = if at_end { b"\n" } else { input };
            let (result, consumed, written, ended) =
                self.core.read_record(input, &mut self.bytes[filled..], &mut self.ends[self.cells..]);
            filled += written;
            self.cells += ended;
            if !at_end {
                self.consume(consumed).map_err(|error| read_failure(&error))?;
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(self.begins)),
                ReadRecordResult::InputEmpty if at_end => {
                    return Err("a quote that opens in this row is never closed".into());
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MOST_CELLS => {
                    return Err(format!("this row has more than {MOST_CELLS} cells"));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::End => return Ok(None),
            }
            if self.read - start > LONGEST as u64 {
                let most = LONGEST >> 20;
                return Err(format!("this row is longer than {most} MiB; is a closing quote missing?"));
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

    /// Whether the current record has nothing in any cell.
    fn is_blank(&self) -> bool {
        self.ends[..self.cells].last() == Some(&0)
    }

    /// A cell, if it is there and is text.
    fn cell(&self, index: usize) -> Option<&str> {
        let ends = &self.ends[..self.cells];
        let start = index.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
        std::str::from_utf8(&self.bytes[start..*ends.get(index)?]).ok()
    }

    pub(crate) fn cells(&self) -> Result<Vec<&str>, String> {
        let mut start = 0;
        let cell = |(number, end): (usize, &usize)| {
            let bytes = &self.bytes[start..*end];
            start = *end;
            std::str::from_utf8(bytes)
                .map_err(|_| format!("cell {number} is not UTF-8 text; if the file is from Windows, read it with --encoding windows-1252"))
        };
        (1..).zip(&self.ends[..self.cells]).map(cell).collect()
    }
}

pub(crate) struct CsvWriter {
    /// By the names of the columns: the index of the cell, how it is read, and whether texts are written as JSON, so that
    /// values of other types next to them are not taken for texts.
    columns: HashMap<String, (usize, Reading, bool)>,
    cells: Vec<String>,
    lines: Lines,
}

impl CsvWriter {
    /// Writes the header.
    pub(crate) fn new<T: Table>(columns: &TableColumns<T>, output: &mut impl Write) -> io::Result<Self> {
        let reading =
            |name: &str| Reading::for_target::<T>(&Target::from_column::<T>(name), columns.schema());
        let all = columns.columns();
        let cells = all.iter().map(|column| column.name.clone()).collect();
        let columns = all.into_iter().zip(0..).map(|(column, index)| {
            let reading = reading(&column.name);
            (column.name, (index, reading, column.kind == Kind::Json && reading.is_inferred()))
        });
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
            let Some((index, reading, is_mixed)) = self.columns.get(&name) else {
                return Err(WriteError::Column(name));
            };
            let cell = if *is_mixed && value.is_string() {
                write_json(&value).into()
            } else {
                reading.write(&value)
            };
            self.cells[*index].push_str(&cell);
        }
        Ok(self.write_cells(output)?)
    }

    fn write_cells(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.lines.push(&self.cells);
        output.write_all(self.lines.drain().as_str().as_bytes())
    }
}
