//! Feeds as jobs: a file is imported in the background, and the database says how far it is and how it ended.
//!
//! A job runs on the replica that received it. One import runs at a time, over all replicas; the others wait without a connection
//! of the database. Reading a file takes a processor, so a job has a thread of its own, which gives way to those that answer
//! requests. Each job is a task that [`Jobs`] owns: it says every second in the database that it is alive, and looks whether
//! someone cancels it.

use std::{
    collections::HashMap,
    fs::File,
    path::Path,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use atelier_core::{
    domain::FeedName,
    named,
    util::{clock::Clock, text::abbreviate},
};
use atelier_files::{BadRows, Dialect, InputFormat, NotWorn, Report, RowError, strip_values};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinSet,
    time::{interval, sleep, timeout},
};
use utoipa::{IntoParams, ToSchema};

pub use super::load::FeedTable;
use super::{
    ImportError, LONGEST, list_warnings,
    load::{Change, End, Imported, Opened, Options, Outcome, Step},
    name_parameters, shortened,
    sql::{
        import::{Import, Undo},
        imports::{ImportId, ImportState, Progress},
    },
};
use crate::{
    completion::profiles::Profiles,
    platform::{
        db::{Author, Counts, Store, StoreError},
        fault::Fault,
        http::{AppState, Finding},
    },
    releases::{Releases, coverage::Census},
};

/// How often a job says that it is alive.
const BEAT: Duration = Duration::from_secs(1);
/// How often a replica looks for jobs whose process was killed.
const LOOK: Duration = Duration::from_secs(10);
/// How often a waiting job looks whether another process's import has ended.
const TRY: Duration = Duration::from_secs(1);
/// How long the service waits at its end for running jobs.
const STOPPING: Duration = Duration::from_secs(2);
/// The most jobs of a replica: each keeps a file.
const MOST: usize = 16;
/// How many rows of a kind of error a result quotes.
const QUOTED: usize = 5;

named! {
    "a mode is replace, merge, mirror or delete"
    /// How a feed changes the stored rows.
    #[derive(Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Mode {
        /// A row replaces the stored one.
        #[default]
        Replace = "replace",
        /// A row changes the stored one: what it does not name stays.
        Merge = "merge",
        /// As `replace`, and articles that the feed lacks are retired.
        Mirror = "mirror",
        /// A row has an `id` only, whose article or customer is deleted. A customer is erased, as `DELETE /customers/{id}` does.
        Delete = "delete",
    }
}

/// How a feed is read and stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct FeedOptions {
    /// The table that the rows belong to.
    #[param(inline)]
    pub table: FeedTable,
    /// How rows change the stored ones.
    #[param(inline)]
    pub mode: Mode,
    /// `jsonl`, `csv`, `parquet`, `google-xml`, `google-tsv` or `shopify-csv`; without it, as the contents show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Delimiter of CSV: `,`, `;`, `|` or `tab`; without it, the one with which the header has the needed columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Encoding of CSV and tab-separated feeds without a byte order mark, such as `windows-1252`; without it, UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// `FROM=TO`: the column FROM of CSV and Parquet is read as TO, or left out if TO is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<String>,
    /// Store the good rows even if others are bad.
    pub skip_bad: bool,
    /// Read, check and count everything, and store nothing.
    pub dry_run: bool,
    /// Nothing is stored if more than this percentage of the catalogue would be retired, or of the articles with an attribute would
    /// lose it. `feeds.mirror_limit` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub mirror_limit: Option<u8>,
    /// Retire all missing articles, and remove all attributes that rows do not have.
    pub force: bool,
}

/// The settings for feeds.
#[derive(Debug, Default)]
pub struct FeedTerms {
    pub not_worn: NotWorn,
    /// The most rows of an import.
    pub rows: u32,
    pub mirror_limit: u8,
}

impl FeedOptions {
    /// # Errors
    /// Each option that is wrong.
    pub fn check(&self) -> Result<(), Vec<Fault>> {
        self.read(&FeedTerms::default()).map(drop)
    }

