//! Imports files, all or nothing, for `atelier import` and for the demo.

use std::{
    path::Path,
    time::{Instant, SystemTime},
};

use anyhow::Result;
use atelier_core::domain::{
    Article, ArticleId, ArticlePatch, Customer, CustomerPatch, Outfit, Schema, Timestamp,
};
use atelier_files::{Checker, Dialect, FileError, Files, InputFormat, Report, Rows, Table};
use indicatif::HumanCount;

use super::count_rows;
use crate::{
    cli::progress::Progress,
    service::{
        coverage::Census,
        import::{Importable, Mirrored, import_table, may_commit, mirror},
    },
    store::{self, Counts, Store},
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
    Imported(Imported),
    /// Some rows are bad, so nothing was imported.
    Refused,
    /// The files lack more articles than may be retired at once, so nothing was imported.
    TooManyMissing { missing: u64, before: u64 },
    /// A file could not be read to its end, or the database failed; nothing was imported.
    Stopped(anyhow::Error),
}

/// What an import did.
#[derive(Debug, Default)]
pub(in crate::cli) struct Imported {
    pub(in crate::cli) tables: Vec<(&'static str, Counts)>,
    /// With [`Options::mirror`].
    pub(in crate::cli) retired: Option<Mirrored>,
}

/// How files are imported.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Options {
    /// Import the good rows even if others are bad.
    pub(in crate::cli) skip_bad: bool,
    /// Rows of articles and customers change stored ones; otherwise they replace them.
    pub(in crate::cli) merge: bool,
    /// The format of the articles; `None` if it shows.
    pub(in crate::cli) format: Option<InputFormat>,
    pub(in crate::cli) dialect: Dialect,
    /// Retire articles that the file lacks, up to this percentage of the catalogue.
    pub(in crate::cli) mirror: Option<u8>,
}

/// Reads, checks and stores the files, all or nothing, if all rows are good or bad ones may be skipped. The census counts what a release does not know of the articles; `tell` gets a line for each file.
///
/// # Errors
/// If the import cannot begin: a file cannot be opened, or the database is busy.
pub(in crate::cli) async fn load_files(
    store: &Store,
    files: &Files,
    schema: &Schema,
    options: Options,
    census: Option<&mut Census>,
    tell: impl Fn(&str),
) -> Result<Outcome> {
    let now = SystemTime::now().into();
    let opened = Opened::new(files, schema, &options, now)?;
    let import = store.import(now).await?;
    fill(import, opened, &options, census, tell).await
}

/// Like [`load_files`] with skipping, for an empty database; `None` if it is not empty. The check is inside the
/// transaction, so only one of two services that start together fills the database.
pub(in crate::cli) async fn load_files_if_empty(
    store: &Store,
    files: &Files,
    schema: &Schema,
    tell: impl Fn(&str),
) -> Result<Option<Outcome>> {
    let options = Options { skip_bad: true, ..Options::default() };
    let now = SystemTime::now().into();
    let opened = Opened::new(files, schema, &options, now)?;
    let mut import = store.import(now).await?;
    if !import.is_empty().await? {
        import.abandon().await?;
        return Ok(None);
    }
    fill(import, opened, &options, None, tell).await.map(Some)
}

/// The files of an import. All are opened before the first row is stored, so that a wrong header in the last file is
/// reported at once.
struct Opened {
    articles: Option<Either<Article, ArticlePatch>>,
    customers: Option<Either<Customer, CustomerPatch>>,
    outfits: Option<Rows<Outfit>>,
    retired: Vec<ArticleId>,
}

/// The rows of a table, or changes of them.
enum Either<Row, Patch> {
    Rows(Rows<Row>),
    Patches(Rows<Patch>),
}

impl<Row: Importable, Patch: Importable> Either<Row, Patch> {
    fn open(
        path: &Path,
        schema: &Schema,
        format: Option<InputFormat>,
        now: Timestamp,
        options: &Options,
    ) -> Result<Self, FileError> {
        if options.merge {
            atelier_files::read_any(path, schema, format, now, &options.dialect).map(Self::Patches)
        } else {
            atelier_files::read_any(path, schema, format, now, &options.dialect).map(Self::Rows)
        }
    }

