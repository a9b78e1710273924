//! Writing a file of any format row by row.

use std::{
    fmt,
    fs::{self, File},
    io::{self, BufWriter},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use atelier_core::domain::Schema;
use tempfile::NamedTempFile;

use super::{
    FileError, Format, Table, TableColumns, csv::CsvWriter, error::WriteError, json_lines,
    parquet::ParquetWriter,
};

/// The end of the names of unfinished files.
const PARTIAL: &str = ".partial";

/// Writes the rows of a table to a file, which appears when [`Writer::finish`] is called. Until then they are in a
/// hidden file next to it, which is deleted if the writer is dropped.
pub struct Writer<T> {
    sink: Sink,
    target: PathBuf,
    schema: Schema,
    table: PhantomData<fn(&T)>,
}

impl<T> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("target", &self.target).finish_non_exhaustive()
    }
}

enum Sink {
    JsonLines(BufWriter<NamedTempFile>),
    Csv(CsvWriter, BufWriter<NamedTempFile>),
    Parquet(Box<ParquetWriter>),
}

impl<T: Table> Writer<T> {
    pub fn create(path: &Path, format: Format, columns: &TableColumns<T>) -> Result<Self, FileError> {
        columns.check(format).map_err(|reason| FileError::Columns { path: path.to_owned(), reason })?;
        let sink = || -> io::Result<Sink> {
            let file = create_beside(path)?;
            Ok(match format {
                Format::JsonLines => Sink::JsonLines(buffered(file)),
                Format::Csv => {
                    let mut output = buffered(file);
                    Sink::Csv(CsvWriter::new(columns, &mut output)?, output)
                }
                Format::Parquet => Sink::Parquet(Box::new(ParquetWriter::new(columns, file)?)),
            })
        };
        Ok(Self {
            sink: sink().map_err(|source| FileError::Write { path: path.to_owned(), source })?,
            target: path.to_owned(),
            schema: columns.schema().clone(),
            table: PhantomData,
        })
    }

    pub fn write(&mut self, row: &T) -> Result<(), FileError> {
        let fields = row.to_fields(&self.schema);
        let written = match &mut self.sink {
            Sink::JsonLines(output) => json_lines::write_row::<T>(output, fields).map_err(WriteError::Disk),
            Sink::Csv(writer, output) => writer.write::<T>(fields, output),
            Sink::Parquet(writer) => writer.write::<T>(fields),
        };
        written.map_err(|error| match error {
            WriteError::Disk(source) => FileError::Write { path: self.target.clone(), source },
            WriteError::Column(column) => FileError::Column { path: self.target.clone(), column },
        })
    }

    /// Moves the file into place, replacing an existing one, which remains if the disk refuses.
    pub fn finish(self) -> Result<(), FileError> {
        let Self { sink, target, .. } = self;
        complete(&target, || match sink {
            Sink::JsonLines(output) | Sink::Csv(_, output) => Ok(output.into_inner()?),
            Sink::Parquet(writer) => writer.finish(),
        })
    }
}

/// Finishes a file made by [`create_beside`], and renames it to its target once all of it is on disk.
pub(super) fn complete(
    target: &Path,
    finish: impl FnOnce() -> io::Result<NamedTempFile>,
) -> Result<(), FileError> {
    let complete = || -> io::Result<()> {
        let file = finish()?;
        file.as_file().sync_all()?;
        file.persist(target)?;
        // Syncing the folder puts the new name on disk.
        #[cfg(unix)]
        File::open(folder(target))?.sync_all()?;
        Ok(())
    };
    complete().map_err(|source| FileError::Write { path: target.to_owned(), source })
}

pub(super) fn buffered(file: NamedTempFile) -> BufWriter<NamedTempFile> {
    BufWriter::with_capacity(1 << 18, file)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A hidden temporary file in the folder of `path`. Those that killed programs left are removed, since they may name
/// customers.
pub(super) fn create_beside(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let prefix = format!(".{}.", name.to_string_lossy());
    remove_leftovers(folder(path), &prefix);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(PARTIAL);
    // The umask decides who may read it, as for other files; temporary files are private by default.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder(path))?;
    // Without locks, as on some network drives, it still works.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Removes files that no program holds a lock on.
fn remove_leftovers(folder: &Path, prefix: &str) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let named = name.starts_with(prefix) && name.ends_with(PARTIAL);
        if named && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(path);
        }
    }
}
