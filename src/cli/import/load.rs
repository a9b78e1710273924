//! Imports files in one transaction, for `atelier import` and for the first start of a service.

use std::{
    path::Path,
    time::{Instant, SystemTime},
};

use anyhow::Result;
use indicatif::HumanCount;

use super::count_rows;
use crate::{
    cli::progress::Progress,
    domain::{Article, Customer, Outfit, Schema},
    files::{self, Checker, FileError, Files, Report, Rows, Table},
    service::import::{Importable, import_table, may_commit},
    store::{self, Counts, DemoMark, Store},
};

/// The result of an import.
#[derive(Debug)]
pub(in crate::cli) struct Outcome {
    pub(in crate::cli) report: Report,
    pub(in crate::cli) end: End,
}

#[derive(Debug)]
pub(in crate::cli) enum End {
    /// Everything was imported, except skipped bad rows.
    Imported(Vec<(&'static str, Counts)>),
    /// Some rows are bad, so nothing was imported.
    Refused,
    /// A file could not be read to its end, or the database failed; nothing was imported.
    Stopped(anyhow::Error),
}

/// Reads, checks and stores the files in one transaction, which is committed if all rows are good or bad ones may be
/// skipped. `tell` gets a line for each file.
///
/// # Errors
/// If the import cannot begin: a file cannot be opened, or the database is busy.
pub(in crate::cli) async fn load_files(
    store: &Store,
    files: &Files,
    schema: &Schema,
    skip_bad: bool,
    tell: impl Fn(&str),
) -> Result<Outcome> {
    let opened = Opened::new(files, schema)?;
    let import = store.import(SystemTime::now().into()).await?;
    fill(import, opened, skip_bad, DemoMark::Clear, tell).await
}

/// Like [`load_files`] with skipping, for an empty database; `None` if it is not empty. The check is inside the
/// transaction, so only one of two services that start together fills the database.
pub(in crate::cli) async fn load_files_if_empty(
    store: &Store,
    files: &Files,
    schema: &Schema,
    mark: DemoMark,
    tell: impl Fn(&str),
) -> Result<Option<Outcome>> {
    let opened = Opened::new(files, schema)?;
    let mut import = store.import(SystemTime::now().into()).await?;
    if !import.is_empty().await? {
        return Ok(None);
    }
    fill(import, opened, true, mark, tell).await.map(Some)
}

/// The files of an import. All are opened before the first row is stored, so that a wrong header in the last file is
/// reported at once.
struct Opened {
    articles: Option<Rows<Article>>,
    customers: Option<Rows<Customer>>,
    outfits: Option<Rows<Outfit>>,
}

impl Opened {
    fn new(files: &Files, schema: &Schema) -> Result<Self, FileError> {
        fn open<T: Table>(path: Option<&Path>, schema: &Schema) -> Result<Option<Rows<T>>, FileError> {
            path.map(|path| files::read(path, schema)).transpose()
        }
        Ok(Self {
            articles: open(files.articles.as_deref(), schema)?,
            customers: open(files.customers.as_deref(), schema)?,
            outfits: open(files.outfits.as_deref(), schema)?,
        })
    }
}

async fn fill(
    mut import: store::Import,
    opened: Opened,
    skip_bad: bool,
    mark: DemoMark,
    tell: impl Fn(&str),
) -> Result<Outcome> {
    // Read inside the transaction, so that these rows cannot be deleted before it ends.
    let mut checker = Checker::new(import.article_ids().await?, import.customer_ids().await?);
    let read = load_tables(&mut import, &mut checker, opened, tell).await;
    let report = checker.report().clone();
    let end = match read {
        Ok(counts) if may_commit(&report, skip_bad) => match import.commit_with(mark).await {
            Ok(()) => End::Imported(counts),
            Err(error) => End::Stopped(error.into()),
        },
        Ok(_) => End::Refused,
        Err(error) => End::Stopped(error),
    };
    Ok(Outcome { report, end })
}

/// Loads outfits last, after the rows that they refer to.
async fn load_tables(
    import: &mut store::Import,
    checker: &mut Checker,
    opened: Opened,
    tell: impl Fn(&str),
) -> Result<Vec<(&'static str, Counts)>> {
    let Opened { articles, customers, outfits } = opened;
    let mut counts = Vec::new();
    if let Some(rows) = articles {
        counts.push((Article::NAME, load_table(import, checker, rows, &tell).await?));
    }
    if let Some(rows) = customers {
        counts.push((Customer::NAME, load_table(import, checker, rows, &tell).await?));
    }
    if let Some(rows) = outfits {
        counts.push((Outfit::NAME, load_table(import, checker, rows, &tell).await?));
    }
    Ok(counts)
}

async fn load_table<T: Importable>(
    import: &mut store::Import,
    checker: &mut Checker,
    source: Rows<T>,
    tell: impl Fn(&str),
) -> Result<Counts> {
    let started = Instant::now();
    let path = source.path().to_owned();
    let Report { good, bad, .. } = *checker.report();
    let progress = Progress::new(&path, source.progress().1);
    let counts = import_table(import, checker, source, None, |read| progress.set(read)).await?;
    progress.finish();
    let report = checker.report();
    let (good, bad) = (report.good - good, report.bad - bad);
    let but = if bad > 0 { format!(", {} bad", HumanCount(bad)) } else { String::new() };
    let seconds = started.elapsed().as_secs_f64();
    tell(&format!("{}: {} read{but}, in {seconds:.1} s", path.display(), count_rows(good + bad)));
    Ok(counts)
}