    async fn load(
        self,
        import: &mut store::Import,
        checker: &mut Checker,
        census: Option<&mut Census>,
        tell: impl Fn(&str),
    ) -> Result<Counts> {
        match self {
            Self::Rows(rows) => load_table(import, checker, rows, census, tell).await,
            Self::Patches(rows) => load_table(import, checker, rows, census, tell).await,
        }
    }
}

impl Opened {
    fn new(files: &Files, schema: &Schema, options: &Options, now: Timestamp) -> Result<Self> {
        let Options { format, dialect, .. } = options;
        let articles =
            files.articles.as_deref().map(|path| Either::open(path, schema, *format, now, options));
        let customers = files.customers.as_deref().map(|path| Either::open(path, schema, None, now, options));
        let outfits = files.outfits.as_deref().map(|path| atelier_files::read_as(path, schema, dialect));
        let (articles, customers, outfits) =
            FileError::together(articles.transpose(), customers.transpose(), outfits.transpose())?;
        dialect.check_used().map_err(anyhow::Error::msg)?;
        Ok(Self { articles, customers, outfits, retired: files.read_retired()? })
    }
}

async fn fill(
    mut import: store::Import,
    opened: Opened,
    options: &Options,
    census: Option<&mut Census>,
    tell: impl Fn(&str),
) -> Result<Outcome> {
    let mut checker = Checker::new(import.article_ids().await?, import.customer_ids().await?)
        .with_variants(import.variants().await?)
        .with_retired(&opened.retired);
    if options.mirror.is_some() {
        checker = checker.mirroring();
    }
    let read = load_tables(&mut import, &mut checker, opened, options, census, tell).await;
    let report = checker.report().clone();
    let end = match read {
        Ok(Imported { retired: Some(Mirrored::TooMany { missing, before }), .. }) => {
            End::TooManyMissing { missing, before }
        }
        Ok(imported) if may_commit(&report, options.skip_bad) => {
            let committed = import.commit().await;
            let end = committed.map_or_else(|error| End::Stopped(error.into()), |()| End::Imported(imported));
            return Ok(Outcome { report, end });
        }
        Ok(_) => End::Refused,
        Err(error) => End::Stopped(error),
    };
    import.abandon().await?;
    Ok(Outcome { report, end })
}

/// Loads outfits last, after the rows that they refer to.
async fn load_tables(
    import: &mut store::Import,
    checker: &mut Checker,
    opened: Opened,
    options: &Options,
    census: Option<&mut Census>,
    tell: impl Fn(&str),
) -> Result<Imported> {
    let Opened { articles, customers, outfits, retired: _ } = opened;
    let mut imported = Imported::default();
    if let Some(rows) = articles {
        let counts = rows.load(import, checker, census, &tell).await?;
        imported.tables.push((Article::NAME, counts));
        if let Some(percent) = options.mirror {
            let mirrored = mirror(import, checker, percent).await?;
            imported.retired = Some(mirrored);
            if let Mirrored::TooMany { .. } = mirrored {
                return Ok(imported);
            }
        }
    }
    if let Some(rows) = customers {
        imported.tables.push((Customer::NAME, rows.load(import, checker, None, &tell).await?));
    }
    if let Some(rows) = outfits {
        imported.tables.push((Outfit::NAME, load_table(import, checker, rows, None, &tell).await?));
    }
    Ok(imported)
}

async fn load_table<T: Importable>(
    import: &mut store::Import,
    checker: &mut Checker,
    source: Rows<T>,
    census: Option<&mut Census>,
    tell: impl Fn(&str),
) -> Result<Counts> {
    let started = Instant::now();
    let path = source.path().to_owned();
    let Report { good, bad, .. } = *checker.report();
    let progress = Progress::new(&path, source.progress().1);
    let counts = import_table(import, checker, source, census, |read| progress.set(read)).await?;
    progress.finish();
    let report = checker.report();
    let (good, bad) = (report.good - good, report.bad - bad);
    let but = if bad > 0 { format!(", {} bad", HumanCount(bad)) } else { String::new() };
    let seconds = started.elapsed().as_secs_f64();
    tell(&format!("{}: {} read{but}, in {seconds:.1} s", path.display(), count_rows(good + bad)));
    Ok(counts)
}
