//! Stored sources: feeds that the service fetches by itself, on schedule or on request.
//!
//! Each replica looks every second which feeds are due, and fetches those whose lease it gets. A fetch is a job
//! (`import::jobs`), even if nothing comes of it. A source's secrets go to its own server only.

pub(crate) mod metrics;
mod schedule;

use std::{
    fs::File,
    io::{BufWriter, Seek, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use atelier_core::{
    domain::Timestamp,
    util::{
        clock::Clock,
        fetch::{Address, Bounds, Fetched, Reach, Validators, fetch},
    },
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

pub use self::schedule::{Schedule, Times};
use super::{
    jobs::{Ended, FeedName, FeedOptions, Jobs, StartError},
    sql::{
        feeds::{Feed, FeedSeen, FeedSource},
        imports::{ImportId, ImportState},
    },
};
use crate::{
    config::{Limits, TRANSFER_BYTES},
    platform::{
        db::{Author, ChangeError, Expected, Put, Store, StoreError, Version},
        fault::Fault,
        http::AppState,
    },
};

/// How often a replica looks for feeds that are due, and how often it renews a lease.
const LOOK: Duration = Duration::from_secs(1);
const RENEW: Duration = Duration::from_secs(10);
/// How often in a row a feed fails before it is an alert.
pub const ALERT: u32 = 2;
/// The longest address, and the longest header with credentials.
const LONGEST: usize = 2000;
/// What stands for a value of a query where an address is shown, and for credentials in a backup.
const HIDDEN: [&str; 2] = ["…", "%E2%80%A6"];
/// Why a feed of a restored backup is not fetched.
pub(super) const LACKS_CREDENTIALS: &str =
    "its credentials were left out of the backup that was restored; store the feed again with them";
const DAY: i64 = 86_400_000;

/// The stored sources, as this replica fetches them. Clones share them.
#[derive(Debug, Clone)]
pub struct Feeds(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    jobs: Jobs,
    clock: Clock,
    limits: Limits,
    reach: Reach,
    /// Names this process in leases.
    holder: String,
    /// As they were when this replica last looked.
    listed: Mutex<Vec<Feed>>,
    /// What holds leases.
    tasks: Mutex<JoinSet<()>>,
}

/// What an admin wants a source to be.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds secrets, which must not reach a log")]
pub struct Wanted {
    /// As it is shown, it stands for the stored one.
    pub url: String,
    pub authorization: Authorization,
    pub options: FeedOptions,
    pub schedule: Option<Schedule>,
}

/// The header `Authorization` for a source's server.
#[derive(Clone, Default)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub enum Authorization {
    /// The stored one, for the same server.
    #[default]
    Keep,
    Remove,
    Set(String),
}

/// Why a source is not stored.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    #[error("the source is invalid")]
    Faults(Vec<Fault>),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl Feeds {
    /// `holder` is another text in each process.
    pub fn new(store: Store, jobs: Jobs, clock: Clock, limits: Limits, reach: Reach, holder: String) -> Self {
        let (listed, tasks) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { store, jobs, clock, limits, reach, holder, listed, tasks }))
    }

    pub async fn put(
        &self,
        author: Author,
        name: &FeedName,
        wanted: Wanted,
        expected: &Expected,
    ) -> Result<(Put, Version), PutError> {
        let (store, now) = (self.0.store.by(author), self.now());
        let current = store.feeds().get(name.as_str()).await.map_err(ChangeError::from)?;
        let mut faults = Vec::new();
        let address = self.address(&wanted, current.as_ref().map(|current| &current.value.source));
        let address = address.map_err(|fault| faults.push(fault)).ok();
        let times = wanted.schedule.as_ref().map(Schedule::read).transpose();
        let times = times.map_err(|fault| faults.push(fault)).ok();
        if let Err(wrong) = wanted.options.check() {
            faults.extend(wrong);
        }
        let (Some(address), Some(times)) = (address, times.filter(|_| faults.is_empty())) else {
            return Err(PutError::Faults(faults));
        };
        let text = |json: serde_json::Result<String>| json.expect("it is plain JSON; this is a bug");
        let source = FeedSource {
            url: address.full().to_owned(),
            authorization: address.authorization().map(ToOwned::to_owned),
            options: text(serde_json::to_string(&wanted.options)),
            schedule: wanted.schedule.as_ref().map(|schedule| text(serde_json::to_string(schedule))),
        };
        let due = times.map(|times| times.next(now));
        let shown = address.to_string();
        Ok(store.feeds().put(name.as_str(), &source, &shown, due, expected, now).await?)
    }

    /// The address with its credentials, of which the stored ones may be meant.
    fn address(&self, wanted: &Wanted, current: Option<&FeedSource>) -> Result<Address, Fault> {
        let parse = |url: &str| {
            Address::parse(url, self.0.reach).map_err(|error| Fault::new("url", error.to_string()))
        };
        let lacks_header = current.and_then(|source| source.authorization.as_deref()).is_some_and(has_hidden);
        let current = current.and_then(stored_address);
        let given = match &current {
            Some(current) if current.to_string() == wanted.url && !has_hidden(current.full()) => {
                parse(current.full())?
            }
            _ if has_hidden(&wanted.url) => {
                let detail =
                    "the address has … in place of a value; write the value, or the address as it is shown";
                return Err(Fault::new("url", detail));
            }
            _ if wanted.url.len() > LONGEST => {
                return Err(Fault::new("url", format!("expected at most {LONGEST} bytes")));
            }
            _ => parse(&wanted.url)?,
        };
        match &wanted.authorization {
            Authorization::Set(_) if given.authorization().is_some() => {
                let detail = "the address has credentials already; give them in one place";
                Err(Fault::new("authorization", detail))
            }
            Authorization::Set(value) => {
                let fits = (1..=LONGEST).contains(&value.len()) && value.trim() == value;
                let set = given
                    .with_authorization(value)
                    .filter(|address| fits && address.authorization().is_some());
                set.ok_or_else(|| {
                    Fault::new("authorization", "expected a header's value, such as \"Bearer …\"")
                })
            }
            Authorization::Keep if given.authorization().is_none() => {
                let kept = current.filter(|current| current.same_origin(&given));
                if kept.is_some() && lacks_header {
                    return Err(Fault::new("authorization", LACKS_CREDENTIALS));
                }
                let kept = kept.as_ref().and_then(Address::authorization);
                Ok(kept.and_then(|kept| given.clone().with_authorization(kept)).unwrap_or(given))
            }
            Authorization::Keep | Authorization::Remove => Ok(given),
        }
    }

    /// Begins to fetch the feed, or gives the import for which it is being fetched already. None if there is no such feed.
    pub async fn fetch_now(&self, author: Author, name: &FeedName) -> Result<Option<ImportId>, StartError> {
        let feeds = self.0.store.feeds();
        if let Some(claimed) = feeds.claim(name.as_str(), &self.0.holder, false, self.now()).await? {
            return self.begin(author, claimed).await.map(Some);
        }
        let feed = feeds.get(name.as_str()).await?;
        feed.map(|feed| feed.value.import.ok_or(StartError::Busy)).transpose()
    }

    /// Fetches what is due, until the end of the process.
    pub async fn follow(self) {
        let mut times = interval(LOOK);
        times.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            times.tick().await;
            if let Err(error) = self.fetch_due(self.now()).await {
                tracing::warn!(%error, "cannot look for feeds that are due");
            }
        }
    }

    /// Begins to fetch what is due at this time.
    pub async fn fetch_due(&self, now: Timestamp) -> Result<(), StoreError> {
        let feeds: Vec<Feed> =
            self.0.store.feeds().list().await?.into_iter().map(|feed| feed.value).collect();
        self.listed().clone_from(&feeds);
        for feed in feeds.iter().filter(|feed| feed.is_due(now)) {
            let claimed = self.0.store.feeds().claim(&feed.name, &self.0.holder, true, now).await?;
            if let Some(claimed) = claimed {
                // Why it was not begun is stored with the feed.
                let _ = self.begin(Author::SERVICE, claimed).await;
            }
        }
        Ok(())
    }

    /// The feeds as this replica saw them in the last second.
    pub fn listed(&self) -> MutexGuard<'_, Vec<Feed>> {
        self.0.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, author: Author, feed: Feed) -> Result<ImportId, StartError> {
        let seen = Arc::new(Mutex::new(feed.seen.clone()));
        let begun = match (FeedName::new(&feed.name), serde_json::from_str(&feed.source.options)) {
            (Ok(name), Ok(options)) => {
                let fetching = self.clone().fetch(feed.clone(), Arc::clone(&seen));
                self.0.jobs.fetch(author, &name, &options, fetching).await
            }
            _ => Err(StartError::File("the stored source is damaged; store it again".to_owned())),
        };
        let (import, ended) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.finish(&feed, Err(Some(&error.to_string()))).await;
                return Err(error);
            }
        };
        self.renew(&feed, import).await;
        let feeds = self.clone();
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { feeds.hold(feed, import, ended, &seen).await });
        Ok(import)
    }

    /// Holds the lease while the import lasts, and notes how it ended.
    async fn hold(
        &self,
        feed: Feed,
        import: ImportId,
        ended: oneshot::Receiver<Ended>,
        seen: &Mutex<FeedSeen>,
    ) {
        let mut beats = interval(RENEW);
        tokio::pin!(ended);
        let ended = loop {
            tokio::select! {
                ended = &mut ended => break ended,
                _ = beats.tick() => self.renew(&feed, import).await,
            }
        };
        match ended {
            Ok(Ended { state: ImportState::Done | ImportState::Unchanged, .. }) => {
                let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                self.finish(&feed, Ok(&seen)).await;
            }
            // The process ends, and another one begins again when the lease has run out.
            Ok(Ended { state: ImportState::Interrupted, .. }) | Err(_) => {}
            // Someone did not want it, so nothing is wrong with it.
            Ok(Ended { state: ImportState::Cancelled, .. }) => self.finish(&feed, Err(None)).await,
            Ok(Ended { failure, .. }) => self.finish(&feed, Err(Some(&failure.unwrap_or_default()))).await,
        }
    }

    async fn renew(&self, feed: &Feed, import: ImportId) {
        let renewed = self.0.store.feeds().renew(&feed.name, &self.0.holder, import, self.now()).await;
        if let Err(error) = renewed {
            tracing::warn!(%error, feed = feed.name, "cannot renew the lease of a feed");
        }
    }

    async fn finish(&self, feed: &Feed, ended: Result<&FeedSeen, Option<&str>>) {
        let schedule = feed.source.schedule.as_deref();
        let schedule: Option<Schedule> = schedule.and_then(|text| serde_json::from_str(text).ok());
        let due = schedule.and_then(|schedule| schedule.read().ok()).map(|times| times.next(self.now()));
        match ended {
            Err(Some(reason)) if feed.failures + 1 >= ALERT => {
                tracing::error!(
                    feed = feed.name,
                    failures = feed.failures + 1,
                    reason,
                    "a feed failed again"
                );
            }
            Err(Some(reason)) => tracing::warn!(feed = feed.name, reason, "a feed failed"),
            Ok(_) | Err(None) => {}
        }
        let feeds = self.0.store.feeds();
        if let Err(error) = feeds.finish(feed, &self.0.holder, ended, due, self.now()).await {
            tracing::warn!(%error, feed = feed.name, "cannot store the result of a feed");
        }
    }

    /// The feed's file, or none if it has not changed. `seen` becomes what the next fetch compares with.
    async fn fetch(self, feed: Feed, seen: Arc<Mutex<FeedSeen>>) -> Result<Option<File>, String> {
        let limits = self.0.limits;
        if feed.source.lacks_credentials() {
            return Err(LACKS_CREDENTIALS.to_owned());
        }
        let address = stored_address(&feed.source).ok_or("the stored address is damaged; store it again")?;
        // Sales begin and end without a change of the file, so it is read once a day.
        let now = self.now();
        let is_recent = feed.seen.read_at.is_some_and(|read| read.millis() / DAY == now.millis() / DAY);
        let known = if is_recent { feed.seen } else { FeedSeen::default() };
        let validators = Validators { etag: known.etag.clone(), last_modified: known.last_modified.clone() };
        let bounds = Bounds {
            reach: self.0.reach,
            bytes: limits.bulk_bytes,
            deadline: Instant::now() + limits.stream(),
            stall: limits.transfer(),
            stall_bytes: TRANSFER_BYTES as u64,
        };
        let (send, fetched) = oneshot::channel();
        // A thread of its own does not delay the end of the process.
        let thread = thread::Builder::new().name("fetch".to_owned()).spawn(move || {
            let _ = send.send(fetch_file(&address, &validators, bounds));
        });
        thread.map_err(|error| format!("no thread can be started: {error}"))?;
        let (fetched, file) = fetched.await.map_err(|_| "a bug ended the fetch; the log has more")??;
        let Fetched::Written { validators: Validators { etag, last_modified }, sha256 } = fetched else {
            return Ok(None);
        };
        let is_same = known.sha256.as_deref() == Some(&*sha256);
        let read_at = if is_same { known.read_at } else { Some(now) };
        *seen.lock().unwrap_or_else(PoisonError::into_inner) =
            FeedSeen { etag, last_modified, sha256: Some(sha256), read_at };
        Ok((!is_same).then_some(file))
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now().into()
    }
}

