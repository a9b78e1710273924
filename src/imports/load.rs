//! The one door for imports: tables from files, all or nothing.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use atelier_core::{
    domain::{
        Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, Outfit, Schema, Timestamp,
    },
    named,
    util::notation::group_digits,
};
use atelier_files::{Checker, Deletion, Dialect, FileError, Files, InputFormat, Report};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Import, ImportError, Importable, Load, Loss, Tell, import_table, may_commit, mirror};
use crate::{platform::db::Counts, releases::coverage::Census};

#[derive(Debug)]
pub struct Outcome {
    pub report: Report,
    pub end: End,
}

#[derive(Debug)]
pub enum End {
    /// Everything was imported, except skipped bad rows; or would be, in a dry run.
    Imported(Imported),
    /// The rows are not what they should be, so nothing was imported. Says why, and what to do, with the flags of the command.
    Refused(String),
    /// A file could not be read to its end, or the database failed; nothing was imported.
    Stopped(ImportError),
    /// It was told to stop, and nothing was imported.
    Cancelled,
}

#[derive(Debug, Default)]
pub struct Imported {
    pub tables: Vec<(FeedTable, Counts)>,
    /// With [`Options::mirror`], unless a bad row may be about any article.
    pub retired: Option<u64>,
    /// By which it can be undone, if the caller [kept](Import::keep) it.
    pub number: Option<i64>,
}

impl Imported {
    /// Those of all tables.
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for (_, counts) in &self.tables {
            all += *counts;
        }
        all
    }
}

/// Why bad rows are refused, and how to have the good ones stored.
fn describe_bad(Report { good, bad, .. }: &Report) -> String {
    let [all, bad, good] = [good + bad, *bad, *good].map(digits);
    let instead =
        if good == "0" { String::new() } else { format!(", or store the {good} good ones with --skip-bad") };
    format!("{bad} of {all} rows are bad; fix them{instead}")
}

fn describe_losses(losses: &[Loss], report: &Report, limit: u8) -> String {
    let lost = |Loss { attribute, lost, had }: &Loss| {
        format!("{attribute} from {} of the {} articles that have it", digits(*lost), digits(*had))
    };
    let lost: Vec<String> = losses.iter().map(lost).collect();
    let advice = if report.proposed.is_empty() {
        "map the columns that have them with --map FROM=TO".to_owned()
    } else {
        report.notes.join("; ")
    };
    format!(
        "the file takes {}. At most {limit} % of the articles with an attribute may lose it at once, and none if another column may \
         have it. If the attributes are to go, use --force. Otherwise {advice}",
        lost.join(", ")
    )
}

pub(super) fn digits(count: u64) -> String {
    group_digits(&count.to_string(), ",")
}

named! {
    "a table is articles, customers or outfits"
    /// The table that a file's rows belong to.
    #[derive(Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum FeedTable {
        #[default]
        Articles = "articles",
        Customers = "customers",
        Outfits = "outfits",
    }
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    pub skip_bad: bool,
    /// Take everything back at the end.
    pub dry_run: bool,
    /// How articles' and customers' rows change stored ones.
    pub change: Change,
    /// The format of the articles, or of a single file; `None` if it shows.
    pub format: Option<InputFormat>,
    /// Read JSON Lines as they are, neither compressed nor in another encoding.
    pub plain_lines: bool,
    pub dialect: Dialect,
    /// Retire articles that the file lacks.
    pub mirror: bool,
    /// The most that whole articles take away, in percent: articles of the catalogue, and attributes of those that have them. All,
    /// without it.
    pub limit: Option<u8>,
    /// The most rows, if the checker's own limit is too many.
    pub most_rows: Option<u32>,
}

/// How articles' and customers' rows change stored ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    #[default]
    Replace,
    Merge,
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// With the total of what will be read, in the unit of [`Rows::progress`](atelier_files::Rows::progress).
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

/// The files of an import, in the order in which they refer to each other. All are opened before the first row is stored, so that a
/// wrong header in the last file is reported at once.
#[expect(missing_debug_implementations, reason = "readers of rows have none")]
pub struct Opened {
    tables: Vec<(FeedTable, Load)>,
    retired: Vec<ArticleId>,
}

/// An open file, which errors call by its path, and how it is read.
struct Source<'a> {
    file: File,
    path: &'a Path,
    schema: &'a Schema,
    options: &'a Options,
    format: Option<InputFormat>,
    now: Timestamp,
}

impl Source<'_> {
    fn open(self, table: FeedTable) -> Result<(FeedTable, Load), FileError> {
        let rows = match (table, self.options.change) {
            (FeedTable::Articles, Change::Replace) => self.rows::<Article>(),
            (FeedTable::Articles, Change::Merge) => self.rows::<ArticlePatch>(),
            (FeedTable::Articles, Change::Delete) => self.rows::<Deletion<ArticleId>>(),
            (FeedTable::Customers, Change::Replace) => self.rows::<Customer>(),
            (FeedTable::Customers, Change::Merge) => self.rows::<CustomerPatch>(),
            (FeedTable::Customers, Change::Delete) => self.rows::<Deletion<CustomerId>>(),
            (FeedTable::Outfits, _) => self.rows::<Outfit>(),
        };
        Ok((table, rows?))
    }

    fn rows<T: Importable>(self) -> Result<Load, FileError> {
        let Self { file, path, schema, options, format, now } = self;
        let rows = if options.plain_lines {
            let refuse = |source| FileError::Open { path: path.to_owned(), source };
            let length = file.metadata().map_err(refuse)?.len();
            atelier_files::read_json_lines::<T>(file, length, path, schema)?
        } else {
            atelier_files::read_open(file, path, schema, format, now, &options.dialect)?
        };
        Ok(Box::new(move |import, checker, census, tell| {
            Box::pin(import_table(import, checker, rows, census, tell))
        }))
    }
}

