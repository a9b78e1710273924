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
        self.write_table::<Article>(self.files.articles.as_ref(), target, &mut checker, tell, |_, _| {})?;
        self.write_table::<Customer>(self.files.customers.as_ref(), target, &mut checker, tell, |_, _| {})?;
        let drawn = self.draw_validation()?;
        let mark = |number: u32, outfit: &mut Outfit| {
            if let Some(drawn) = &drawn {
                let chosen = drawn.binary_search(&number).is_ok();
                outfit.split = Some(if chosen { Split::Validation } else { Split::Train });
            }
        };
        self.write_table(self.files.outfits.as_ref(), target, &mut checker, tell, mark)?;
        let report = checker.report().clone();
        let mut outfits_per_customer = None;
        if report.bad == 0 || self.skip_bad {
            if self.history {
                outfits_per_customer = history::add(target, self.schema)?;
            }
            folder.finish()?;
        }
        Ok(Imported { report, drawn: drawn.map_or(0, |drawn| drawn.len()), outfits_per_customer })
    }

    /// Draws the outfits for validation, by their number among the rows that can be read; `None` if a row
    /// names a split.
    fn draw_validation(&self) -> Result<Option<Vec<u32>>> {
        let path = require::<Outfit>(self.files.outfits.as_ref())?;
        let mut count = 0;
        for row in files::read::<Outfit>(path, self.schema)? {
            let Ok(row) = row else { continue };
            if row.value.split.is_some() {
                return Ok(None);
            }
            count += 1;
        }
        let numbers: Vec<u32> = (0..count).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = (self.validation * f64::from(count)).ceil() as usize;
        Ok(Some(choose(SEED, Randomness::Split, &numbers, wanted)))
    }

    fn write_table<T: Table>(
        &self,
        path: Option<&PathBuf>,
        folder: &Path,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        change: impl Fn(u32, &mut T),
    ) -> Result<()> {
        let path = require::<T>(path)?;
        let mut writer =
            Writer::create(&table_path::<T>(folder), Format::JsonLines, &Columns::<T>::new(self.schema))?;
        let mut rows = checker.check(files::read::<T>(path, self.schema)?);
        let mut number = 0;
        while let Some(row) = rows.next() {
            let mut row = row?;
            change(number, &mut row);
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
