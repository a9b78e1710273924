//! Stores the rows of files, for `atelier import`, the demo, the bulk routes and feeds.
//!
//! All of them come through [`load::Opened`], which opens files and stores their checked rows, all or none. [`jobs`] does that in
//! the background.

pub(crate) mod api;
pub mod feeds;
pub mod jobs;
pub mod load;
pub(crate) mod page;
mod sql;

pub(crate) use self::sql::feeds::hide_credentials;
pub use self::sql::{
    feeds::{Feed, FeedSeen, FeedState, Feeds},
    import::{Import, Loss, Outcome, Undo, Undone},
    imports::{ImportId, ImportRecord, ImportState, Imports, Progress},
};

use std::{ops::RangeInclusive, time::Duration};

use atelier_core::{
    domain::{Article, ArticleId, ArticlePatch, Customer, CustomerId, CustomerPatch, Outfit},
    util::text::abbreviate,
};
use atelier_files::{Checked, Checker, CountedWarning, Deletion, FileError, Report, Rows, Table};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use self::load::{Step, digits};
use crate::{
    platform::{
        db::{Counts, StoreError},
        http::Finding,
    },
    releases::coverage::Census,
};

/// The least and most rows that are stored at once, and their bytes: few enough to need little memory.
const SLICE: RangeInclusive<usize> = 2000..=20_000;
const SLICE_BYTES: u64 = 4 << 20;
/// How long storing a slice should take. Other writes wait for it, and every slice writes much of an index anew.
const STORING: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_millis(500);
/// How long the database is free between slices. A program that waits for another one's write on `SQLite` looks that often
/// whether it has ended.
const FREE: Duration = Duration::from_millis(100);

/// The most characters of a text in an answer, which may quote a cell.
const LONGEST: usize = 1000;

fn shortened(mut text: String) -> String {
    abbreviate(&mut text, LONGEST);
    text
}

/// The text with parameters of a request instead of the command's flags.
fn name_parameters(text: &str) -> String {
    const FLAGS: [(&str, &str); 6] = [
        ("--map ", "map="),
        ("--delimiter ", "delimiter="),
        ("--encoding ", "encoding="),
        ("--mirror-limit ", "mirror_limit="),
        ("--skip-bad", "skip_bad=true"),
        ("--force", "force=true"),
    ];
    FLAGS.iter().fold(text.to_owned(), |text, (flag, parameter)| text.replace(flag, parameter))
}

