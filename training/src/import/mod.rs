//! Imports a shop's own files as a data folder: checks the three tables row by row, writes them in
//! canonical form beside their schema, draws a validation split if the shop names none, and adds what customers had before as a
//! feature if they come back often.
//!
//! [`atelier::files`] reads the files and checks every row. The folder is written completely or not at all.

mod history;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use atelier::{
    domain::{Article, Customer, Outfit, Schema, Split},
    files::{self, Checker, Columns, Files, Format, Report, SCHEMA, Table, Writer},
};

use crate::{
    files::NewFolder,
    random::{Table as Randomness, choose},
};

/// The files to import, and how.
#[derive(Debug)]
pub struct Import<'a> {
    pub files: &'a Files,
    pub schema: &'a Schema,
    /// Import the good rows even if others are bad.
    pub skip_bad: bool,
    /// The share of the outfits that becomes the validation split if no row names a split.
    pub validation: f64,
    /// Add the articles of a customer's training outfits as a feature, if customers come back often enough.
    pub history: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// What was found. With bad rows and without `skip_bad`, nothing was written.
    pub report: Report,
    /// The number of outfits drawn for validation.
    pub drawn: usize,
    /// How many training outfits the customer of a validation outfit has on average, if they became a feature.
    pub outfits_per_customer: Option<f64>,
}

/// Fixed, so that each import draws the same outfits for validation.
const SEED: u64 = 1;

impl Import<'_> {
    /// Writes the data folder. Calls `tell` with the table, how much of its file is read, and its size.
    pub fn write(&self, out: &Path, tell: &mut dyn FnMut(&'static str, u64, u64)) -> Result<Imported> {
        let folder = NewFolder::new(out)?;
        let mut checker = Checker::new([], []);
        let schema_file = folder.path().join(SCHEMA);
        fs::write(&schema_file, self.schema.source())
            .with_context(|| format!("cannot write {}", schema_file.display()))?;
        let target = folder.path();
        let (mut length, mut refused) = (None, Vec::new());
        let has_other_length = |article: &Article| {
            let found = article.embedding()?.len();
            let first = *length.get_or_insert(found);
            (found != first).then(|| {
                refused.push(article.id.clone());
                format!("embedding has {found} numbers, and that of an earlier article {first}; all must have as many")
            })
        };
        self.write_table(self.files.articles.as_ref(), target, &mut checker, tell, has_other_length)?;
        refused.iter().for_each(|id| checker.forget(id));
        self.write_table::<Customer>(self.files.customers.as_ref(), target, &mut checker, tell, |_| None)?;
        let (mut count, mut names_split) = (0, false);
        let note_split = |outfit: &Outfit| {
            count += 1;
            names_split |= outfit.split.is_some();
            None
        };
        self.write_table(self.files.outfits.as_ref(), target, &mut checker, tell, note_split)?;
        let report = checker.report().clone();
        let (mut drawn, mut outfits_per_customer) = (0, None);
        if report.bad == 0 || self.skip_bad {
            if !names_split {
                drawn = self.draw_validation(target, count)?;
            }
            if self.history {
                outfits_per_customer = history::add(target, self.schema)?;
            } else {
                history::remove(target, self.schema)?;
            }
            folder.finish()?;
        }
        Ok(Imported { report, drawn, outfits_per_customer })
    }

    /// Draws outfits of the written table for validation, and returns their number.
    fn draw_validation(&self, folder: &Path, count: u32) -> Result<usize> {
        let numbers: Vec<u32> = (0..count).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = (self.validation * f64::from(count)).ceil() as usize;
        let drawn = choose(SEED, Randomness::Split, &numbers, wanted);
        let mut number = 0;
        rewrite::<Outfit>(folder, self.schema, self.schema, |outfit| {
            let is_drawn = drawn.binary_search(&number).is_ok();
            outfit.split = Some(if is_drawn { Split::Validation } else { Split::Train });
            number += 1;
        })?;
        Ok(drawn.len())
    }

    /// Writes the good rows of a table, but for those that `refuse` gives a reason against.
    fn write_table<T: Table>(
        &self,
        path: Option<&PathBuf>,
        folder: &Path,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        mut refuse: impl FnMut(&T) -> Option<String>,
    ) -> Result<()> {
        let path = require::<T>(path)?;
        let mut writer =
            Writer::create(&table_path::<T>(folder), Format::JsonLines, &Columns::<T>::new(self.schema))?;
        let mut rows = checker.check(files::read::<T>(path, self.schema)?);
        let mut number: u32 = 0;
        while let Some(row) = rows.next() {
            let row = row?;
            if let Some(reason) = refuse(&row) {
                rows.refuse(rows.line(), reason);
                continue;
            }
            writer.write(&row)?;
            number += 1;
            if number % 1024 == 0 {
                let (done, total) = rows.progress();
                tell(T::NAME, done, total);
            }
        }
        Ok(writer.finish()?)
    }
}

/// The rows of a table in a data folder.
fn rows<T: Table>(folder: &Path, schema: &Schema) -> Result<impl Iterator<Item = Result<T>>> {
    Ok(files::read::<T>(&table_path::<T>(folder), schema)?.map(|row| Ok(row?.value)))
}

/// Changes the rows of a table in a data folder.
fn rewrite<T: Table>(
    folder: &Path,
    from: &Schema,
    to: &Schema,
    mut change: impl FnMut(&mut T),
) -> Result<()> {
    let all = rows::<T>(folder, from)?;
    let mut writer = Writer::create(&table_path::<T>(folder), Format::JsonLines, &Columns::<T>::new(to))?;
    for row in all {
        let mut row = row?;
        change(&mut row);
        writer.write(&row)?;
    }
    Ok(writer.finish()?)
}

/// The file of a table in a data folder.
fn table_path<T: Table>(folder: &Path) -> PathBuf {
    folder.join(format!("{}.{}", T::NAME, Format::JsonLines))
}

fn require<T: Table>(path: Option<&PathBuf>) -> Result<&PathBuf> {
    path.with_context(|| {
        format!(
            "there is no {table} file: a data folder needs all three tables; put {table}.jsonl, .csv or \
             .parquet beside the others, or name the file with --{table}",
            table = T::NAME
        )
    })
}
