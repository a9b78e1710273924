//! The state that all handlers share.

use std::{
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use atelier_core::{
    domain::Timestamp,
    util::{clock::Clock, fetch::Reach, notation::Notation, zone::Zone},
};
use atelier_files::NotWorn;
use axum::extract::FromRef;

use super::{CrossOrigins, Kind, Metrics, Problem, answers::Answers, conditions::Document, health::Health};
use crate::{
    catalogue::{changes::Copies, search::Synonyms},
    completion::{asking::Times, tickets::Tickets},
    config::{EventTerms, Limits, Networks, TRANSFER_BYTES},
    customers::profiles::Profiles,
    imports::{
        feeds::{Feeds, FetchLimits},
        jobs::Jobs,
    },
    outcomes::events::Recorder,
    people::{Access, RequireKey},
    platform::db::Store,
    releases::{LiveRelease, Releases, ServedSchema},
    telemetry::Traces,
};

/// The state that all handlers share. Every request clones it more than once, so it is one pointer.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct AppState(Arc<Shared>);

/// The fields of the state.
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct Parts {
    pub store: Store,
    pub profiles: Profiles,
    pub releases: Arc<Releases>,
    pub limits: Limits,
    /// Issues and opens completion ids.
    pub tickets: Tickets,
    /// For how long events matter.
    pub events: EventTerms,
    pub metrics: Metrics,
    pub access: Access,
    /// Sites whose pages may call the service.
    pub cross_origins: CrossOrigins,
    /// Proxies whose word about their caller counts.
    pub trusted_proxies: Networks,
    pub traces: Traces,
    pub clock: Clock,
    /// How pages write prices and dates.
    pub notation: Notation,
    /// In which people write times of rules.
    pub zone: Zone,
    /// Words that searches take as the same.
    pub synonyms: Synonyms,
    /// What product feeds have and nobody wears.
    pub not_worn: NotWorn,
    /// The attributes of articles that answers to publishable keys have.
    pub public_attributes: Arc<[String]>,
    /// Which servers may be asked for feeds.
    pub feed_reach: Reach,
    /// Names this process where replicas agree on who does something.
    pub process: String,
}

struct Shared {
    parts: Parts,
    jobs: Jobs,
    feeds: Feeds,
    health: Health,
    answers: Answers,
    published: OnceLock<Published>,
    /// The service was told to stop.
    stopping: AtomicBool,
}

/// The `OpenAPI` document, its page and the tools of agents, which the router makes once.
pub(crate) struct Published {
    pub(crate) openapi: Document,
    pub(crate) page: Document,
    pub(crate) tools: Vec<serde_json::Value>,
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0.parts
    }
}

impl AppState {
    pub fn new(parts: Parts) -> Self {
        let jobs = Jobs::new(
            parts.store.clone(),
            Arc::clone(&parts.releases),
            parts.profiles.clone(),
            parts.clock.clone(),
            parts.not_worn.clone(),
            parts.limits.bulk_rows,
        );
        let fetching = FetchLimits {
            reach: parts.feed_reach,
            bytes: parts.limits.bulk_bytes,
            within: parts.limits.stream(),
            stall_bytes: TRANSFER_BYTES as u64,
            stall: parts.limits.transfer(),
        };
        let feeds = Feeds::new(
            parts.store.clone(),
            jobs.clone(),
            parts.clock.clone(),
            fetching,
            parts.process.clone(),
        );
        Self(Arc::new(Shared {
            parts,
            jobs,
            feeds,
            health: Health::default(),
            answers: Answers::default(),
            published: OnceLock::new(),
            stopping: AtomicBool::new(false),
        }))
    }

    /// From now on `/readyz` tells load balancers to send new requests elsewhere.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }

    /// The feeds that are imported in the background.
    pub fn jobs(&self) -> &Jobs {
        &self.0.jobs
    }

    /// The feeds that the service fetches by itself.
    pub fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }

    pub(crate) fn health(&self) -> &Health {
        &self.0.health
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    pub(crate) fn publish(&self, published: Published) {
        // A second router makes the same.
        let _ = self.0.published.set(published);
    }

    pub(crate) fn published(&self) -> &Published {
        self.0.published.get().expect("the router publishes them; this is a bug")
    }

    /// Whether this is the demo, which says so on every page.
    pub(crate) fn is_demo(&self) -> bool {
        self.access.rule() == RequireKey::Demo
    }

    /// The live release, for one request to keep while it runs.
    pub(crate) fn live_release(&self) -> Result<Arc<LiveRelease>, Problem> {
        self.releases.current().ok_or_else(|| {
            let detail = "no release is live; make one with atelier-training, put it into the models folder and \
                          activate it";
            Problem::new(Kind::NoRelease, detail)
        })
    }

    pub(crate) fn schema(&self) -> ServedSchema {
        self.releases.schema()
    }

    /// Records events of the shop.
    pub(crate) fn recorder(&self) -> Recorder<'_> {
        let copies = Some(self.copies());
        Recorder { store: &self.store, tickets: &self.tickets, terms: self.events, copies }
    }

    /// What changes of articles and customers bring up to date.
    pub(crate) fn copies(&self) -> Copies<'_> {
        Copies { profiles: &self.profiles, releases: &self.releases }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    /// The times of a question that is asked now.
    pub(crate) fn times(&self) -> Times {
        let begun = Instant::now();
        Times { now: self.now(), begun, deadline: begun + self.limits.deadline() }
    }
}

impl FromRef<AppState> for Limits {
    fn from_ref(state: &AppState) -> Self {
        state.limits
    }
}
