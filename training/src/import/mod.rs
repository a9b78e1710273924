//! Imports a shop's own files as a data folder: checks the three tables row by row, writes them in
//! canonical form beside their schema, draws a validation split if the shop names none, and adds what customers had before as a
//! feature if they come back often.
//!
//! [`atelier_files`] reads the files and checks every row. The folder is written completely or not at all.

mod history;
mod orders;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use atelier_core::domain::{Article, ArticleId, Customer, Embedding, Outfit, OutfitSize, Schema, Split};
use atelier_files::{
    Checker, Dialect, FileError, Files, Format, OrderLine, Report, Rows, SCHEMA, Table, TableColumns, Writer,
};

pub use self::orders::{Taken, Unknown, WINDOW};

use crate::{
    files::NewFolder,
    random::{Table as Randomness, choose},
};

/// The files to import, and how.
#[derive(Debug)]
pub struct Import<'a> {
    pub files: &'a Files,
    pub dialect: &'a Dialect,
    /// Makes outfits from this file of orders, not from that of outfits.
    pub orders: Option<&'a Path>,
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
    /// What was found. With bad rows and without `skip_bad`, or if orders make no outfit, nothing was written.
    pub report: Report,
    /// The number of outfits drawn for validation.
    pub drawn: usize,
    /// How many outfits lost articles that had left the catalogue, and how many of them were left out because too few
    /// remained.
    pub shortened: u64,
    pub too_short: u64,
    /// How many outfits had more articles than the schema's, and kept a sample of them.
    pub sampled: u64,
    /// How many training outfits the customer of a validation outfit has on average, if they became a feature.
    pub outfits_per_customer: Option<f64>,
    /// What was taken of the orders, if outfits were made from them.
    pub taken: Option<Taken>,
}

/// What outfits are made of.
enum Source {
    Outfits(Rows<Outfit>),
    Orders(Rows<OrderLine>),
}

/// Fixed, so that each import draws the same outfits for validation.
const SEED: u64 = 1;

