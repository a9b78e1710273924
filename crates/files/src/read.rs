//! Reading a file of any format row by row.

use std::{
    fmt,
    fs::File,
    io::{self, BufRead},
    marker::PhantomData,
    path::{Path, PathBuf},
    str::FromStr,
};

use atelier_core::domain::{Schema, Timestamp};
use rayon::prelude::*;

use super::{
    Dialect, Feed, FileError, FileRow, Format, RowError, Table, Unit, Warning,
    csv::CsvReader,
    feed::FeedReader,
    input::Input,
    json::Fields,
    json_lines::{JsonLinesReader, Line},
    parquet::ParquetReader,
    row::Bad,
    table::readable_id,
};

/// The rows of a file, one at a time. Reading goes on after a bad row, and stops at a fatal error
/// ([`RowError::is_fatal`]).
pub struct Rows<T> {
    source: Source,
    path: PathBuf,
    schema: Schema,
    ended: bool,
    table: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).finish_non_exhaustive()
    }
}

enum Source {
    JsonLines(JsonLinesReader),
    Csv(Box<CsvReader>),
    Parquet(ParquetReader),
    Feed(Box<FeedReader>),
}

/// The format of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    Table(Format),
    Feed(Feed),
}

impl InputFormat {
    /// That of a file without a name, which is not Parquet. A text is CSV unless it begins like another format.
    fn recognise(input: &mut Input) -> io::Result<Self> {
        Ok(match input.fill_buf()?.trim_ascii_start().first() {
            Some(b'{' | b'[') => Self::Table(Format::JsonLines),
            Some(b'<') => Self::Feed(Feed::GoogleXml),
            _ => Feed::recognise(Path::new("feed.txt"), input)?.map_or(Self::Table(Format::Csv), Self::Feed),
        })
    }
}

impl FromStr for InputFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let table = name.parse::<Format>().map(Self::Table);
        table.or_else(|_| name.parse().map(Self::Feed)).map_err(|feeds| {
            let feeds = feeds.trim_start_matches("expected ");
            format!("expected jsonl, csv, parquet, {feeds}")
        })
    }
}

/// Opens a file whose extension is its format; `.gz` may follow. The schema determines how features are read.
pub fn read<T: Table>(path: &Path, schema: &Schema) -> Result<Rows<T>, FileError> {
    read_as(path, schema, &Dialect::default())
}

/// Like [`read`], for a file that differs from our own.
pub fn read_as<T: Table>(path: &Path, schema: &Schema, dialect: &Dialect) -> Result<Rows<T>, FileError> {
    let format = Some(InputFormat::Table(Format::from_input(path)?));
    // No feed, whose prices may hold for a time.
    read_open(open(path)?, path, schema, format, Timestamp::from_millis(0), dialect)
}

/// Like [`read_as`], also for feeds, of an open file, which errors call `path`. The caller names the format, or the file's name
/// and first line show it; without an extension, the contents alone. `now` is the time for which a feed's prices are read.
pub fn read_open<T: Table>(
    file: File,
    path: &Path,
    schema: &Schema,
    format: Option<InputFormat>,
    now: Timestamp,
    dialect: &Dialect,
) -> Result<Rows<T>, FileError> {
    let refuse = |source| FileError::Open { path: path.to_owned(), source };
    let has_name = path.extension().is_some();
    let is_parquet = match format {
        Some(format) => format == InputFormat::Table(Format::Parquet),
        None if has_name => matches!(Format::from_input(path), Ok(Format::Parquet)),
        None => ParquetReader::recognise(&file),
    };
    if is_parquet {
        let source = Source::Parquet(ParquetReader::new::<T>(file, path, schema, dialect)?);
        return Ok(Rows::new(source, path, schema));
    }
    let mut input = inflate(file, path)?;
    if let Some(what) = no_rows(input.fill_buf().map_err(refuse)?) {
        return Err(FileError::NoRows { path: path.to_owned(), what });
    }
    let format = match format {
        Some(format) => format,
        None if has_name => match Feed::recognise(path, &mut input).map_err(refuse)? {
            Some(feed) => InputFormat::Feed(feed),
            None => InputFormat::Table(Format::from_input(path).map_err(|error| match error {
                FileError::Extension { path } if is_catalogue::<T>() => FileError::Catalogue { path },
                error => error,
            })?),
        },
        None => InputFormat::recognise(&mut input).map_err(refuse)?,
    };
    let source = match format {
        InputFormat::Table(Format::JsonLines) => Source::JsonLines(JsonLinesReader::new(input)),
        InputFormat::Table(Format::Csv) => {
            Source::Csv(Box::new(CsvReader::new::<T>(input, path, schema, dialect)?))
        }
        InputFormat::Table(Format::Parquet) => unreachable!("it is read from its end"),
        InputFormat::Feed(feed) => {
            if !describes_articles::<T>() {
                return Err(FileError::Feed { path: path.to_owned(), feed: feed.as_str() });
            }
            let input = dialect
                .encoding
                .into_iter()
                .try_fold(input, |input, encoding| input.decode(encoding.0))
                .map_err(refuse)?;
            Source::Feed(Box::new(FeedReader::new(feed, input, path, now, dialect)?))
        }
    };
    Ok(Rows::new(source, path, schema))
}

/// Names a beginning that is no table and no feed.
fn no_rows(head: &[u8]) -> Option<&'static str> {
    let begins = |with: &str| {
        head.trim_ascii_start()
            .get(..with.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()))
    };
    if begins("<!doctype html") || begins("<html") {
        Some("a web page (HTML), perhaps of a sign-in or an error; check the address and the credentials")
    } else if head.starts_with(b"PAR1") {
        Some("Parquet inside gzip; Parquet compresses its own columns, so send it as it is")
    } else {
        None
    }
}

