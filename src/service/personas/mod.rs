//! The latent personas of a release's methods: how each article and each outfit is mixed of them.
//!
//! Models say it when they are asked about a blank beside the articles; nothing is read out of their weights, so a
//! release that something else made is shown as well. Asking about a whole catalogue takes seconds, so it is done
//! once a release and method, in the background, when somebody first looks, a batch at a time so that completions
//! are not held up. What comes out is kept for as long as the release is served. Must not know HTTP or pages.

mod mixes;
mod portrait;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::Semaphore, task::JoinSet};

pub use mixes::{Mix, mix_of, mixes_of};
pub use portrait::{Persona, Portrait};

use crate::{
    domain::Method,
    models::engine::Serving,
    store::{Store, StoreError},
};

/// Most stored outfits that are looked at for the typical ones.
pub const MOST_OUTFITS: u32 = 2_000;

/// The personas of one release's methods.
#[derive(Debug)]
pub struct Personas {
    serving: Arc<Serving>,
    lines: Arc<Mutex<BTreeMap<Method, Line>>>,
    /// One method is computed at a time.
    turn: Arc<Semaphore>,
    /// What computes; it ends with the release.
    tasks: Mutex<JoinSet<()>>,
}

/// How far one method has come.
#[derive(Debug, Default)]
struct Line {
    portrait: Option<Arc<Portrait>>,
    /// Questions answered, and questions in all, while it is computed.
    working: Option<(usize, usize)>,
    /// Whether the last attempt came to nothing. The log says why.
    failed: bool,
}

/// What there is of a method's personas.
#[derive(Debug, Clone)]
pub enum Progress {
    /// Some of the questions are answered.
    Working {
        done: usize,
        of: usize,
    },
    Ready(Arc<Portrait>),
    /// The log says why; the next look tries again.
    Failed,
}

impl Personas {
    pub fn new(serving: Arc<Serving>) -> Self {
        let lines = Arc::default();
        Self { serving, lines, turn: Arc::new(Semaphore::new(1)), tasks: Mutex::new(JoinSet::new()) }
    }

    /// The methods that have personas, in the methods' own order.
    pub fn methods(&self) -> Vec<Method> {
        self.serving.methods().filter(|method| self.serving.gives_personas(*method)).collect()
    }

    /// What there is. Begins to compute what there is not, and what has become stale because outfits came or went;
    /// until then the old is shown.
    pub async fn of(&self, method: Method, store: &Store) -> Result<Progress, StoreError> {
        let stored = store.outfits().count().await?.min(MOST_OUTFITS.into());
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(method).or_default();
        if std::mem::take(&mut line.failed) {
            return Ok(Progress::Failed);
        }
        let fresh = line.portrait.as_ref().is_some_and(|portrait| portrait.outfits as u64 == stored);
        if !fresh && line.working.is_none() {
            line.working = Some((0, self.serving.release().vocabulary().len()));
            self.begin(method, line.portrait.clone(), store.clone());
        }
        Ok(match (&line.portrait, line.working) {
            (Some(portrait), _) => Progress::Ready(Arc::clone(portrait)),
            (None, working) => {
                let (done, of) = working.unwrap_or_default();
                Progress::Working { done, of }
            }
        })
    }

    fn begin(&self, method: Method, before: Option<Arc<Portrait>>, store: Store) {
        let (serving, lines, turn) =
            (Arc::clone(&self.serving), Arc::clone(&self.lines), Arc::clone(&self.turn));
        let work = async move {
            let _turn = turn.acquire().await.expect("nobody closes it; this is a bug");
            let told = |done, of| {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.entry(method).or_default().working = Some((done, of));
            };
            let made = Portrait::new(&serving, method, before.as_deref(), &store, told).await;
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            let line = lines.entry(method).or_default();
            line.working = None;
            match made {
                Ok(portrait) => line.portrait = Some(Arc::new(portrait)),
                Err(error) => {
                    tracing::error!(%method, %error, "the personas cannot be computed");
                    line.failed = true;
                }
            }
        };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}
