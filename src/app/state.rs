//! Puts the state of the handlers together, from the parts of all features.

use std::sync::Arc;

use atelier_core::util::{clock::Clock, notation::Notation, zone::Zone};
use atelier_files::NotWorn;
use axum::http::Extensions;

use super::health::Health;
use crate::{
    completion::{
        answers::Answers, api::PublicAttributes, profiles::Profiles, sample::Sample, tickets::Tickets,
    },
    config::{self, EventTerms, Limits, Networks},
    customers,
    imports::{
        feeds::{Feeds, metrics::FeedCollector},
        jobs::{FeedTerms, Jobs},
    },
    outcomes::exposure::Exposure,
    people::Access,
    platform::{
        db::Store,
        http::{AppState, CrossOrigins, Ground, Metrics, serve::Work},
    },
    releases::Releases,
    telemetry::Traces,
};

/// The choices of a service's owner; `Ground` says more.
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct Parts {
    pub store: Store,
    pub profiles: Profiles,
    pub releases: Arc<Releases>,
    pub limits: Limits,
    /// Issues and opens completion ids.
    pub tickets: Tickets,
    pub events: EventTerms,
    pub access: Access,
    pub cross_origins: CrossOrigins,
    pub trusted_proxies: Networks,
    pub traces: Traces,
    pub clock: Clock,
    pub notation: Notation,
    pub zone: Zone,
    /// Gift cards and other things in feeds that nobody wears.
    pub not_worn: NotWorn,
    /// The attributes of articles that answers to publishable keys have.
    pub public_attributes: Arc<[String]>,
    pub feeds: config::Feeds,
    /// Names this process where replicas agree on who does something.
    pub process: String,
}

impl AppState {
    pub fn new(parts: Parts) -> Self {
        let Parts { store, profiles, releases, limits, clock, .. } = parts;
        let terms = FeedTerms {
            not_worn: parts.not_worn,
            rows: limits.bulk_rows,
            mirror_limit: parts.feeds.mirror_limit,
        };
        let jobs = Jobs::new(store.clone(), Arc::clone(&releases), profiles.clone(), clock.clone(), terms);
        let reach = parts.feeds.reach();
        let feeds = Feeds::new(store.clone(), jobs.clone(), clock.clone(), limits, reach, parts.process);
        let metrics = Metrics::new(|registry| {
            releases.register(registry);
            releases.follower::<Exposure>().register(registry);
            registry.register_collector(Box::new(FeedCollector(feeds.clone())));
        });
        let (cached, live) = (profiles.clone(), Arc::clone(&releases));
        let copies = customers::Copies(Arc::new([
            Box::new(move |id| cached.forget(id)),
            Box::new(move |id| live.follower::<Sample>().forget(id)),
        ]));
        let mut features = Extensions::new();
        features.insert(copies);
        features.insert(parts.access);
        features.insert(releases);
        features.insert(profiles);
        features.insert(parts.tickets);
        features.insert(Arc::new(Answers::default()));
        features.insert(PublicAttributes(parts.public_attributes));
        features.insert(parts.events);
        features.insert(jobs);
        features.insert(feeds);
        features.insert(Arc::new(Health::default()));
        features.insert(Work::here());
        let ground = Ground {
            store,
            limits,
            metrics,
            cross_origins: parts.cross_origins,
            trusted_proxies: parts.trusted_proxies,
            traces: parts.traces,
            clock,
            notation: parts.notation,
            zone: parts.zone,
        };
        Self::of(ground, features)
    }
}
