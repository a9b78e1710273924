//! Imports tables, all or nothing: for `atelier import`, the demo and feeds over HTTP.

use std::{
    fs::File,
    future::pending,
    path::{Path, PathBuf},
};

use atelier_core::domain::{
    Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, Outfit, Schema, Timestamp,
};
use atelier_files::{Checker, Deletion, Dialect, FileError, Files, InputFormat, Report, Rows, Table};

use super::{ImportError, Importable, Mirrored, import_table, may_commit, mirror};
use crate::{
    platform::db::{Counts, Store},
    releases::coverage::Census,
};

/// The result of an import.
#[derive(Debug)]
pub struct Outcome {
    pub report: Report,
    pub end: End,
}

#[derive(Debug)]
pub enum End {
    /// Everything was imported, except skipped bad rows; or would be, in a dry run.
    Imported(Imported),
    /// Some rows are bad, so nothing was imported.
    Refused,
    /// The files lack more articles than may be retired at once, so nothing was imported.
    TooManyMissing { missing: u64, before: u64 },
    /// A file could not be read to its end, or the database failed; nothing was imported.
    Stopped(ImportError),
    /// It was told to stop, and nothing was imported.
    Cancelled,
}

/// What an import did.
#[derive(Debug, Default)]
pub struct Imported {
    pub tables: Vec<(&'static str, Counts)>,
    /// With [`Options::mirror`].
    pub retired: Option<Mirrored>,
}

/// How files are imported.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Import the good rows even if others are bad.
    pub skip_bad: bool,
    /// Take everything back at the end.
    pub dry_run: bool,
    /// What rows of articles and customers do with stored ones.
    pub change: Change,
    /// The format of the articles; `None` if it shows.
    pub format: Option<InputFormat>,
    pub dialect: Dialect,
    /// Retire articles that the file lacks, up to this percentage of the catalogue.
    pub mirror: Option<u8>,
    /// The most rows, if the checker's own limit is too many.
    pub most_rows: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    #[default]
    Replace,
    Merge,
    Delete,
}

/// How far an import is.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// With the total of what will be read, in the unit of [`Rows::progress`].
    Begins {
        path: &'a Path,
        total: u64,
    },
    Read(u64),
    Ended {
        path: &'a Path,
        good: u64,
        bad: u64,
    },
}

