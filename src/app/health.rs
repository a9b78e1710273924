//! Health checks answer with what a background check saw last. They wait for neither the database nor a model, so a busy service
//! does not look broken.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use atelier_engine::inference::AskError;
use tokio::time::{MissedTickBehavior, interval};

use crate::platform::{
    db::StoreError,
    http::{AppState, Problem},
};

const PERIOD: Duration = Duration::from_secs(1);

/// The faults, if any, of the database and of the default method.
#[derive(Debug, Default)]
pub(crate) struct Health {
    store: Mutex<Option<StoreError>>,
    model: Mutex<Option<AskError>>,
}

impl Health {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if let Some(error) = lock(&self.store).clone() {
            return Err(error.into());
        }
        lock(&self.model).clone().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Locked only to read or replace it.
fn lock<E>(found: &Mutex<Option<E>>) -> MutexGuard<'_, Option<E>> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks the database and the default method until the service ends. They do not wait for each other: a busy model may
/// take seconds.
pub(crate) async fn watch(state: AppState) -> Infallible {
    let health = state.part::<Arc<Health>>();
    tokio::select! {
        never = keep_checking(&health.store, || state.store.ping()) => never,
        never = keep_checking(&health.model, || probe(&state)) => never,
    }
}

async fn keep_checking<E, F: Future<Output = Result<(), E>>>(
    found: &Mutex<Option<E>>,
    check: impl Fn() -> F,
) -> Infallible {
    let mut times = interval(PERIOD);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let error = check().await.err();
        *lock(found) = error;
    }
}

async fn probe(state: &AppState) -> Result<(), AskError> {
    // A handler says that no release is live.
    let Some(live) = state.releases().current() else { return Ok(()) };
    match live.serving.probe(&live.rows, live.default_method(), state.times().deadline).await {
        // A full queue means that the model answers: a load balancer must not remove a busy service.
        Err(AskError::Full { .. }) => Ok(()),
        answer => answer,
    }
}
