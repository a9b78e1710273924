//! `atelier import`: a shop's files into the database, all of them or nothing.

use std::{
    fs,
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
    exchange::{self, Checker, Format, Report, Table},
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

/// The files of one import.
#[derive(Debug, Default)]
pub(super) struct Files {
    articles: Option<PathBuf>,
    customers: Option<PathBuf>,
    outfits: Option<PathBuf>,
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

impl Files {
    /// One file a table, in whichever format; a table may be missing.
    pub(super) fn in_folder(folder: &Path) -> Result<Self> {
        Ok(Self {
            articles: table_file(folder, Article::NAME)?,
            customers: table_file(folder, Customer::NAME)?,
            outfits: table_file(folder, Outfit::NAME)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.articles.is_none() && self.customers.is_none() && self.outfits.is_none()
    }
}

/// A table's one file in the folder; two of them would leave open which is meant.
fn table_file(folder: &Path, table: &str) -> Result<Option<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.file_stem().is_some_and(|stem| stem == table) && Format::of(&path).is_ok() {
            found.push(path);
        }
    }
    if found.len() > 1 {
        bail!("{} holds {} files called {table}; name the one you mean", folder.display(), found.len());
    }
    Ok(found.pop())
}

/// The schema that lies beside the tables, else the built-in one.
pub(super) fn schema_of(folder: &Path) -> Result<Schema> {
    let path = folder.join("schema.toml");
    if path.is_file() { read_schema(&path) } else { Ok(Schema::default_schema()) }
}

fn read_schema(path: &Path) -> Result<Schema> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Schema::parse(&text).with_context(|| path.display().to_string())
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
        let times = if noted.count > 1 { format!(" ({} times)", noted.count) } else { String::new() };
        eprintln!("note: {}, line {}: {}{times}", noted.path.display(), noted.line, noted.warning);
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