/// Reads, checks and stores the files, all or nothing, if all rows are good or bad ones may be skipped. The census counts what a release does not know of the articles.
///
/// # Errors
/// If the import cannot begin: a file cannot be opened, or the database is busy.
pub async fn load_files(
    store: &Store,
    files: &Files,
    schema: &Schema,
    options: Options,
    census: Option<&mut Census>,
    now: Timestamp,
    tell: impl Fn(Step<'_>),
) -> Result<Outcome, ImportError> {
    let opened = Opened::files(files, schema, &options, now)?;
    let import = store.import(now).await?;
    fill(import, opened, &options, census, tell, pending(), |_, _, _| {}).await
}

/// Like [`load_files`] with skipping, for an empty database; `None` if it is not empty. The check is inside the
/// transaction, so only one of two services that start together fills the database.
pub async fn load_files_if_empty(
    store: &Store,
    files: &Files,
    schema: &Schema,
    now: Timestamp,
    tell: impl Fn(Step<'_>),
) -> Result<Option<Outcome>, ImportError> {
    let options = Options { skip_bad: true, ..Options::default() };
    let opened = Opened::files(files, schema, &options, now)?;
    let mut import = store.import(now).await?;
    if !import.is_empty().await? {
        import.abandon().await?;
        return Ok(None);
    }
    fill(import, opened, &options, None, tell, pending(), |_, _, _| {}).await.map(Some)
}

/// The files of an import. All are opened before the first row is stored, so that a wrong header in the last file is
/// reported at once.
#[derive(Debug, Default)]
pub struct Opened {
    articles: Option<Changes<Article, ArticlePatch, ArticleId>>,
    customers: Option<Changes<Customer, CustomerPatch, CustomerId>>,
    outfits: Option<Rows<Outfit>>,
    retired: Vec<ArticleId>,
}

/// The rows of a table, or changes of them, or which are deleted.
#[derive(Debug)]
enum Changes<Row, Patch, Id> {
    Rows(Rows<Row>),
    Patches(Rows<Patch>),
    Deletions(Rows<Deletion<Id>>),
}

impl<Row: Importable, Patch: Importable, Id> Changes<Row, Patch, Id>
where
    Deletion<Id>: Importable,
{
    async fn load(
        self,
        import: &mut super::Import,
        checker: &mut Checker,
        census: Option<&mut Census>,
        tell: impl Fn(Step<'_>),
    ) -> Result<Counts, ImportError> {
        match self {
            Self::Rows(rows) => load_table(import, checker, rows, census, tell).await,
            Self::Patches(rows) => load_table(import, checker, rows, census, tell).await,
            Self::Deletions(rows) => load_table(import, checker, rows, census, tell).await,
        }
    }
}

/// An open file, which errors call by its path, and how it is read.
struct Source<'a> {
    file: File,
    path: PathBuf,
    schema: &'a Schema,
    options: &'a Options,
    now: Timestamp,
}

impl Source<'_> {
    fn changes<Row: Table, Patch: Table, Id>(
        self,
        format: Option<InputFormat>,
    ) -> Result<Changes<Row, Patch, Id>, FileError>
    where
        Deletion<Id>: Table,
    {
        match self.options.change {
            Change::Replace => self.rows(format).map(Changes::Rows),
            Change::Merge => self.rows(format).map(Changes::Patches),
            Change::Delete => self.rows(format).map(Changes::Deletions),
        }
    }

    fn rows<T: Table>(self, format: Option<InputFormat>) -> Result<Rows<T>, FileError> {
        let Self { file, path, schema, options, now } = self;
        atelier_files::read_open(file, &path, schema, format, now, &options.dialect)
    }
}

impl Opened {
    fn files(files: &Files, schema: &Schema, options: &Options, now: Timestamp) -> Result<Self, ImportError> {
        let source = |path: &PathBuf| {
            let file = atelier_files::open(path)?;
            Ok::<_, FileError>(Source { file, path: path.clone(), schema, options, now })
        };
        let articles = files.articles.as_ref().map(|path| source(path)?.changes(options.format));
        let customers = files.customers.as_ref().map(|path| source(path)?.changes(None));
        let outfits = files.outfits.as_ref().map(|path| source(path)?.rows(None));
        let (articles, customers, outfits) =
            FileError::together(articles.transpose(), customers.transpose(), outfits.transpose())?;
        options.dialect.check_used().map_err(ImportError::Mapping)?;
        Ok(Self { articles, customers, outfits, retired: files.read_retired()? })
    }

    /// One file of a table, which errors call `path`.
    ///
    /// # Errors
    /// Why it is not the table's.
    pub fn table(
        table: &str,
        file: File,
        path: &Path,
        schema: &Schema,
        options: &Options,
        now: Timestamp,
    ) -> Result<Self, ImportError> {
        let source = Source { file, path: path.to_owned(), schema, options, now };
        let opened = match table {
            Article::NAME => Self { articles: Some(source.changes(options.format)?), ..Self::default() },
            Customer::NAME => Self { customers: Some(source.changes(options.format)?), ..Self::default() },
            _ => Self { outfits: Some(source.rows(options.format)?), ..Self::default() },
        };
        options.dialect.check_used().map_err(ImportError::Mapping)?;
        Ok(opened)
    }
}

/// Fills a begun import from the files and ends it. `stop` ends it early, and says whether there is time to take back what it
/// wrote; otherwise the next import does that.
pub async fn fill(
    mut import: super::Import,
    opened: Opened,
    options: &Options,
    census: Option<&mut Census>,
    tell: impl Fn(Step<'_>),
    stop: impl Future<Output = bool>,
    note: impl FnOnce(&mut super::Import, &Report, &Imported),
) -> Result<Outcome, ImportError> {
    let mut checker = Checker::new(import.article_ids().await?, import.customer_ids().await?)
        .with_variants(import.variants().await?)
        .with_retired(&opened.retired);
    if options.mirror.is_some() {
        checker = checker.mirroring();
    }
    if let Some(most) = options.most_rows {
        checker = checker.at_most(most);
    }
    let read = tokio::select! {
        biased;
        has_time = stop => Err(has_time),
        read = load_tables(&mut import, &mut checker, opened, options, census, tell) => Ok(read),
    };
    let report = checker.report().clone();
    let end = match read {
        Err(true) => End::Cancelled,
        Err(false) => return Ok(Outcome { report, end: End::Cancelled }),
        Ok(Ok(Imported { retired: Some(Mirrored::TooMany { missing, before }), .. })) => {
            End::TooManyMissing { missing, before }
        }
        Ok(Ok(imported)) if may_commit(&report, options.skip_bad) => {
            if options.dry_run {
                End::Imported(imported)
            } else {
                note(&mut import, &report, &imported);
                let committed = import.commit().await;
                let end =
                    committed.map_or_else(|error| End::Stopped(error.into()), |()| End::Imported(imported));
                return Ok(Outcome { report, end });
            }
        }
        Ok(Ok(_)) => End::Refused,
        Ok(Err(error)) => End::Stopped(error),
    };
    import.abandon().await?;
    Ok(Outcome { report, end })
}

/// Loads outfits last, after the rows that they refer to.
async fn load_tables(
    import: &mut super::Import,
    checker: &mut Checker,
    opened: Opened,
    options: &Options,
    census: Option<&mut Census>,
    tell: impl Fn(Step<'_>),
) -> Result<Imported, ImportError> {
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
    import: &mut super::Import,
    checker: &mut Checker,
    source: Rows<T>,
    census: Option<&mut Census>,
    tell: impl Fn(Step<'_>),
) -> Result<Counts, ImportError> {
    let path = source.path().to_owned();
    let Report { good, bad, .. } = *checker.report();
    tell(Step::Begins { path: &path, total: source.progress().1 });
    let counts = import_table(import, checker, source, census, |read| tell(Step::Read(read))).await?;
    let report = checker.report();
    tell(Step::Ended { path: &path, good: report.good - good, bad: report.bad - bad });
    Ok(counts)
}
