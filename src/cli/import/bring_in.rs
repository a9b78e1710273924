//! Files into the database in one transaction, for `atelier import` and for a service's first start.

use std::{
    path::Path,
    time::{Instant, SystemTime},
};

use anyhow::Result;
use indicatif::HumanCount;

use super::rows;
use crate::{
    cli::progress::Progress,
    domain::{Article, Customer, Outfit, Schema},
    files::{self, Checker, ExchangeError, Files, Report, Rows, Table},
    service::intake::{self, Intake},
    store::{self, Counts, Store},
};

/// What became of an import.
#[derive(Debug)]
pub(in crate::cli) struct Outcome {
    pub(in crate::cli) report: Report,
    pub(in crate::cli) end: End,
}

#[derive(Debug)]
pub(in crate::cli) enum End {
    /// All is in the database, table by table, but for bad rows that may be skipped.
    Imported(Vec<(&'static str, Counts)>),
    /// Rows were bad, and nothing is in the database.
    Refused,
    /// A file could not be read to its end, or the database gave up; nothing is in it.
    Stopped(anyhow::Error),
}

/// Reads, checks and stores the files in one transaction, which is committed if no row was bad or bad
/// rows may be skipped. `tell` hears a line when a file is read.
///
/// # Errors
/// If it could not even begin: a file is not what it should be, or the database is busy.
pub(in crate::cli) async fn bring_in(
    store: &Store,
    files: &Files,
    schema: &Schema,
    skip_bad: bool,
    tell: impl Fn(&str),
) -> Result<Outcome> {
    let opened = Opened::new(files, schema)?;
    let import = store.import(SystemTime::now().into()).await?;
    fill(import, opened, skip_bad, tell).await
}

/// As [`bring_in`] without a bad row, into a database that holds nothing; `None` if it holds something.
/// That is looked up inside the transaction, so of two services that start at once one fills it.
pub(in crate::cli) async fn bring_in_if_empty(
    store: &Store,
    files: &Files,
    schema: &Schema,
    tell: impl Fn(&str),
) -> Result<Option<Outcome>> {
    let opened = Opened::new(files, schema)?;
    let mut import = store.import(SystemTime::now().into()).await?;
    if !import.is_empty().await? {
        return Ok(None);
    }
    fill(import, opened, false, tell).await.map(Some)
}

/// The files of an import, all of them open before the first row is stored: a wrong header of the last
/// one is told at once.
struct Opened {
    articles: Option<Rows<Article>>,
    customers: Option<Rows<Customer>>,
    outfits: Option<Rows<Outfit>>,
}

impl Opened {
    fn new(files: &Files, schema: &Schema) -> Result<Self, ExchangeError> {
        fn open<T: Table>(path: Option<&Path>, schema: &Schema) -> Result<Option<Rows<T>>, ExchangeError> {
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
    tell: impl Fn(&str),
) -> Result<Outcome> {
    // Asked inside the transaction: what is referred to cannot go meanwhile.
    let mut checker = Checker::new(import.article_ids().await?, import.customer_ids().await?);
    let read = tables(&mut import, &mut checker, opened, tell).await;
    let report = checker.report().clone();
    let end = match read {
        Ok(counts) if report.bad == 0 || (skip_bad && report.good > 0) => match import.commit().await {
            Ok(()) => End::Imported(counts),
            Err(error) => End::Stopped(error.into()),
        },
        Ok(_) => End::Refused,
        Err(error) => End::Stopped(error),
    };
    Ok(Outcome { report, end })
}

/// Outfits after what they refer to.
async fn tables(
    import: &mut store::Import,
    checker: &mut Checker,
    opened: Opened,
    tell: impl Fn(&str),
) -> Result<Vec<(&'static str, Counts)>> {
    let Opened { articles, customers, outfits } = opened;
    let mut counts = Vec::new();
    if let Some(rows) = articles {
        counts.push((Article::NAME, table(import, checker, rows, &tell).await?));
    }
    if let Some(rows) = customers {
        counts.push((Customer::NAME, table(import, checker, rows, &tell).await?));
    }
    if let Some(rows) = outfits {
        counts.push((Outfit::NAME, table(import, checker, rows, &tell).await?));
    }
    Ok(counts)
}

async fn table<T: Intake>(
    import: &mut store::Import,
    checker: &mut Checker,
    source: Rows<T>,
    tell: impl Fn(&str),
) -> Result<Counts> {
    let started = Instant::now();
    let path = source.path().to_owned();
    let Report { good, bad, .. } = *checker.report();
    let progress = Progress::new(&path, source.progress().1);
    let counts = intake::table(import, checker, source, |read| progress.set(read)).await?;
    progress.finish();
    let report = checker.report();
    let (good, bad) = (report.good - good, report.bad - bad);
    let but = if bad > 0 { format!(", {} bad", HumanCount(bad)) } else { String::new() };
    let seconds = started.elapsed().as_secs_f64();
    tell(&format!("{}: {} read{but}, in {seconds:.1} s", path.display(), rows(good + bad)));
    Ok(counts)
}