    fn read(&self, terms: &FeedTerms) -> Result<Options, Vec<Fault>> {
        fn parse<T: std::str::FromStr<Err = String>>(
            name: &str,
            text: Option<&String>,
            faults: &mut Vec<Fault>,
        ) -> Option<T> {
            text?.parse().map_err(|reason| faults.push(Fault::new(name, reason))).ok()
        }
        let mut faults = Vec::new();
        let Self { table, mode, .. } = self;
        let mut refuse = |name: &str, reason: String| faults.push(Fault::new(name, reason));
        match (mode, table) {
            (Mode::Mirror, FeedTable::Customers | FeedTable::Outfits) => {
                refuse("mode", format!("mirror is for articles; expected another mode for {table}"));
            }
            (Mode::Merge | Mode::Delete, FeedTable::Outfits) => {
                refuse("mode", format!("{} is not for outfits; expected replace", mode.as_str()));
            }
            _ => {}
        }
        if let Some(found @ 101..) = self.mirror_limit {
            refuse("mirror_limit", format!("expected 0 to 100 percent, found {found}"));
        }
        if self.mirror_limit.is_some() && !matches!(mode, Mode::Mirror | Mode::Replace) {
            refuse("mirror_limit", "only mode=replace and mode=mirror have a limit".to_owned());
        }
        let format: Option<InputFormat> = parse("format", self.format.as_ref(), &mut faults);
        let delimiter = parse("delimiter", self.delimiter.as_ref(), &mut faults);
        let encoding = parse("encoding", self.encoding.as_ref(), &mut faults);
        let map = self.map.iter().filter_map(|map| parse("map", Some(map), &mut faults)).collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Options {
            skip_bad: self.skip_bad,
            dry_run: self.dry_run,
            change: match mode {
                Mode::Replace | Mode::Mirror => Change::Replace,
                Mode::Merge => Change::Merge,
                Mode::Delete => Change::Delete,
            },
            format,
            dialect: Dialect { delimiter, encoding, map, not_worn: terms.not_worn.clone() },
            most_rows: Some(terms.rows),
            mirror: *mode == Mode::Mirror,
            limit: (!self.force).then(|| self.mirror_limit.unwrap_or(terms.mirror_limit)),
            plain_lines: false,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the feed's options are invalid")]
    Options(Vec<Fault>),
    /// The file is none of the table's.
    #[error("{0}")]
    File(String),
    #[error("{MOST} imports wait or run here already")]
    Full,
    #[error("the service is stopping")]
    Stopping,
    #[error("the feed is being fetched")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An import's result, or why it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportResult)]
pub struct JobResult {
    /// Why it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// New rows.
    pub added: u64,
    /// Rows that changed stored data.
    pub changed: u64,
    /// Rows that were already stored.
    pub unchanged: u64,
    /// Articles that `mode=mirror` retired.
    pub retired: u64,
    /// With `mode=delete`: articles or customers that were deleted, and ids that none had.
    pub deleted: u64,
    /// Ids to delete that none had.
    pub absent: u64,
    /// Entries of a product feed that are not for sale, not wearable, or the parents of variants.
    pub left_out: u64,
    /// Bad rows, which are not stored.
    pub bad: u64,
    /// The bad rows by kind, in the order of their first ones. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<ErrorKind>>,
    /// How many bad rows are of further kinds.
    pub other_bad: u64,
    /// Unusual values of good rows, and values of new articles that the live release does not know. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Finding>>,
}

/// The bad rows with one kind of error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportErrorKind)]
pub struct ErrorKind {
    /// How many there are.
    pub rows: u64,
    /// The first of them.
    pub first: Vec<LineError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportLineError)]
pub struct LineError {
    /// The line on which the row begins, from 1; in Parquet the number of the row.
    pub line: u64,
    /// The error in the line.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Cancelled,
    /// The process ends.
    Shutdown,
}

/// The jobs of this replica. Clones share them.
#[derive(Debug, Clone)]
pub struct Jobs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    releases: Arc<Releases>,
    profiles: Profiles,
    clock: Clock,
    terms: FeedTerms,
    /// Whose turn it is here: first come, first served.
    turn: tokio::sync::Mutex<()>,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    tasks: JoinSet<()>,
    stops: HashMap<ImportId, watch::Sender<Option<Stop>>>,
    is_stopping: bool,
}

#[derive(Debug, Default)]
struct Gauge {
    read: AtomicU64,
    total: AtomicU64,
    is_running: AtomicBool,
}

impl Gauge {
    fn progress(&self) -> Progress {
        Progress { read: self.read.load(Ordering::Relaxed), total: self.total.load(Ordering::Relaxed) }
    }

