//! The files of a data folder: three tables and the schema.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{FileError, Format, Table};
use crate::domain::{Article, Customer, Outfit, Schema};

/// The schema's file name.
pub const SCHEMA: &str = "schema.toml";

/// The files of the three tables. A table may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub articles: Option<PathBuf>,
    pub customers: Option<PathBuf>,
    pub outfits: Option<PathBuf>,
}

impl Files {
    /// Finds a file for each table, in any format.
    ///
    /// # Errors
    /// If the folder cannot be read, or contains two files of one table.
    pub fn in_folder(folder: &Path) -> Result<Self, FileError> {
        Ok(Self {
            articles: table_file(folder, Article::NAME)?,
            customers: table_file(folder, Customer::NAME)?,
            outfits: table_file(folder, Outfit::NAME)?,
        })
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn table_file(folder: &Path, table: &'static str) -> Result<Option<PathBuf>, FileError> {
    let open = |source| FileError::Open { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(open)? {
        let path = entry.map_err(open)?.path();
        let compressed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let inner = if compressed { path.with_extension("") } else { path.clone() };
        if inner.file_stem().is_some_and(|stem| stem == table) && Format::from_input(&path).is_ok() {
            found.push(path);
        }
    }
    if found.len() > 1 {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut names: Vec<String> = found.iter().map(name).collect();
        names.sort_unstable();
        return Err(FileError::Several { folder: folder.to_owned(), table, names });
    }
    Ok(found.pop())
}

/// Reads the folder's schema. A folder without one has the built-in schema.
///
/// # Errors
/// If the file exists but cannot be read or is invalid.
pub fn read_folder_schema(folder: &Path) -> Result<Schema, FileError> {
    let path = folder.join(SCHEMA);
    if path.is_file() { read_schema(&path) } else { Ok(Schema::default_schema()) }
}

/// # Errors
/// If the file cannot be read or is invalid.
pub fn read_schema(path: &Path) -> Result<Schema, FileError> {
    let text =
        fs::read_to_string(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    Schema::parse(&text)
        .map_err(|source| FileError::Schema { path: path.to_owned(), source: Box::new(source) })
}
