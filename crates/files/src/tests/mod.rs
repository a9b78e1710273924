//! Files of all three formats, written and read through the public functions.

mod bombs;
mod checks;
mod csv;
mod damage;
mod embeddings;
mod feeds;
mod foreign;
mod reading;
mod round_trip;
mod words;
mod writing;

use std::{fs, path::PathBuf, sync::LazyLock};

use atelier_core::domain::Schema;
use tempfile::TempDir;

use super::*;

static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::default_schema);

/// A temporary folder.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes rows, after a pass for their columns.
    fn rows<T: Table>(&self, name: &str, rows: &[T]) -> PathBuf {
        let path = self.path(name);
        let mut columns = Columns::new(&SCHEMA);
        for row in rows {
            columns.include(row);
        }
        let mut writer = Writer::create(&path, Format::from_path(&path).unwrap(), &columns).unwrap();
        for row in rows {
            writer.write(row).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

fn open<T: Table>(path: &std::path::Path) -> Rows<T> {
    read(path, &SCHEMA).unwrap()
}

/// The rows of a file, none of which is bad.
fn values<T: Table>(path: &std::path::Path) -> Vec<T> {
    open(path).map(|row| row.unwrap().value).collect()
}

/// The warnings and errors of a file.
fn messages<T: Table>(path: &std::path::Path) -> Vec<String> {
    open::<T>(path)
        .flat_map(|row| match row {
            Ok(row) => row.warnings.iter().map(|warning| format!("{}: {warning}", row.line)).collect(),
            Err(error) => vec![error.to_string()],
        })
        .collect()
}
