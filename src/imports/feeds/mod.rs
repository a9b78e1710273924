//! Stored sources: feeds that the service fetches by itself, on schedule or on request.
//!
//! Each replica looks every second which feeds are due, and fetches those whose lease it gets. A fetch is a job
//! (`import::jobs`), even if nothing comes of it. A source's secrets go to its own server only.

pub(crate) mod metrics;
mod schedule;
mod source;

use std::{
    fs::File,
    io::{BufWriter, Seek, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use atelier_core::{
    domain::{FeedName, Timestamp},
    util::{
        clock::Clock,
        fetch::{Address, Bounds, Fetched, Reach, Validators, fetch},
    },
};
use serde::Deserialize;
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use utoipa::IntoParams;

pub use self::{
    schedule::{Schedule, Times},
    source::{FeedSource, FeedStatus, LACKS_CREDENTIALS},
};
use super::{
    jobs::{Ended, Jobs, StartError},
    sql::{
        feeds::{Feed, FeedSeen, FeedState, LEASE},
        imports::{ImportId, ImportState},
    },
};
use crate::{
    config::{Limits, TRANSFER_BYTES},
    platform::{
        db::{Author, Store, StoreError},
        http::AppState,
    },
};

/// How often a replica looks for feeds that are due, and how often it renews a lease.
const LOOK: Duration = Duration::from_secs(1);
const RENEW: Duration = Duration::from_secs(10);
/// How often in a row a feed fails before it is an alert.
pub const ALERT: u32 = 2;
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
    /// Hold the leases.
    tasks: Mutex<JoinSet<()>>,
}

/// How a feed is fetched this time.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct FetchOptions {
    /// Read the file even if it has not changed.
    pub again: bool,
    /// Retire all missing articles, and remove all attributes that rows do not have.
    pub force: bool,
}

impl Feeds {
    /// `holder` is another text in each process.
    pub fn new(store: Store, jobs: Jobs, clock: Clock, limits: Limits, reach: Reach, holder: String) -> Self {
        let (listed, tasks) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { store, jobs, clock, limits, reach, holder, listed, tasks }))
    }

    /// Which servers may be asked.
    pub fn reach(&self) -> Reach {
        self.0.reach
    }

    /// Begins to fetch the feed, or gives the import for which it is being fetched already. None if there is no such feed.
    pub async fn fetch_now(
        &self,
        author: Author,
        name: &FeedName,
        how: FetchOptions,
    ) -> Result<Option<ImportId>, StartError> {
        let feeds = self.0.store.feeds();
        if let Some(mut claimed) = feeds.claim(name.as_str(), &self.0.holder, false, self.now()).await? {
            claimed.source.options.force = how.force;
            if how.again {
                claimed.state.seen = FeedSeen::default();
            }
            return self.begin(author, claimed).await.map(Some);
        }
        let feed = feeds.get(name.as_str()).await?;
        feed.map(|feed| feed.state.import.map(ImportId).ok_or(StartError::Busy)).transpose()
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
        let feeds = self.0.store.feeds().list().await?;
        self.listed().clone_from(&feeds);
        for feed in feeds.iter().filter(|feed| feed.is_due(now)) {
            let claimed = self.0.store.feeds().claim(feed.name.as_str(), &self.0.holder, true, now).await?;
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

    async fn begin(&self, author: Author, mut feed: Feed) -> Result<ImportId, StartError> {
        let seen = Arc::new(Mutex::new(feed.state.seen.clone()));
        let fetching = self.clone().fetch(feed.clone(), Arc::clone(&seen));
        feed.state.tried_at = Some(self.now().millis());
        let (import, ended) =
            match self.0.jobs.fetch(author, &feed.name, &feed.source.options, fetching).await {
                Ok(begun) => begun,
                Err(error) => {
                    self.finish(feed, Err(Some(error.to_string()))).await;
                    return Err(error);
                }
            };
        feed.state.import = Some(import.0);
        self.renew(&feed).await;
        let feeds = self.clone();
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { feeds.hold(feed, ended, &seen).await });
        Ok(import)
    }

    /// Holds the lease while the import lasts, and notes how it ended.
    async fn hold(&self, feed: Feed, ended: oneshot::Receiver<Ended>, seen: &Mutex<FeedSeen>) {
        let mut beats = interval(RENEW);
        tokio::pin!(ended);
        let ended = loop {
            tokio::select! {
                ended = &mut ended => break ended,
                _ = beats.tick() => self.renew(&feed).await,
            }
        };
        match ended {
            Ok(Ended { state: ImportState::Done | ImportState::Unchanged, .. }) => {
                let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                self.finish(feed, Ok(seen)).await;
            }
            // The process ends, and another one begins again when the lease has run out.
            Ok(Ended { state: ImportState::Interrupted, .. }) | Err(_) => {}
            // Someone did not want it, so nothing is wrong with it.
            Ok(Ended { state: ImportState::Cancelled, .. }) => self.finish(feed, Err(None)).await,
            Ok(Ended { failure, .. }) => self.finish(feed, Err(Some(failure.unwrap_or_default()))).await,
        }
    }

    async fn renew(&self, feed: &Feed) {
        self.note(feed, Some(self.now() + LEASE)).await;
    }

    /// Notes what came of a fetch, and gives the lease back.
    async fn finish(&self, mut feed: Feed, ended: Result<FeedSeen, Option<String>>) {
        let (state, now) = (&mut feed.state, Some(self.now().millis()));
        state.ended_at = now;
        match ended {
            Ok(seen) => {
                let before = std::mem::take(state);
                *state = FeedState { seen, succeeded_at: now, failures: 0, failure: None, ..before };
            }
            Err(Some(reason)) => {
                let (feed, failures) = (feed.name.as_str(), state.failures + 1);
                if failures >= ALERT {
                    tracing::error!(feed, failures, reason, "a feed failed again");
                } else {
                    tracing::warn!(feed, reason, "a feed failed");
                }
                (state.failures, state.failure) = (failures, Some(reason));
            }
            Err(None) => {}
        }
        self.note(&feed, None).await;
    }

    async fn note(&self, feed: &Feed, until: Option<Timestamp>) {
        if let Err(error) = self.0.store.feeds().note(feed, &self.0.holder, until).await {
            tracing::warn!(%error, feed = feed.name.as_str(), "cannot store the state of a feed");
        }
    }

    /// The feed's file, or none if it has not changed. `seen` becomes what the next fetch compares with.
    async fn fetch(self, feed: Feed, seen: Arc<Mutex<FeedSeen>>) -> Result<Option<File>, String> {
        let limits = self.0.limits;
        if feed.source.lacks_credentials() {
            return Err(LACKS_CREDENTIALS.to_owned());
        }
        let address = feed.source.address().ok_or("the stored address is damaged; store it again")?;
        // Sales begin and end without a change of the file, so it is read once a day.
        let now = self.now().millis();
        let last = feed.state.seen;
        let is_recent = last.read_at.is_some_and(|read| read / DAY == now / DAY);
        let known = if is_recent { last } else { FeedSeen::default() };
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

impl AppState {
    pub fn feeds(&self) -> &Feeds {
        self.part()
    }
}
