//! The files of a data folder: three tables, the schema, the shop's looks, the ids of retired articles, and when outfits were
//! saved.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use atelier_core::domain::{Article, ArticleId, Customer, Outfit, Schema, Timestamp};

use super::{
    FileError, Format, LookRow, RowError, Table, Unit,
    format::without_gz,
    orders::read_time,
    write::{buffered, complete, create_beside},
};

/// The schema's file name.
pub const SCHEMA: &str = "schema.toml";
/// The name of the file with the ids of articles that outfits have and the catalogue no longer has, one on each line.
pub const RETIRED: &str = "retired.txt";
/// The name of the file that says when each outfit was saved: a line for each row of outfits, empty for an imported one.
const TIMES: &str = "times.txt";

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
    pub fn read_retired(&self) -> Result<Vec<ArticleId>, FileError> {
        let Some(path) = &self.retired else { return Ok(Vec::new()) };
        read_lines(path, |line| ArticleId::new(line).map_err(|error| error.to_string()))
    }
}

/// Finds the file of another table, such as orders, in any format.
pub fn find_table<T: Table>(folder: &Path) -> Result<Option<PathBuf>, FileError> {
    table_file(folder, T::NAME)
}

fn table_file(folder: &Path, table: &'static str) -> Result<Option<PathBuf>, FileError> {
    let open = |source| FileError::Open { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(open)? {
        let path = entry.map_err(open)?.path();
        if without_gz(&path).file_stem().is_some_and(|stem| stem == table)
            && Format::from_input(&path).is_ok()
        {
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
pub fn write_retired(folder: &Path, ids: &BTreeSet<ArticleId>) -> Result<(), FileError> {
    write_lines(&folder.join(RETIRED), ids.iter().map(ToString::to_string))
}

/// Writes when outfits were saved, or removes an earlier file if none was.
pub fn write_times(folder: &Path, times: &[Option<Timestamp>]) -> Result<(), FileError> {
    let times = if times.iter().any(Option::is_some) { times } else { &[] };
    let line = |time: &Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    write_lines(&folder.join(TIMES), times.iter().map(line))
}

/// Reads when outfits were saved; empty if the folder does not say it.
pub fn read_times(folder: &Path) -> Result<Vec<Option<Timestamp>>, FileError> {
    let path = folder.join(TIMES);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    read_lines(&path, |line| {
        Some(line).filter(|line| !line.is_empty()).map(|line| read_time(line.into())).transpose()
    })
}

fn read_lines<V>(path: &Path, read: impl Fn(&str) -> Result<V, String>) -> Result<Vec<V>, FileError> {
    let value = |(number, line)| {
        read(line).map_err(|reason| FileError::Interrupted {
            path: path.to_owned(),
            error: RowError::fatal(Unit::Line, number, reason),
        })
    };
    (1..).zip(read_text(path)?.lines()).map(value).collect()
}

fn read_text(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|source| FileError::Open { path: path.to_owned(), source })
}

/// Writes a file of lines, or removes an earlier one if there are none.
pub fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> Result<(), FileError> {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FileError::Write { path: path.to_owned(), source })
            }
            _ => Ok(()),
        };
    }
    complete(path, || {
        let mut output = buffered(create_beside(path)?);
        for line in lines {
            writeln!(output, "{line}")?;
        }
        Ok(output.into_inner()?)
    })
}

/// Reads the folder's schema. A folder without one has the built-in schema.
pub fn read_folder_schema(folder: &Path) -> Result<Schema, FileError> {
    let path = folder.join(SCHEMA);
    if path.is_file() { read_schema(&path) } else { Ok(Schema::default_schema()) }
}

pub fn read_schema(path: &Path) -> Result<Schema, FileError> {
    Schema::parse(&read_text(path)?)
        .map_err(|source| FileError::Schema { path: path.to_owned(), source: Box::new(source) })
}
