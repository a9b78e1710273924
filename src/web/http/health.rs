//! What health checks answer from: what a background check saw last. So they wait for neither the database nor a model, and a
//! busy service is not taken for a broken one.

use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use atelier_engine::inference::AskError;
use tokio::time::{MissedTickBehavior, interval};

use super::{AppState, Problem};
use crate::store::StoreError;

const PERIOD: Duration = Duration::from_secs(1);

/// What is wrong, if anything is.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<Unready>>);

#[derive(Debug, Clone)]
enum Unready {
    Store(StoreError),
    Ask(AskError),
}

impl Health {
    /// What the last check found.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            None => Ok(()),
            Some(Unready::Store(error)) => Err(error.into()),
            Some(Unready::Ask(error)) => Err(error.into()),
        }
    }

    fn note(&self, found: Result<(), Unready>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found.err();
    }
}

/// Checks the database and the default method until the service ends.
pub(crate) async fn watch(state: AppState) -> Infallible {
    let mut times = interval(PERIOD);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        state.health().note(look(&state).await);
    }
}

async fn look(state: &AppState) -> Result<(), Unready> {
    state.store.ping().await.map_err(Unready::Store)?;
    // A handler says that no release is live.
    let Some(live) = state.releases.current() else { return Ok(()) };
    match live.serving.probe(&live.rows, live.choose(None).method, state.times().deadline).await {
        // A full queue means that the model answers: a load balancer must not remove a busy service.
        Ok(()) | Err(AskError::Full { .. }) => Ok(()),
        Err(error) => Err(Unready::Ask(error)),
    }
}
