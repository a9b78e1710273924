//! The state that all handlers share.

use std::{
    any::type_name,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use atelier_core::{
    domain::Timestamp,
    util::{clock::Clock, notation::Notation, zone::Zone},
};
use axum::http::Extensions;

use super::{CrossOrigins, Metrics, conditions::Document};
use crate::{
    config::{Limits, Networks},
    platform::db::Store,
    telemetry::Traces,
};

/// The state that all handlers share. Every request clones it more than once, so it is one pointer.
///
/// Each feature adds methods that find its own part.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct AppState(Arc<Shared>);

/// Every feature uses it.
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct Ground {
    pub store: Store,
    pub limits: Limits,
    pub metrics: Metrics,
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
}

struct Shared {
    ground: Ground,
    /// The parts of features, by their types.
    parts: Extensions,
    published: OnceLock<Published>,
    stopping: AtomicBool,
}

/// The `OpenAPI` document, its page and the tools of agents, which the router makes once.
pub(crate) struct Published {
    pub(crate) openapi: Document,
    pub(crate) page: Document,
    pub(crate) tools: Vec<serde_json::Value>,
}

impl Deref for AppState {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.0.ground
    }
}

impl AppState {
    /// `app` puts it together: see `app::Parts`.
    pub(crate) fn of(ground: Ground, parts: Extensions) -> Self {
        let (published, stopping) = (OnceLock::new(), AtomicBool::new(false));
        Self(Arc::new(Shared { ground, parts, published, stopping }))
    }

    /// A feature's part, for its own methods.
    pub(crate) fn part<T: Send + Sync + 'static>(&self) -> &T {
        let part = self.0.parts.get();
        part.unwrap_or_else(|| panic!("the state has no {}", type_name::<T>()))
    }

    /// From now on `/readyz` tells load balancers to send new requests elsewhere.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn publish(&self, published: Published) {
        // A second router makes the same.
        let _ = self.0.published.set(published);
    }

    pub(crate) fn published(&self) -> &Published {
        self.0.published.get().expect("the router publishes them")
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().into()
    }
}