/// The unusual values of good rows, and those that a release does not know, for an answer.
fn list_warnings(report: &Report, census: Option<Census>, quote: impl Fn(&str) -> String) -> Vec<Finding> {
    let warning = |noted: &CountedWarning| {
        let all = if noted.rows > 1 { format!(" ({} rows in all)", noted.rows) } else { String::new() };
        Finding::line(noted.line, quote(&noted.warning.to_string()) + &all)
    };
    let more =
        (report.more_warnings > 0).then(|| format!("{} rows have other warnings", report.more_warnings));
    let unknown = census.into_iter().flat_map(Census::into_warnings).map(shortened);
    let unread = report.notes.iter().map(|text| Finding::general(name_parameters(text)));
    let warnings = unread.chain(report.warnings.iter().map(warning));
    warnings.chain(more.into_iter().chain(unknown).map(Finding::general)).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    File(#[from] FileError),
    /// A mapping is of no column.
    #[error("{0}")]
    Mapping(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where an import's steps are told.
type Tell<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);

/// Reads, checks and stores the rows of an open file, whatever their table and what they do to stored ones. The checker reports bad
/// rows, and the census, if there is one, what a release does not know of articles.
///
/// Parsing blocks, so this needs a runtime with several threads.
type Load = Box<
    dyn for<'a> FnOnce(
            &'a mut Import,
            &'a mut Checker,
            Option<&'a mut Census>,
            Tell<'a>,
        ) -> BoxFuture<'a, Result<Counts, ImportError>>
        + Send,
>;

async fn import_table<T: Importable>(
    import: &mut Import,
    checker: &mut Checker,
    rows: Rows<T>,
    mut census: Option<&mut Census>,
    tell: Tell<'_>,
) -> Result<Counts, ImportError> {
    let path = rows.path().to_owned();
    let Report { good, bad, .. } = *checker.report();
    tell(Step::Begins { path: &path, total: rows.progress().1 });
    let mut read = checker.check(rows);
    let mut counts = Counts::default();
    let (mut most, mut free_until) = (*SLICE.start(), Instant::now());
    loop {
        let (slice, lines) = tokio::task::block_in_place(|| next_slice(&mut read, most))?;
        if slice.is_empty() {
            break;
        }
        sleep_until(free_until).await;
        let began = Instant::now();
        if let Some(census) = &mut census {
            T::count_unknown(&slice, census);
        }
        let merged = T::put(import, &slice).await?;
        let took = began.elapsed();
        free_until = Instant::now() + took.min(FREE);
        if took < *STORING.start() {
            most = (most * 2).min(*SLICE.end());
        } else if took > *STORING.end() {
            most = (most / 2).max(*SLICE.start());
        }
        counts += merged.counts;
        for (place, reason) in merged.refused {
            read.refuse(lines[place], reason);
        }
        tell(Step::Read(read.progress().0));
    }
    drop(read);
    let report = checker.report();
    tell(Step::Ended { path: &path, good: report.good - good, bad: report.bad - bad });
    import.leave_out(T::NAME, report.bad - bad);
    Ok(counts)
}

/// The next rows and their lines; none at the end.
fn next_slice<T: Table>(rows: &mut Checked<'_, T>, most: usize) -> Result<(Vec<T>, Vec<u64>), FileError> {
    let (begin, mut slice, mut lines) = (rows.bytes(), Vec::new(), Vec::new());
    while slice.len() < most && rows.bytes() - begin < SLICE_BYTES {
        let Some(row) = rows.next() else { break };
        slice.push(row?);
        lines.push(rows.line());
    }
    Ok((slice, lines))
}

/// Retires the articles that the read files do not have, not even in a bad row, up to `percent` of those that there are, or says why
/// not. Call it after the articles were imported.
async fn mirror(
    import: &mut Import,
    checker: &mut Checker,
    percent: u8,
) -> Result<Result<Option<u64>, String>, StoreError> {
    for (article, variant) in checker.bad_variants() {
        import.keep_variant(article, variant).await?;
    }
    if checker.has_bad_without_id() {
        checker.note(
            "no article was retired, because the id of a bad row cannot be read; fix it and import again",
        );
        return Ok(Ok(None));
    }
    let mut ids = import.article_ids().await?;
    let before = ids.len() as u64;
    ids.retain(|id| !checker.has_read(id) && !checker.has_bad(id));
    let missing = ids.len() as u64;
    if missing * 100 > before * u64::from(percent) {
        // Rounded up, so that the limit that it names is enough.
        let share = (100 * missing).div_ceil(before.max(1));
        return Ok(Err(format!(
            "the file lacks {} of the catalogue's {} articles ({share} %), more than the {percent} % that may be retired at once. \
             Check that it is complete; if it is, use --mirror-limit {share}",
            digits(missing),
            digits(before)
        )));
    }
    import.retire(&ids).await?;
    for id in &ids {
        checker.forget(id);
    }
    Ok(Ok(Some(missing)))
}

/// Whether an import is committed: all rows are good, or the bad ones may be skipped and some are good.
fn may_commit(report: &Report, skip_bad: bool) -> bool {
    report.bad == 0 || (skip_bad && report.good > 0)
}

trait Importable: Table + Send + Sync + 'static {
    fn put(import: &mut Import, rows: &[Self]) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Only articles have something that a release may not know.
    fn count_unknown(_rows: &[Self], _census: &mut Census) {}
}

impl Importable for Article {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        import.put(rows).await
    }

    fn count_unknown(rows: &[Self], census: &mut Census) {
        for article in rows {
            census.count(article);
        }
    }
}

impl Importable for Customer {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        import.put(rows).await
    }
}

impl Importable for ArticlePatch {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        import.merge::<Article>(rows).await
    }
}

impl Importable for CustomerPatch {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        import.merge::<Customer>(rows).await
    }
}

/// A deleted article counts as changed, an absent one as unchanged.
impl Importable for Deletion<ArticleId> {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        let ids: Vec<ArticleId> = rows.iter().map(|Deletion(id)| id.clone()).collect();
        import.retire(&ids).await.map(|deleted| count_deleted(deleted, rows))
    }
}

impl Importable for Deletion<CustomerId> {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        let ids: Vec<CustomerId> = rows.iter().map(|Deletion(id)| id.clone()).collect();
        import.erase(&ids).await.map(|deleted| count_deleted(deleted, rows))
    }
}

fn count_deleted<T>(deleted: u64, rows: &[T]) -> Outcome {
    let counts = Counts { added: 0, changed: deleted, unchanged: rows.len() as u64 - deleted };
    Outcome { counts, refused: Vec::new() }
}

impl Importable for Outfit {
    async fn put(import: &mut Import, rows: &[Self]) -> Result<Outcome, StoreError> {
        import.outfits(rows).await
    }
}
