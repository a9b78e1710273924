//! The three tables of a data folder, row by row. Whoever reads a folder reads it through here, so that
//! one folder is good or bad for all verbs alike.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atelier::{
    domain::{Article, Customer, Outfit, Schema},
    files::{self, Checker, Files, Table, read_folder_schema},
};

/// A folder that holds a synthetic world or a shop's own tables: it cannot be told which.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files: Files,
    schema: Schema,
    checker: Checker,
}

impl Folder {
    /// Any of the three formats will do, and where no `schema.toml` lies beside the tables the schema is
    /// the built-in one.
    ///
    /// # Errors
    /// If the folder cannot be read, holds a table twice, or its schema is none.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            files: Files::in_folder(path)?,
            schema: read_folder_schema(path)?,
            checker: Checker::new([], []),
        })
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Hands every article over, in the file's order, which is the vocabulary's.
    ///
    /// # Errors
    /// If there is no file, or one row in it is bad: no method is fitted to half of somebody's data. If
    /// `take` refuses a row.
    pub fn articles(&mut self, take: impl FnMut(Article) -> Result<()>) -> Result<()> {
        self.each(self.files.articles.clone(), take)
    }

    /// As [`Folder::articles`].
    ///
    /// # Errors
    /// As there.
    pub fn customers(&mut self, take: impl FnMut(Customer) -> Result<()>) -> Result<()> {
        self.each(self.files.customers.clone(), take)
    }

    /// As [`Folder::articles`], and after both other tables, which the outfits refer to.
    ///
    /// # Errors
    /// As there.
    pub fn outfits(&mut self, take: impl FnMut(Outfit) -> Result<()>) -> Result<()> {
        self.each(self.files.outfits.clone(), take)
    }

    fn each<T: Table>(&mut self, file: Option<PathBuf>, mut take: impl FnMut(T) -> Result<()>) -> Result<()> {
        let file = file.with_context(|| {
            format!(
                "{} has no {name}.jsonl, {name}.csv or {name}.parquet; make a data folder of your own files \
                 with `atelier-training import`, or of a synthetic world with `atelier-training synthesise`",
                self.path.display(),
                name = T::NAME
            )
        })?;
        for row in self.checker.check(files::read::<T>(&file, &self.schema)?) {
            take(row?)?;
        }
        let report = self.checker.report();
        if let Some(first) = report.errors.first() {
            bail!(
                "{} rows are bad, the first is {first}; mend them, or leave them out with \
                 `atelier-training import --skip-bad`",
                report.bad
            );
        }
        Ok(())
    }
}
