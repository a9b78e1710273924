//! A shop's own files as a data folder: the three tables checked row by row, written in canonical form
//! beside their schema, with a validation split where the shop names none.
//!
//! Files come in through [`exchange`], which judges every row; a folder goes out, whole or not at all.
//! No database is touched.

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

/// What is brought in, and how.
#[derive(Debug)]
pub struct Import<'a> {
    pub files: &'a Files,
    pub schema: &'a Schema,
    /// Take the good rows though others are bad.
    pub skip_bad: bool,
    /// The share of the outfits that becomes the validation split where no row names a split.
    pub validation: f64,
}

/// What came of it.
#[derive(Debug)]
pub struct Imported {
    /// What was found; with bad rows and without `skip_bad`, nothing was written.
    pub report: Report,
    /// Outfits that were drawn for validation.
    pub drawn: usize,
}

/// Which outfits become validation is the same each time.
const SEED: u64 = 1;

impl Import<'_> {
    /// Hears the table and how much of it is read, of how much.
    ///
    /// # Errors
    /// If a table is missing, a file cannot be read to its end, or the place is taken.
    pub fn write(&self, out: &Path, tell: &mut dyn FnMut(&'static str, u64, u64)) -> Result<Imported> {
        let folder = NewFolder::begin(out)?;
        let mut checker = Checker::new([], []);
        let schema_file = folder.path().join(SCHEMA);
        fs::write(&schema_file, self.schema.source())
            .with_context(|| format!("cannot write {}", schema_file.display()))?;
        let target = folder.path();
        self.table::<Article>(self.files.articles.as_ref(), target, &mut checker, tell, |_, _| {})?;
        self.table::<Customer>(self.files.customers.as_ref(), target, &mut checker, tell, |_, _| {})?;
        let drawn = self.draw_validation()?;
        let mark = |number: u32, outfit: &mut Outfit| {
            if let Some(drawn) = &drawn {
                let chosen = drawn.binary_search(&number).is_ok();
                outfit.split = Some(if chosen { Split::Validation } else { Split::Train });
            }
        };
        self.table(self.files.outfits.as_ref(), target, &mut checker, tell, mark)?;
        let report = checker.report().clone();
        if report.bad == 0 || self.skip_bad {
            folder.finish()?;
        }
        Ok(Imported { report, drawn: drawn.map_or(0, |drawn| drawn.len()) })
    }

    /// The outfits for validation, by their number among the rows that can be read; none where the shop
    /// has chosen itself.
    fn draw_validation(&self) -> Result<Option<Vec<u32>>> {
        let path = given::<Outfit>(self.files.outfits.as_ref())?;
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

    fn table<T: Table>(
        &self,
        path: Option<&PathBuf>,
        folder: &Path,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        change: impl Fn(u32, &mut T),
    ) -> Result<()> {
        let path = given::<T>(path)?;
        let target = folder.join(format!("{}.{}", T::NAME, Format::JsonLines));
        let mut writer = Writer::create(&target, Format::JsonLines, &Columns::<T>::new(self.schema))?;
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

fn given<T: Table>(path: Option<&PathBuf>) -> Result<&PathBuf> {
    path.with_context(|| {
        format!(
            "there are no {table}: a data folder needs all three tables; put {table}.jsonl, .csv or \
             .parquet beside the others, or name the file with --{table}",
            table = T::NAME
        )
    })
}
