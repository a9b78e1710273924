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
mod writing;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use ::parquet::{
    data_type::{ByteArray, ByteArrayType, DataType},
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::parser::parse_message_type,
};
use atelier_core::domain::{Article, ArticleId, Schema};
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
        let mut columns = TableColumns::new(&SCHEMA);
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

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

fn article(id: &str, attributes: &serde_json::Value) -> Article {
    Article::new(ArticleId::new(id).unwrap(), "coat", attributes.as_object().unwrap().clone()).unwrap()
}

fn ids<const N: usize>(ids: [&str; N]) -> [ArticleId; N] {
    ids.map(|id| ArticleId::new(id).unwrap())
}

type WriteColumn = Box<dyn Fn(&mut SerializedColumnWriter<'_>)>;

/// A column of a Parquet file: its values, and their definition and repetition levels.
fn column<D: DataType>(values: Vec<D::T>, levels: Option<(Vec<i16>, Vec<i16>)>) -> WriteColumn {
    Box::new(move |column| {
        let (definitions, repetitions) = levels.as_ref().map(|(d, r)| (&d[..], &r[..])).unzip();
        column.typed::<D>().write_batch(&values, definitions, repetitions).unwrap();
    })
}

fn texts(texts: &[&str]) -> WriteColumn {
    column::<ByteArrayType>(texts.iter().map(|text| ByteArray::from(*text)).collect(), None)
}

/// Writes a Parquet file of one row group.
fn write_parquet(path: &Path, message: &str, properties: WriterProperties, columns: &[WriteColumn]) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for write in columns {
        let mut column = group.next_column().unwrap().unwrap();
        write(&mut column);
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn open<T: Table>(path: &Path) -> Rows<T> {
    read(path, &SCHEMA).unwrap()
}

/// Why a file is not opened.
fn refuse<T: Table>(path: &Path) -> String {
    read::<T>(path, &SCHEMA).map(drop).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
}

/// The rows of a file, none of which is bad.
fn values<T: Table>(path: &Path) -> Vec<T> {
    open(path).map(|row| row.unwrap().value).collect()
}

/// Rows as canonical JSON, each before its warnings, and errors.
fn read_out<T: Table>(rows: impl Iterator<Item = Result<FileRow<T>, RowError>>) -> Vec<String> {
    rows.flat_map(|row| match row {
        Ok(row) => {
            let warnings = row.warnings.iter().map(|warning| format!("{}: {warning}", row.line));
            let value = json_line(&row.value, &SCHEMA).trim_end().to_owned();
            std::iter::once(value).chain(warnings).collect()
        }
        Err(error) => vec![error.to_string()],
    })
    .collect()
}

/// The warnings and errors of a file.
fn messages<T: Table>(path: &Path) -> Vec<String> {
    let mut said = read_out(open::<T>(path));
    said.retain(|line| !line.starts_with('{'));
    said
}