impl Import<'_> {
    /// Writes the data folder. Calls `tell` with the table, how much of its file is read, and its size.
    pub fn write(&self, out: &Path, tell: &mut dyn FnMut(&'static str, u64, u64)) -> Result<Imported> {
        let folder = NewFolder::new(out)?;
        let mut retired: HashSet<ArticleId> = self.files.read_retired()?.into_iter().collect();
        let mut checker = Checker::new([], []).with_retired(&retired);
        let schema_file = folder.path().join(SCHEMA);
        fs::write(&schema_file, self.schema.source())
            .with_context(|| format!("cannot write {}", schema_file.display()))?;
        let target = folder.path();
        let outfits = match self.orders {
            None => self.open(self.files.outfits.as_ref())?.map(Source::Outfits),
            Some(path) => atelier_files::read_as(path, self.schema, self.dialect).map(Source::Orders),
        };
        let articles = self.open::<Article>(self.files.articles.as_ref())?;
        let customers = self.open::<Customer>(self.files.customers.as_ref())?;
        let (articles, customers, outfits) = FileError::together(articles, customers, outfits)?;
        self.dialect.check_used().map_err(anyhow::Error::msg)?;
        let (mut lengths, mut refused) = (HashMap::new(), Vec::new());
        let mut known = orders::Known::default();
        let has_one_length = |article: Article| {
            known.add_article(&article);
            for (name, list) in article.embedding().into_iter().flat_map(Embedding::lists) {
                let (found, first) = (list.len(), *lengths.entry(name.to_owned()).or_insert(list.len()));
                if found != first {
                    refused.push(article.id.clone());
                    return Err(format!(
                        "embedding{} has {found} numbers, and that of an earlier article {first}; all must have as many",
                        Embedding::show_name(name)
                    ));
                }
            }
            Ok(Some(article))
        };
        self.write_table(articles, target, &mut checker, tell, has_one_length)?;
        for id in &refused {
            checker.forget(id);
        }
        retired.retain(|id| !checker.has_read(id));
        let keep = |customer: Customer| {
            known.add_customer(&customer.id);
            Ok(Some(customer))
        };
        self.write_table(customers, target, &mut checker, tell, keep)?;
        let (mut count, mut names_split) = (0, false);
        let (mut shortened, mut too_short, mut sampled) = (0, 0, 0);
        let mut numbers = 0..;
        let size = self.schema.outfit_size();
        let resized = |outfit: Outfit| {
            let seed = numbers.next().unwrap_or_default();
            let found = outfit.articles().len();
            size.check(found.min(size.most)).map_err(|error| error.to_string())?;
            let here = (0..).zip(outfit.articles()).filter(|(_, id)| !retired.contains(*id));
            let mut places: Vec<u32> = here.map(|(place, _)| place).collect();
            shortened += u64::from(places.len() < found);
            if places.len() > size.most {
                sampled += 1;
                places = choose(seed, Randomness::Sampled, &places, size.most);
            }
            let articles = places.iter().map(|&place| outfit.articles()[place as usize].clone()).collect();
            let rest = (places.len() >= size.least)
                .then(|| Outfit::new(outfit.customer, articles, outfit.split, outfit.features))
                .transpose()
                .map_err(|error| error.to_string())?;
            match &rest {
                Some(rest) => {
                    count += 1;
                    names_split |= rest.split.is_some();
                }
                None => too_short += 1,
            }
            Ok(rest)
        };
        let taken = match outfits {
            Source::Outfits(outfits) => {
                self.write_table(outfits, target, &mut checker, tell, resized)?;
                None
            }
            Source::Orders(lines) => {
                let (outfits, taken) =
                    orders::read(lines, &known, size, &mut checker, self.validation, tell)?;
                let mut writer = new_writer::<Outfit>(target, self.schema)?;
                outfits.iter().try_for_each(|outfit| writer.write(outfit))?;
                writer.finish()?;
                names_split = true;
                Some(taken)
            }
        };
        let report = checker.report().clone();
        let (mut drawn, mut outfits_per_customer) = (0, None);
        let has_outfits = taken.as_ref().is_none_or(|taken| taken.outfits > 0);
        if has_outfits && (report.bad == 0 || self.skip_bad) {
            if !names_split {
                drawn = self.draw_validation(target, count)?;
            }
            if self.history {
                outfits_per_customer = history::add(target, self.schema, taken.is_some())?;
            } else {
                history::remove(target, self.schema)?;
            }
            folder.finish()?;
        }
        Ok(Imported { report, drawn, shortened, too_short, sampled, outfits_per_customer, taken })
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

    fn open<T: Table>(&self, path: Option<&PathBuf>) -> Result<Result<Rows<T>, FileError>> {
        // What is done with an outfit depends on the number of its articles: too many are no reason to refuse it.
        let schema = self.schema.clone().with_outfit_size(OutfitSize { least: 0, most: usize::MAX });
        Ok(atelier_files::read_as(require::<T>(path)?, &schema, self.dialect))
    }

    /// Writes what `change` makes of the good rows of a table; it may leave one out, or refuse it.
    fn write_table<T: Table>(
        &self,
        rows: Rows<T>,
        folder: &Path,
        checker: &mut Checker,
        tell: &mut dyn FnMut(&'static str, u64, u64),
        mut change: impl FnMut(T) -> Result<Option<T>, String>,
    ) -> Result<()> {
        let mut writer = new_writer::<T>(folder, self.schema)?;
        let mut rows = checker.check(rows);
        let mut number: u32 = 0;
        while let Some(row) = rows.next() {
            match change(row?) {
                Ok(Some(row)) => writer.write(&row)?,
                Ok(None) => {}
                Err(reason) => rows.refuse(rows.line(), reason),
            }
            number += 1;
            if number.is_multiple_of(1024) {
                let (done, total) = rows.progress();
                tell(T::NAME, done, total);
            }
        }
        Ok(writer.finish()?)
    }
}

/// The rows of a table in a data folder.
fn rows<T: Table>(folder: &Path, schema: &Schema) -> Result<impl Iterator<Item = Result<T>>> {
    Ok(atelier_files::read::<T>(&table_path::<T>(folder), schema)?.map(|row| Ok(row?.value)))
}

/// Changes the rows of a table in a data folder.
fn rewrite<T: Table>(
    folder: &Path,
    from: &Schema,
    to: &Schema,
    mut change: impl FnMut(&mut T),
) -> Result<()> {
    let all = rows::<T>(folder, from)?;
    let mut writer = new_writer::<T>(folder, to)?;
    for row in all {
        let mut row = row?;
        change(&mut row);
        writer.write(&row)?;
    }
    Ok(writer.finish()?)
}

fn new_writer<T: Table>(folder: &Path, schema: &Schema) -> Result<Writer<T>> {
    Ok(Writer::create(&table_path::<T>(folder), Format::JsonLines, &TableColumns::new(schema))?)
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