    fn state(&self) -> ImportState {
        if self.is_running.load(Ordering::Relaxed) { ImportState::Running } else { ImportState::Waiting }
    }
}

/// A job that is about to run.
struct Job {
    id: ImportId,
    author: Author,
    table: FeedTable,
    options: Options,
    /// Bytes of the file, if it is there.
    length: u64,
    stop: watch::Receiver<Option<Stop>>,
}

/// Where a job's file comes from.
enum Source {
    Opened(Opened),
    /// From elsewhere, while the job is there already. None if it is the file that was read before.
    Fetched(Pin<Box<dyn Future<Output = Result<Option<File>, String>> + Send>>),
}

#[derive(Debug)]
pub struct Ended {
    pub state: ImportState,
    pub failure: Option<String>,
}

impl Jobs {
    pub fn new(
        store: Store,
        releases: Arc<Releases>,
        profiles: Profiles,
        clock: Clock,
        terms: FeedTerms,
    ) -> Self {
        let (turn, running) = (tokio::sync::Mutex::new(()), Mutex::default());
        Self(Arc::new(Shared { store, releases, profiles, clock, terms, turn, running }))
    }

    /// Starts to import a file, which is open at its start and needs no name. What can be refused at once is.
    pub async fn start(
        &self,
        author: Author,
        feed: &FeedName,
        options: &FeedOptions,
        file: File,
    ) -> Result<ImportId, StartError> {
        let read = options.read(&self.0.terms).map_err(StartError::Options)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let opened = tokio::task::block_in_place(|| self.open(options.table, &read, file));
        let source = Source::Opened(opened.map_err(StartError::File)?);
        self.spawn(author, feed, options, read, (length, source)).await.map(|(id, _)| id)
    }

    /// Starts a job whose file is still to come, and tells how it ends.
    pub async fn fetch(
        &self,
        author: Author,
        feed: &FeedName,
        options: &FeedOptions,
        file: impl Future<Output = Result<Option<File>, String>> + Send + 'static,
    ) -> Result<(ImportId, oneshot::Receiver<Ended>), StartError> {
        let read = options.read(&self.0.terms).map_err(StartError::Options)?;
        self.spawn(author, feed, options, read, (0, Source::Fetched(Box::pin(file)))).await
    }

    fn open(&self, table: FeedTable, options: &Options, file: File) -> Result<Opened, String> {
        match file.metadata() {
            Err(error) => return Err(format!("the feed cannot be read: {error}")),
            Ok(metadata) if metadata.len() == 0 => {
                return Err("the feed is empty; expected a row for each of the table's".to_owned());
            }
            Ok(_) => {}
        }
        let (schema, now) = (self.0.releases.schema(), self.0.clock.now().into());
        // A feed's name is no file's, so it does not say the format.
        Opened::table(table, file, Path::new("the feed"), &schema, options, now)
            .map_err(|error| describe(&error))
    }