/// Fetches to a file without a name, of which nothing is left even if the process is killed.
fn fetch_file(address: &Address, validators: &Validators, bounds: Bounds) -> Result<(Fetched, File), String> {
    let disk = |error: std::io::Error| format!("the file cannot be written to a temporary file: {error}");
    let mut file = tempfile::tempfile().map_err(disk)?;
    let mut out = BufWriter::new(&file);
    let fetched = fetch(address, validators, bounds, &mut out).map_err(|error| error.to_string())?;
    out.flush().map_err(disk)?;
    drop(out);
    file.rewind().map_err(disk)?;
    Ok((fetched, file))
}

/// The stored address. Whether it may be asked is checked with each request.
pub fn stored_address(source: &FeedSource) -> Option<Address> {
    let address = Address::parse(&source.url, Reach::Private).ok()?;
    match &source.authorization {
        Some(value) => address.with_authorization(value),
        None => Some(address),
    }
}

impl FeedSource {
    /// The source in a backup, with … in place of each secret.
    pub(super) fn without_credentials(self) -> Self {
        let [hidden, _] = HIDDEN.map(ToOwned::to_owned);
        let url = stored_address(&self).map_or(hidden.clone(), |address| address.to_string());
        Self { url, authorization: self.authorization.map(|_| hidden), ..self }
    }

    pub fn has_credentials(&self) -> bool {
        self.authorization.as_deref().is_some_and(|value| !has_hidden(value))
    }

    /// Whether the source is of a backup and must be stored again.
    pub fn lacks_credentials(&self) -> bool {
        has_hidden(&self.url) || self.authorization.as_deref().is_some_and(has_hidden)
    }
}

fn has_hidden(text: &str) -> bool {
    HIDDEN.iter().any(|hidden| text.contains(hidden))
}

impl AppState {
    /// The feeds that the service fetches by itself.
    pub fn feeds(&self) -> &Feeds {
        self.part()
    }
}