/// Reads JSON Lines of `length` bytes from a file that need not have a name; errors call it `path`. It is not inflated,
/// because its length is limited where it was written.
pub fn read_json_lines<T: Table>(
    file: File,
    length: u64,
    path: &Path,
    schema: &Schema,
) -> Result<Rows<T>, FileError> {
    let input =
        Input::plain(file, length).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    let source = Source::JsonLines(JsonLinesReader::new(input));
    Ok(Rows::new(source, path, schema))
}

/// Whether the rows are articles or changes of them: only their format can be named.
fn is_catalogue<T: Table>() -> bool {
    T::FIELDS.iter().any(|field| field.name == "type")
}

/// Whether the rows are whole articles: only these come as feeds.
fn describes_articles<T: Table>() -> bool {
    T::FIELDS.iter().any(|field| field.name == "type" && field.required)
}

pub fn open(path: &Path) -> Result<File, FileError> {
    let open = |source| FileError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(open)?;
    if file.metadata().map_err(open)?.is_dir() {
        return Err(FileError::Folder { path: path.to_owned() });
    }
    Ok(file)
}

fn inflate(file: File, path: &Path) -> Result<Input, FileError> {
    let length = file.metadata().map(|metadata| metadata.len());
    let input = length.and_then(|length| Input::new(file, length));
    input.map_err(|source| FileError::Open { path: path.to_owned(), source })
}

impl<T> Rows<T> {
    fn new(source: Source, path: &Path, schema: &Schema) -> Self {
        Self { source, path: path.to_owned(), schema: schema.clone(), ended: false, table: PhantomData }
    }

    /// How much was read, and the total: bytes, or rows in Parquet.
    pub fn progress(&self) -> (u64, u64) {
        match &self.source {
            Source::JsonLines(reader) => reader.progress(),
            Source::Csv(reader) => reader.progress(),
            Source::Parquet(reader) => reader.progress(),
            Source::Feed(reader) => reader.progress(),
        }
    }

    /// The products of a feed that are not for sale, so far.
    pub(super) fn left_out(&self) -> u64 {
        match &self.source {
            Source::Feed(reader) => reader.left_out(),
            _ => 0,
        }
    }

    /// Says which columns of the file are not read, because they have a type that cannot be and nothing needs them, or which
    /// should probably be read as others.
    pub fn unread(&self) -> Option<&str> {
        match &self.source {
            Source::Parquet(reader) => reader.unread(),
            Source::Csv(reader) => reader.hint().map(|hint| hint.note.as_str()),
            _ => None,
        }
    }

    /// The probable columns of the file, by their names.
    pub(super) fn proposed(&self) -> &[&'static str] {
        match &self.source {
            Source::Csv(reader) => reader.hint().map_or(&[], |hint| &hint.names),
            _ => &[],
        }
    }

    /// About the bytes of the rows read so far.
    pub fn bytes(&self) -> u64 {
        match &self.source {
            Source::JsonLines(reader) => reader.bytes(),
            Source::Csv(reader) => reader.bytes(),
            Source::Parquet(reader) => reader.bytes(),
            Source::Feed(reader) => reader.bytes(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn unit(&self) -> Unit {
        match &self.source {
            Source::JsonLines(_) | Source::Csv(_) | Source::Feed(_) => Unit::Line,
            Source::Parquet(_) => Unit::Row,
        }
    }
}

impl<T: Table> Rows<T> {
    /// The next rows, at most `n` of them, or fewer if they are long; none at the end. Those of JSON Lines are parsed on all
    /// cores.
    pub fn next_rows(&mut self, n: usize) -> Vec<Result<FileRow<T>, RowError>>
    where
        T: Send,
    {
        let most = self.bytes() + TOGETHER;
        let Source::JsonLines(reader) = &mut self.source else {
            let mut rows = Vec::new();
            while rows.len() < n
                && self.bytes() < most
                && let Some(row) = self.next()
            {
                rows.push(row);
            }
            return rows;
        };
        let mut lines = Vec::new();
        while lines.len() < n
            && !self.ended
            && reader.bytes() < most
            && let Some(line) = reader.next_line()
        {
            self.ended = line.is_err();
            lines.push(line.map(Line::into_owned));
        }
        let schema = &self.schema;
        let parse = |line: Result<Line<'_>, RowError>| {
            line.and_then(|line| finish(Unit::Line, line.number, line.object(), schema))
        };
        lines.into_par_iter().map(parse).collect()
    }
}

/// The row that a file's fields are.
fn finish<T: Table>(
    unit: Unit,
    line: u64,
    fields: Result<Fields, Bad>,
    schema: &Schema,
) -> Result<FileRow<T>, RowError> {
    let (value, warnings) = fields
        .and_then(|fields| {
            let ids = readable_id(&fields);
            T::from_fields(fields, schema).map_err(|reason| Bad { reason, ids })
        })
        .map_err(|bad| RowError::new(unit, line, bad))?;
    Ok(FileRow { line, value, warnings: warnings.into_iter().map(Warning::Feature).collect() })
}

impl<T: Table> Iterator for Rows<T> {
    type Item = Result<FileRow<T>, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let unit = self.unit();
        let schema = &self.schema;
        let finish = |line, fields: Result<Fields, Bad>| finish(unit, line, fields, schema);
        let next = match &mut self.source {
            Source::JsonLines(reader) => reader.next(finish),
            Source::Csv(reader) => reader.next(finish),
            Source::Parquet(reader) => reader.next(finish),
            Source::Feed(reader) => reader.next(finish),
        };
        self.ended = next.as_ref().is_none_or(|row| row.as_ref().is_err_and(RowError::is_fatal));
        next
    }
}

/// About the most bytes of rows that are read together.
const TOGETHER: u64 = 8 << 20;
