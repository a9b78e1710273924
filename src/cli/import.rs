//! `atelier import`: a shop's files into the database, all of them or nothing.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::TryStreamExt;

use super::progress::Progress;
use crate::{
    domain::{Article, Customer, Outfit, Schema},
    exchange::{self, Checker, Files, Report, Table, read_schema, schema_of},
    store::{self, Counts, Store, StoreError, Timestamp},
};

/// Rows that go to the database at once: enough to keep it busy, few enough to stay small in memory.
const SLICE: usize = 2000;

#[derive(Debug, Args)]
pub(super) struct Import {
    /// A folder with articles, customers and outfits (.jsonl, .csv or .parquet), as `atelier export` and
    /// `atelier-training synthesise` write it.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    articles: Option<PathBuf>,
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    customers: Option<PathBuf>,
    #[arg(long, value_name = "FILE", conflicts_with = "folder")]
    outfits: Option<PathBuf>,
    /// The feature schema; without it the folder's schema.toml, or else the built-in one.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Import the good rows though others are bad.
    #[arg(long)]
    skip_bad: bool,
}

impl Import {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let schema = match (&self.schema, &self.folder) {
            (Some(path), _) => read_schema(path)?,
            (None, Some(folder)) => schema_of(folder)?,
            (None, None) => Schema::default_schema(),
        };
        let files = match &self.folder {
            Some(folder) => Files::in_folder(folder)?,
            None => Files { articles: self.articles, customers: self.customers, outfits: self.outfits },
        };
        if files.is_empty() {
            bail!(
                "there is nothing to import: name a folder, or files with --articles, --customers, --outfits"
            );
        }
        let report = bring_in(store, &files, &schema, self.skip_bad).await?;
        show(&report);
        if report.bad == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        if self.skip_bad {
            eprintln!("{} rows were skipped; the other {} are in {store}", report.bad, report.good);
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!(
            "nothing was imported. Mend the {} bad rows, or import the other {} with --skip-bad",
            report.bad, report.good
        );
        Ok(ExitCode::FAILURE)
    }
}

/// Reads, checks and stores the files in one transaction, which is committed if no row was bad or bad
/// rows may be skipped.
pub(super) async fn bring_in(
    store: &Store,
    files: &Files,
    schema: &Schema,
    skip_bad: bool,
) -> Result<Report> {
    let articles: Vec<_> = store.articles().ids().try_collect().await?;
    let customers: Vec<_> = store.customers().ids().try_collect().await?;
    let mut checker = Checker::new(articles, customers);
    let mut import = store.import(now()?).await?;
    if let Some(path) = &files.articles {
        table::<Article>(&mut import, &mut checker, path, schema).await?;
    }
    if let Some(path) = &files.customers {
        table::<Customer>(&mut import, &mut checker, path, schema).await?;
    }
    if let Some(path) = &files.outfits {
        table::<Outfit>(&mut import, &mut checker, path, schema).await?;
    }
    if checker.report().bad == 0 || skip_bad {
        import.commit().await?;
    }
    Ok(checker.report().clone())
}

fn now() -> Result<Timestamp> {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .context("this machine's clock is before 1970; set it")?;
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).context("this machine's clock is far ahead")?))
}

/// A table that can be brought in.
trait Intake: Table {
    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError>;
}

impl Intake for Article {
    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.articles(rows).await
    }
}

impl Intake for Customer {
    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.customers(rows).await
    }
}

impl Intake for Outfit {
    async fn put(import: &mut store::Import, rows: &[Self]) -> Result<Counts, StoreError> {
        import.outfits(rows).await
    }
}

async fn table<T: Intake>(
    import: &mut store::Import,
    checker: &mut Checker,
    path: &Path,
    schema: &Schema,
) -> Result<()> {
    let started = Instant::now();
    let bad_before = checker.report().bad;
    let mut rows = checker.check(exchange::read::<T>(path, schema)?);
    let progress = Progress::new(path, rows.progress().1);
    let mut counts = Counts::default();
    let mut slice = Vec::with_capacity(SLICE);
    loop {
        slice.clear();
        for row in rows.by_ref().take(SLICE) {
            slice.push(row?);
        }
        if slice.is_empty() {
            break;
        }
        counts += T::put(import, &slice).await?;
        progress.set(rows.progress().0);
    }
    progress.finish();
    let Counts { added, changed, unchanged } = counts;
    eprintln!(
        "{}: {added} new, {changed} changed, {unchanged} as they were, {} bad, in {:.1} s",
        path.display(),
        checker.report().bad - bad_before,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The first bad rows and the warnings, for a person.
fn show(report: &Report) {
    for noted in &report.warnings {
        let rows = if noted.rows > 1 { format!(" ({} rows in all)", noted.rows) } else { String::new() };
        eprintln!("note: {noted}{rows}");
    }
    if report.more_warnings > 0 {
        eprintln!("note: {} more of the kind", report.more_warnings);
    }
    for bad in &report.errors {
        eprintln!("{bad}");
    }
    let shown = u64::try_from(report.errors.len()).expect("at most twenty are kept; this is a bug");
    if report.bad > shown {
        eprintln!("… and {} more bad rows", report.bad - shown);
    }
}