    async fn spawn(
        &self,
        author: Author,
        feed: &FeedName,
        options: &FeedOptions,
        read: Options,
        (length, source): (u64, Source),
    ) -> Result<(ImportId, oneshot::Receiver<Ended>), StartError> {
        match &*self.lock() {
            Running { is_stopping: true, .. } => return Err(StartError::Stopping),
            Running { stops, .. } if stops.len() >= MOST => return Err(StartError::Full),
            _ => {}
        }
        let kept = serde_json::to_value(options).expect("options are plain JSON");
        let (imports, now) = (self.0.store.by(author), self.0.clock.now().into());
        let id = imports.imports().add(feed.as_str(), options.table.as_str(), &kept, length, now).await?;
        let ((stop, stopped), (ended, told)) = (watch::channel(None), oneshot::channel());
        let job = Job { id, author, table: options.table, options: read, length, stop: stopped };
        let mut running = self.lock();
        if running.is_stopping {
            return Err(StartError::Stopping);
        }
        while running.tasks.try_join_next().is_some() {}
        running.stops.insert(id, stop);
        let jobs = self.clone();
        running.tasks.spawn(async move { jobs.run(job, source, ended).await });
        Ok((id, told))
    }

    /// Stops a job, on whatever replica it is. False if none with this id waits or runs.
    pub async fn cancel(&self, id: ImportId) -> Result<bool, StoreError> {
        let found = self.0.store.imports().cancel(id).await?;
        self.tell(id, Stop::Cancelled);
        Ok(found)
    }

    /// Undoes an import. False if it cannot be undone; `Busy` while another import runs.
    pub async fn undo(&self, author: Author, id: ImportId) -> Result<bool, StoreError> {
        let (shared, now) = (&*self.0, self.0.clock.now().into());
        let undone = shared.store.by(author).undo_import(Undo::Record(id), now, Duration::ZERO).await;
        shared.profiles.forget_all();
        shared.releases.apply_change().await;
        undone.map(|undone| undone.is_some())
    }

    /// Marks jobs whose process was killed, and removes what old imports kept, again and again.
    pub async fn watch(self) {
        let mut times = interval(LOOK);
        loop {
            times.tick().await;
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "cannot look for imports that were interrupted, or are a week old");
            }
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let (store, now) = (&self.0.store, self.0.clock.now().into());
        store.imports().interrupt_silent(now).await?;
        if store.has_old_imports(now).await? {
            store.clean_up_imports(now).await?;
        }
        Ok(())
    }

