//! Writing a file row by row, whatever its format.

use std::{
    io::{self, BufWriter},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{ExchangeError, Format, Shape, Table, csv, json_lines, parquet};
use crate::domain::Schema;

/// Writes the rows of a table to a file that appears, whole, when [`Writer::finish`] is called. Until
/// then they stand in a hidden file beside it, which goes away with the writer.
#[derive(Debug)]
pub struct Writer<T> {
    sink: Sink,
    target: PathBuf,
    schema: Schema,
    table: PhantomData<fn(&T)>,
}

#[derive(Debug)]
enum Sink {
    JsonLines(BufWriter<NamedTempFile>),
    Csv(csv::Writer, BufWriter<NamedTempFile>),
    Parquet(Box<parquet::Writer>),
}

/// Why a row could not be written.
pub(super) enum WriteError {
    Disk(io::Error),
    /// The shape never saw this column, or saw narrower values in it.
    Column(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl<T: Table> Writer<T> {
    /// # Errors
    /// If the folder is not there or cannot be written to.
    pub fn create(path: &Path, format: Format, shape: &Shape<T>) -> Result<Self, ExchangeError> {
        let sink = || -> io::Result<Sink> {
            let file = beside(path)?;
            Ok(match format {
                Format::JsonLines => Sink::JsonLines(buffered(file)),
                Format::Csv => {
                    let mut output = buffered(file);
                    Sink::Csv(csv::Writer::new(shape, &mut output)?, output)
                }
                Format::Parquet => Sink::Parquet(Box::new(parquet::Writer::new(shape, file)?)),
            })
        };
        Ok(Self {
            sink: sink().map_err(|source| ExchangeError::Write { path: path.to_owned(), source })?,
            target: path.to_owned(),
            schema: shape.schema().clone(),
            table: PhantomData,
        })
    }

    /// # Errors
    /// If the disk refuses, or the shape has not seen this row.
    pub fn write(&mut self, row: &T) -> Result<(), ExchangeError> {
        let fields = row.to_fields(&self.schema);
        let written = match &mut self.sink {
            Sink::JsonLines(output) => json_lines::write_row(output, fields).map_err(WriteError::Disk),
            Sink::Csv(writer, output) => writer.write::<T>(fields, output),
            Sink::Parquet(writer) => writer.write::<T>(fields),
        };
        written.map_err(|error| match error {
            WriteError::Disk(source) => ExchangeError::Write { path: self.target.clone(), source },
            WriteError::Column(column) => ExchangeError::Shape { path: self.target.clone(), column },
        })
    }

    /// Puts the file in its place, replacing the one that is there.
    ///
    /// # Errors
    /// If the disk refuses; then what was there is still there.
    pub fn finish(self) -> Result<(), ExchangeError> {
        let Self { sink, target, .. } = self;
        let file = || -> io::Result<NamedTempFile> {
            Ok(match sink {
                Sink::JsonLines(output) | Sink::Csv(_, output) => output.into_inner()?,
                Sink::Parquet(writer) => writer.finish()?,
            })
        };
        file()
            .and_then(|file| put_in_place(file, &target))
            .map_err(|source| ExchangeError::Write { path: target.clone(), source })
    }
}

/// Gives a file that stands [`beside`] its target the target's name, once all of it is on disk.
pub(super) fn put_in_place(file: NamedTempFile, target: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(target)?;
    // The rename is on disk once the folder is.
    #[cfg(unix)]
    std::fs::File::open(folder(target))?.sync_all()?;
    Ok(())
}

pub(super) fn buffered(file: NamedTempFile) -> BufWriter<NamedTempFile> {
    BufWriter::with_capacity(1 << 18, file)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".partial");
    // A file like any other: the umask decides who reads it, not the custom of temporary files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder(path))
}
