//! Files of all three formats, written and read through the module's own front door.

mod checks;
mod csv;
mod damage;
mod foreign;
mod reading;
mod round_trip;
mod words;
mod writing;

use std::{fs, path::PathBuf, sync::LazyLock};

use tempfile::TempDir;

use super::*;
use crate::domain::Schema;

static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::default_schema);

/// A folder that goes away with the test.
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

    /// Writes rows, with a first pass for the columns.
    fn rows<T: Table>(&self, name: &str, rows: &[T]) -> PathBuf {
        let path = self.path(name);
        let mut shape = Shape::new(&SCHEMA);
        for row in rows {
            shape.see(row);
        }
        let mut writer = Writer::create(&path, Format::of(&path).unwrap(), &shape).unwrap();
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

/// All rows of a file without a bad one.
fn values<T: Table>(path: &std::path::Path) -> Vec<T> {
    open(path).map(|row| row.unwrap().value).collect()
}

/// What a file's rows come to: warnings for a good one, the reason for a bad one.
fn said<T: Table>(path: &std::path::Path) -> Vec<String> {
    open::<T>(path)
        .flat_map(|row| match row {
            Ok(row) => row.warnings.iter().map(|warning| format!("{}: {warning}", row.line)).collect(),
            Err(error) => vec![error.to_string()],
        })
        .collect()
}
