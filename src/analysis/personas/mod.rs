//! The latent personas of a release's methods: each article and each outfit is a mix of them.
//!
//! The mixes come from the models' answers for a blank next to the articles, not from their weights, so releases made
//! elsewhere work too. Asking about a whole catalogue takes seconds, so it happens once per release and method, in the
//! background, on first use, in small batches that do not delay completions. The result is kept for as long as the
//! release is served. Must not know HTTP or pages.

mod mixes;
mod portrait;

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use atelier_core::domain::Method;
use atelier_engine::inference::{Articles, Serving};
use futures_util::FutureExt;
use tokio::{sync::Semaphore, task::JoinSet};

pub use self::{
    mixes::{Mix, mean_mix, mixes_of},
    portrait::{Persona, Portrait},
};

use crate::{
    platform::db::{Store, StoreError},
    releases::followers::{Change, Followed, Follower},
};

/// The most stored outfits to search for typical ones.
pub const MOST_OUTFITS: u32 = 2_000;

#[derive(Debug)]
pub struct Personas {
    serving: Arc<Serving>,
    states: Arc<Mutex<BTreeMap<Method, State>>>,
    /// One method is computed at a time.
    turn: Arc<Semaphore>,
    /// The running computations. They end with the release.
    tasks: Mutex<JoinSet<()>>,
}

/// Before there is a release; it becomes its personas.
#[derive(Debug)]
pub struct NoPersonas;

impl Follower for NoPersonas {
    fn follow(self: Arc<Self>, change: Change<'_>) -> Followed<'_> {
        let personas: Arc<dyn Follower> = Arc::new(Personas::new(Arc::clone(&change.next.serving)));
        ready(Ok(Some(personas))).boxed()
    }
}

impl Follower for Personas {}

#[derive(Debug, Default)]
struct State {
    portrait: Option<Arc<Portrait>>,
    /// Answered and total questions during the computation.
    working: Option<(usize, usize)>,
    /// Whether the last attempt failed. The log says why.
    failed: bool,
}

#[derive(Debug, Clone)]
pub enum Progress {
    /// `done` of the questions are answered.
    Working {
        done: usize,
        of: usize,
    },
    Ready(Arc<Portrait>),
    /// The log says why; the next request tries again.
    Failed,
}

impl Personas {
    pub fn new(serving: Arc<Serving>) -> Self {
        let turn = Arc::new(Semaphore::new(1));
        Self { serving, states: Arc::default(), turn, tasks: Mutex::new(JoinSet::new()) }
    }

    /// The methods that have personas, in the methods' own order.
    pub fn methods(&self) -> Vec<Method> {
        self.serving.methods().filter(|method| self.serving.gives_personas(*method)).collect()
    }

    /// The method's portrait or its progress. Starts the computation if there is no portrait, or if outfits were added
    /// or removed; until that is done the old portrait is returned.
    pub async fn portrait(
        &self,
        method: Method,
        articles: &Arc<Articles>,
        store: &Store,
    ) -> Result<Progress, StoreError> {
        let stored = store.outfits().count().await?.min(MOST_OUTFITS.into());
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let state = states.entry(method).or_default();
        if std::mem::take(&mut state.failed) {
            return Ok(Progress::Failed);
        }
        let fresh = state.portrait.as_ref().is_some_and(|portrait| portrait.outfits as u64 == stored);
        if !fresh && state.working.is_none() {
            state.working = Some((0, self.serving.release().vocabulary().len()));
            self.begin(method, Arc::clone(articles), state.portrait.clone(), store.clone());
        }
        Ok(match (&state.portrait, state.working) {
            (Some(portrait), _) => Progress::Ready(Arc::clone(portrait)),
            (None, working) => {
                let (done, of) = working.unwrap_or_default();
                Progress::Working { done, of }
            }
        })
    }

    fn begin(&self, method: Method, articles: Arc<Articles>, before: Option<Arc<Portrait>>, store: Store) {
        let (serving, states, turn) =
            (Arc::clone(&self.serving), Arc::clone(&self.states), Arc::clone(&self.turn));
        let work = async move {
            let _turn = turn.acquire().await.expect("the semaphore is never closed");
            let progress = |done, of| {
                let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
                states.entry(method).or_default().working = Some((done, of));
            };
            let result =
                Portrait::new(&serving, &articles, method, before.as_deref(), &store, progress).await;
            let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
            let state = states.entry(method).or_default();
            state.working = None;
            match result {
                Ok(portrait) => state.portrait = Some(Arc::new(portrait)),
                Err(error) => {
                    tracing::error!(%method, %error, "cannot compute the personas");
                    state.failed = true;
                }
            }
        };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Drops finished tasks.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}
