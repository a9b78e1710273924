//! The files of a data folder: three tables, the schema, the shop's looks, and the ids of retired articles.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use atelier_core::domain::{Article, ArticleId, Customer, Outfit, Schema};

use super::{
    FileError, Format, LookRow, RowError, Table, Unit,
    write::{buffered, create_beside, move_into_place},
};

/// The schema's file name.
pub const SCHEMA: &str = "schema.toml";
/// The name of the file with the ids of articles that outfits have and the catalogue no longer has, one on each line.
pub const RETIRED: &str = "retired.txt";

/// The files of the three tables, any of which may be missing, of the looks, and of the retired articles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub articles: Option<PathBuf>,
    pub customers: Option<PathBuf>,
    pub outfits: Option<PathBuf>,
    pub looks: Option<PathBuf>,
    pub retired: Option<PathBuf>,
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
            looks: table_file(folder, LookRow::NAME)?,
            retired: Some(folder.join(RETIRED)).filter(|path| path.is_file()),
        })
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        [&self.articles, &self.customers, &self.outfits].into_iter().all(Option::is_none)
    }

    /// Reads the ids of the retired articles.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is no id.
    pub fn read_retired(&self) -> Result<Vec<ArticleId>, FileError> {
        let Some(path) = &self.retired else { return Ok(Vec::new()) };
        let text =
            fs::read_to_string(path).map_err(|source| FileError::Open { path: path.clone(), source })?;
        let id = |(number, line)| {
            ArticleId::new(line).map_err(|error| FileError::Interrupted {
                path: path.clone(),
                error: RowError::fatal(Unit::Line, number, error.to_string()),
            })
        };
        (1..).zip(text.lines()).map(id).collect()
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

/// Writes the ids of the retired articles to the folder, or removes an earlier file if there are none.
///
/// # Errors
/// If the disk refuses.
pub fn write_retired(folder: &Path, ids: &BTreeSet<ArticleId>) -> Result<(), FileError> {
    let path = folder.join(RETIRED);
    let write = || -> io::Result<()> {
        if ids.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let mut output = buffered(create_beside(&path)?);
        for id in ids {
            writeln!(output, "{id}")?;
        }
        move_into_place(output.into_inner()?, &path)
    };
    write().map_err(|source| FileError::Write { path: path.clone(), source })
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