    /// Ends the jobs at the end of the process: what they wrote is taken back later.
    pub async fn stop(&self) {
        let mut tasks = {
            let mut running = self.lock();
            running.is_stopping = true;
            for stop in running.stops.values() {
                stop.send_replace(Some(Stop::Shutdown));
            }
            std::mem::take(&mut running.tasks)
        };
        if timeout(STOPPING, async { while tasks.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!(
                "imports that still ran were cut off; other replicas and the next start show them as interrupted"
            );
        }
    }

    fn tell(&self, id: ImportId, stop: Stop) {
        if let Some(sender) = self.lock().stops.get(&id) {
            sender.send_if_modified(|value| value.is_none() && value.replace(stop).is_none());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job to its end, and says every second how far it is.
    async fn run(self, job: Job, source: Source, ended: oneshot::Sender<Ended>) {
        let id = job.id;
        let gauge = Arc::new(Gauge { total: job.length.into(), ..Gauge::default() });
        let shared = &*self.0;
        let (table, dry_run) = (job.table, job.options.dry_run);
        let work = self.work(job, source, Arc::clone(&gauge));
        // Next to the work, which may have the only connection that writes.
        let beat = async {
            let mut beats = interval(BEAT);
            loop {
                beats.tick().await;
                self.beat(id, &gauge).await;
            }
        };
        let (state, result) = tokio::select! {
            ended = work => ended,
            () = beat => unreachable!("a heart beats until it is dropped"),
        };
        if state == ImportState::Done && !dry_run {
            shared.profiles.forget_all();
            shared.releases.apply_change().await;
        }
        let JobResult { added, changed, unchanged, bad, .. } = &result;
        tracing::info!(import = id.0, %table, %state, dry_run, added, changed, unchanged, bad, "an import ended");
        let (now, value) = (shared.clock.now().into(), json!(result));
        if let Err(error) = shared.store.imports().end(id, state, gauge.progress(), &value, now).await {
            tracing::warn!(%error, import = id.0, "cannot store how an import ended");
        }
        self.lock().stops.remove(&id);
        // Only a stored source waits for it, whose page has no list of bad rows.
        let first = result.errors.iter().flatten().flat_map(|kind| &kind.first).next();
        let first = first.map_or_else(String::new, |LineError { line, detail }| {
            format!("; the first is line {line}: {detail}")
        });
        let _ = ended.send(Ended { state, failure: result.failure.map(|reason| reason + &first) });
    }

    /// Says how far a job is, and looks whether someone cancels it.
    async fn beat(&self, id: ImportId, gauge: &Gauge) {
        let now = self.0.clock.now().into();
        match self.0.store.imports().report(id, gauge.state(), gauge.progress(), now).await {
            Ok(true) => self.tell(id, Stop::Cancelled),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, import = id.0, "cannot store how far an import is"),
        }
    }

    /// Waits for its file and its turn, and imports.
    async fn work(&self, job: Job, source: Source, gauge: Arc<Gauge>) -> (ImportState, JobResult) {
        let (shared, mut stop) = (&*self.0, job.stop.clone());
        let fetched = match source {
            Source::Opened(opened) => Ok(Some(opened)),
            Source::Fetched(file) => tokio::select! {
                file = file => file.and_then(|file| {
                    // A server's answer may be no feed, and private.
                    let open = |file| {
                        let opened = self.open(job.table, &job.options, file);
                        opened.map_err(|reason| format!("what the server sent is no such file: {}", without_values(&reason)))
                    };
                    file.map(|file| tokio::task::block_in_place(|| open(file))).transpose()
                }),
                stop = stopped(&mut stop) => return stopped_early(stop),
            },
        };
        let opened = match fetched {
            Ok(Some(opened)) => opened,
            Ok(None) => return (ImportState::Unchanged, JobResult::default()),
            Err(reason) => return failed(reason),
        };
        let turn = async {
            let (store, turn) = (shared.store.by(job.author), shared.turn.lock().await);
            loop {
                match Import::begin(&store, shared.clock.now().into(), Duration::ZERO).await {
                    Err(StoreError::Busy { .. }) => sleep(TRY).await,
                    begun => return begun.map(|import| (import, turn)),
                }
            }
        };
        let begun = tokio::select! {
            begun = turn => begun,
            stop = stopped(&mut stop) => return stopped_early(stop),
        };
        let (import, _turn) = match begun {
            Ok(begun) => begun,
            Err(error) => return failed(describe(&error.into())),
        };
        gauge.is_running.store(true, Ordering::Relaxed);
        self.beat(job.id, &gauge).await;
        let census = shared.releases.current().map(|live| Census::new(Arc::clone(live.serving.release())));
        let (send, ended) = oneshot::channel();
        let handle = Handle::current();
        let thread = thread::Builder::new().name("import".to_owned()).spawn(move || {
            give_way();
            let _ = send.send(handle.block_on(import_file(import, job, opened, census, gauge)));
        });
        if let Err(error) = thread {
            return failed(format!("no thread can be started: {error}"));
        }
        ended.await.unwrap_or_else(|_| failed("a bug ended the import; the log has more".to_owned()))
    }
}

/// Lets the threads that answer requests come first.
fn give_way() {
    /// A tenth of a normal thread's share.
    const NICE: i32 = 10;
    // On Linux this is about the calling thread alone.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

async fn stopped(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    match stop.wait_for(Option::is_some).await.map(|stop| *stop) {
        Ok(Some(stop)) => stop,
        // The sender lives as long as the job.
        _ => std::future::pending().await,
    }
}

async fn import_file(
    import: Import,
    job: Job,
    opened: Opened,
    mut census: Option<Census>,
    gauge: Arc<Gauge>,
) -> (ImportState, JobResult) {
    let Job { id, table, options, stop, .. } = job;
    let tell = |step: Step<'_>| match step {
        Step::Begins { total, .. } => gauge.total.store(total, Ordering::Relaxed),
        Step::Read(read) => gauge.read.store(read, Ordering::Relaxed),
        Step::Ended { .. } => {}
    };
    let mut waiting = stop.clone();
    let stopping = async move { stopped(&mut waiting).await == Stop::Cancelled };
    // A process that is killed after the commit leaves what it has done.
    let note = |import: &mut Import, report: &Report, imported: &Imported| {
        let mut result = JobResult::new(table, report, None);
        result.count(imported, options.change);
        import.note_result(id, &json!(result));
    };
    let done = opened.import(import, &options, census.as_mut(), &tell, stopping, note).await;
    let Outcome { report, end } = match done {
        Ok(outcome) => outcome,
        Err(error) => return failed(describe(&error)),
    };
    let mut result = JobResult::new(table, &report, census);
    let state = match end {
        End::Imported(imported) => {
            result.count(&imported, options.change);
            ImportState::Done
        }
        End::Cancelled => return stopped_early(stop.borrow().unwrap_or(Stop::Cancelled)),
        End::Refused(reason) => {
            result.failure = Some(name_parameters(&reason));
            ImportState::Failed
        }
        End::Stopped(error) => {
            result.failure = Some(describe(&error));
            ImportState::Failed
        }
    };
    (state, result)
}

fn failed(reason: String) -> (ImportState, JobResult) {
    (ImportState::Failed, JobResult { failure: Some(reason), ..JobResult::default() })
}

fn stopped_early(stop: Stop) -> (ImportState, JobResult) {
    let (state, reason) = match stop {
        Stop::Cancelled => (ImportState::Cancelled, "it was cancelled, and nothing was stored"),
        Stop::Shutdown => {
            (ImportState::Interrupted, "the service was stopped, and nothing was stored; send the feed again")
        }
    };
    (state, JobResult { failure: Some(reason.to_owned()), ..JobResult::default() })
}

/// The error for a caller. The flags of the command are parameters here.
fn describe(error: &ImportError) -> String {
    let mut text = match error {
        ImportError::Store(
            error @ (StoreError::Full
            | StoreError::DemoFull
            | StoreError::ReadOnly
            | StoreError::TooLarge { .. }),
        ) => error.to_string(),
        ImportError::Store(error) => {
            tracing::error!(%error, "an import failed");
            "the database failed, and nothing was stored; send the feed again. The service's log has the cause".to_owned()
        }
        error => error.to_string(),
    };
    text = name_parameters(&text);
    abbreviate(&mut text, 4 * LONGEST);
    text
}

fn without_values(text: &str) -> String {
    strip_values(text).trim_end_matches([' ', ',']).to_owned()
}

impl JobResult {
    fn new(table: FeedTable, report: &Report, census: Option<Census>) -> Self {
        // Of customers nothing is kept that an erasure would have to find.
        let quote = |text: &str| {
            shortened(if table == FeedTable::Articles { name_parameters(text) } else { without_values(text) })
        };
        let line = |error: &RowError| LineError { line: error.line, detail: quote(&error.reason) };
        let kind = |bad: &BadRows| ErrorKind {
            rows: bad.rows,
            first: bad.first_rows().take(QUOTED).map(line).collect(),
        };
        let errors: Vec<ErrorKind> = report.errors.iter().map(kind).collect();
        let listed: u64 = errors.iter().map(|kind| kind.rows).sum();
        Self {
            left_out: report.left_out,
            bad: report.bad,
            other_bad: report.bad - listed,
            errors: Some(errors),
            warnings: Some(list_warnings(report, census, quote)),
            ..Self::default()
        }
    }

    fn count(&mut self, imported: &Imported, change: Change) {
        let Counts { added, changed, unchanged } = imported.counts();
        if change == Change::Delete {
            (self.deleted, self.absent) = (changed, unchanged);
        } else {
            (self.added, self.changed, self.unchanged) = (added, changed, unchanged);
        }
        self.retired = imported.retired.unwrap_or_default();
    }
}

impl AppState {
    pub fn jobs(&self) -> &Jobs {
        self.part()
    }
}
