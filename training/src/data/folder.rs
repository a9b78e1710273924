//! The three tables of a data folder, row by row. Every command reads folders through this module, so a
//! folder is valid for all commands or for none.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atelier_core::domain::{Article, Customer, Outfit, Schema};
use atelier_files::{Checker, Files, Table, read_folder_schema};

/// A folder with a synthetic world or a shop's own tables.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files: Files,
    schema: Schema,
    checker: Checker,
}

impl Folder {
    /// Opens a folder with tables in any of the three formats. Without a `schema.toml` next to them, the
    /// schema is the built-in one.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, read_folder_schema(path)?)
    }

    /// Opens a folder with another schema.
    pub fn open_as(path: &Path, schema: Schema) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            files: Files::in_folder(path)?,
            schema,
            checker: Checker::new([], []),
        })
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Passes every article to `take`, in the file's order, which is the vocabulary's. Fails if the file is
    /// missing or any row is bad: a method must not be fitted to part of the data.
    pub fn articles(&mut self, take: impl FnMut(Article) -> Result<()>) -> Result<()> {
        self.each(self.files.articles.clone(), take)
    }

    /// Like [`Folder::articles`].
    pub fn customers(&mut self, take: impl FnMut(Customer) -> Result<()>) -> Result<()> {
        self.each(self.files.customers.clone(), take)
    }

    /// Like [`Folder::articles`]. Call it last, because outfits refer to the other tables.
    pub fn outfits(&mut self, take: impl FnMut(Outfit) -> Result<()>) -> Result<()> {
        self.each(self.files.outfits.clone(), take)
    }

    fn each<T: Table>(&mut self, file: Option<PathBuf>, mut take: impl FnMut(T) -> Result<()>) -> Result<()> {
        let file = file.with_context(|| {
            format!(
                "{} has no {name}.jsonl, {name}.csv or {name}.parquet; make a data folder from your own files \
                 with `atelier-training import`, or a synthetic world with `atelier-training synthesise`",
                self.path.display(),
                name = T::NAME
            )
        })?;
        for row in self.checker.check(atelier_files::read::<T>(&file, &self.schema)?) {
            take(row?)?;
        }
        let report = self.checker.report();
        if let Some(first) = report.errors.first() {
            bail!(
                "{} rows are bad, the first is {first}; correct them, or leave them out with \
                 `atelier-training import --skip-bad`",
                report.bad
            );
        }
        Ok(())
    }
}