impl Opened {
    pub fn files(
        files: &Files,
        schema: &Schema,
        options: &Options,
        now: Timestamp,
    ) -> Result<Self, ImportError> {
        let open = |table, path: &Option<PathBuf>, format| {
            let Some(path) = path else { return Ok(None) };
            let file = atelier_files::open(path)?;
            Source { file, path, schema, options, format, now }.open(table).map(Some)
        };
        let (articles, customers, outfits) = FileError::together(
            open(FeedTable::Articles, &files.articles, options.format),
            open(FeedTable::Customers, &files.customers, None),
            open(FeedTable::Outfits, &files.outfits, None),
        )?;
        options.dialect.check_used().map_err(ImportError::Mapping)?;
        let tables = [articles, customers, outfits].into_iter().flatten().collect();
        Ok(Self { tables, retired: files.read_retired()? })
    }

    /// One file of a table, which errors call `path`.
    pub fn table(
        table: FeedTable,
        file: File,
        path: &Path,
        schema: &Schema,
        options: &Options,
        now: Timestamp,
    ) -> Result<Self, ImportError> {
        let opened = Source { file, path, schema, options, format: options.format, now }.open(table)?;
        options.dialect.check_used().map_err(ImportError::Mapping)?;
        Ok(Self { tables: vec![opened], retired: Vec::new() })
    }

    /// Reads, checks and stores the files and ends the import. All rows are stored, if all are good or bad ones may be skipped, or
    /// none. The census counts what a release does not know of the articles.
    ///
    /// `stop` ends it early, and says whether there is time to take back what it wrote; otherwise the next import does that. `note`
    /// adds to the import before it is committed.
    pub async fn import(
        self,
        mut import: Import,
        options: &Options,
        census: Option<&mut Census>,
        tell: Tell<'_>,
        stop: impl Future<Output = bool>,
        note: impl FnOnce(&mut Import, &Report, &Imported),
    ) -> Result<Outcome, ImportError> {
        let tables: Vec<FeedTable> = self.tables.iter().map(|(table, _)| *table).collect();
        let mut checker = new_checker(&mut import, &tables, &self.retired, options).await?;
        let read = tokio::select! {
            biased;
            has_time = stop => Err(has_time),
            read = self.load(&mut import, &mut checker, options, census, tell) => Ok(read),
        };
        let report = checker.report().clone();
        let end = match read {
            Err(true) => End::Cancelled,
            Err(false) => return Ok(Outcome { report, end: End::Cancelled }),
            Ok(Ok(Err(refusal))) => End::Refused(refusal),
            Ok(Ok(Ok(imported))) if may_commit(&report, options.skip_bad) => {
                if options.dry_run {
                    End::Imported(imported)
                } else {
                    note(&mut import, &report, &imported);
                    let committed = import.commit().await;
                    let end = committed
                        .map_or_else(|error| End::Stopped(error.into()), |()| End::Imported(imported));
                    return Ok(Outcome { report, end });
                }
            }
            Ok(Ok(Ok(_))) => End::Refused(describe_bad(&report)),
            Ok(Err(error)) => End::Stopped(error),
        };
        import.abandon().await?;
        Ok(Outcome { report, end })
    }

    async fn load(
        self,
        import: &mut Import,
        checker: &mut Checker,
        options: &Options,
        mut census: Option<&mut Census>,
        tell: Tell<'_>,
    ) -> Result<Result<Imported, String>, ImportError> {
        let mut imported = Imported::default();
        for (table, load) in self.tables {
            let counts = load(import, checker, census.as_deref_mut(), tell).await?;
            imported.tables.push((table, counts));
            if (table, options.change) != (FeedTable::Articles, Change::Replace) {
                continue;
            }
            let limit = options.limit.unwrap_or(100);
            if options.mirror {
                match mirror(import, checker, limit).await? {
                    Ok(retired) => imported.retired = retired,
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
            let report = checker.report();
            let losses = import.losses(limit, &report.proposed).await?;
            if !losses.is_empty() {
                return Ok(Err(describe_losses(&losses, report, limit)));
            }
        }
        Ok(Ok(imported))
    }
}

/// A checker that knows the ids that rows of these tables may repeat or refer to.
async fn new_checker(
    import: &mut Import,
    tables: &[FeedTable],
    retired: &[ArticleId],
    options: &Options,
) -> Result<Checker, ImportError> {
    let refers = tables.contains(&FeedTable::Outfits);
    // Articles and variants share their ids.
    let (articles, variants) = if refers || tables.contains(&FeedTable::Articles) {
        (import.article_ids().await?, import.variants().await?)
    } else {
        (Vec::new(), Vec::new())
    };
    let customers = if refers { import.customer_ids().await? } else { Vec::new() };
    let mut checker = Checker::new(articles, customers).with_variants(variants).with_retired(retired);
    if options.mirror {
        checker = checker.mirroring();
    }
    if let Some(most) = options.most_rows {
        checker = checker.at_most(most);
    }
    Ok(checker)
}
