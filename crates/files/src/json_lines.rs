//! JSON Lines: one object on each line.

use std::{
    borrow::Cow,
    io::{self, BufRead, Read, Write},
    marker::PhantomData,
};

use atelier_core::domain::Schema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    FileRow, RowError, Table, Unit,
    input::Input,
    json::{Fields, JsonError, describe_type, explain_utf8_error, parse},
    row::{Bad, LONGEST, read_failure},
};

pub(super) struct JsonLinesReader {
    input: Input,
    line: u64,
    read: u64,
    buffer: Vec<u8>,
}

impl JsonLinesReader {
    pub(super) fn new(input: Input) -> Self {
        Self { input, line: 0, read: 0, buffer: Vec::new() }
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        self.input.progress()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.read
    }

    pub(super) fn next<T>(
        &mut self,
        finish: impl FnOnce(u64, Result<Fields, Bad>) -> Result<FileRow<T>, RowError>,
    ) -> Option<Result<FileRow<T>, RowError>> {
        let line = self.next_line()?;
        Some(line.and_then(|line| finish(line.number, line.object())))
    }

    /// The next line that is not blank. An error is fatal.
    pub(super) fn next_line(&mut self) -> Option<Result<Line<'_>, RowError>> {
        loop {
            let fits = match self.fill() {
                Ok(None) => return None,
                Ok(Some(fits)) => fits,
                Err(error) => {
                    return Some(Err(RowError::fatal(Unit::Line, self.line + 1, read_failure(&error))));
                }
            };
            if !fits || !self.buffer.trim_ascii_end().is_empty() {
                let text = fits.then(|| Cow::Borrowed(self.buffer.trim_ascii_end()));
                return Some(Ok(Line { number: self.line, text }));
            }
        }
    }

    /// Reads the next line into the buffer. `None` at the end, `false` if the line is too long.
    fn fill(&mut self) -> io::Result<Option<bool>> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(LONGEST as u64);
        let mut length = limited.read_until(b'\n', &mut self.buffer)?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        let fits = length < LONGEST || self.buffer.ends_with(b"\n");
        if !fits {
            length += self.input.skip_until(b'\n')?;
        }
        self.read += length as u64;
        Ok(Some(fits))
    }
}

/// A line of a file.
pub(super) struct Line<'a> {
    pub(super) number: u64,
    /// None if it is too long.
    text: Option<Cow<'a, [u8]>>,
}

impl Line<'_> {
    pub(super) fn into_owned(self) -> Line<'static> {
        Line { number: self.number, text: self.text.map(|text| Cow::Owned(text.into_owned())) }
    }

    pub(super) fn object(&self) -> Result<Fields, Bad> {
        let text = self.text.as_deref();
        let object =
            text.ok_or_else(|| format!("the line is longer than {} MiB", LONGEST >> 20)).and_then(object);
        object.map_err(Bad::from)
    }
}

fn object(bytes: &[u8]) -> Result<Fields, String> {
    let text = std::str::from_utf8(bytes).map_err(explain_utf8_error)?;
    match parse(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Array(_)) => Err(
            "a row must be an object, found a list; write each object on its own line (pandas: `lines=True`)"
                .into(),
        ),
        Ok(other) => Err(format!("a row must be an object, found {}", describe_type(&other))),
        Err(JsonError::Early(reason)) => Err(format!("{reason}; a row is one object on one line")),
        Err(JsonError::Syntax(reason) | JsonError::Content(reason)) => Err(reason),
    }
}

pub(super) fn write_row<T: Table>(output: &mut impl Write, fields: Fields) -> io::Result<()> {
    serde_json::to_writer(&mut *output, &CanonicalRow::<T>(fields, PhantomData))?;
    output.write_all(b"\n")
}

/// The line of one row.
pub fn json_line<T: Table>(row: &T, schema: &Schema) -> String {
    let row = CanonicalRow::<T>(row.to_fields(schema), PhantomData);
    let mut line = serde_json::to_string(&row).expect("texts and numbers are JSON");
    line.push('\n');
    line
}

/// The fields of a row: first the table's own, in their order.
struct CanonicalRow<T>(Fields, PhantomData<fn() -> T>);

impl<T: Table> Serialize for CanonicalRow<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(fields, _) = self;
        let own = T::FIELDS.iter().filter_map(|field| fields.get_key_value(field.name));
        let others = fields.iter().filter(|(name, _)| T::FIELDS.iter().all(|field| field.name != *name));
        serializer.collect_map(own.chain(others))
    }
}
