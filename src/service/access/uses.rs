//! Notes when keys and sessions were last used, apart from the requests that use them: a database that is locked, full or
//! slow must neither fail nor delay a request that only reads.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    domain::Timestamp,
    store::{KeyId, Store, StoreError, TokenHash},
};

/// The most uses that wait to be stored, so that a locked database does not fill the memory. Later ones are dropped: they
/// are noted with the next request.
const MOST: usize = 10_000;
/// How long to wait after a failed write. Uses wait meanwhile, and the log gets one warning.
const PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Used {
    Key(KeyId),
    Session(TokenHash),
}

/// Clones share the waiting uses.
#[derive(Debug, Clone)]
pub(super) struct Uses {
    store: Store,
    /// Locked only to add or take uses, never during a write.
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The last use of each.
    uses: HashMap<Used, Timestamp>,
    /// Whether a task is writing. There is at most one, and it ends when nothing waits.
    writing: bool,
}

impl Uses {
    pub(super) fn new(store: Store) -> Self {
        Self { store, waiting: Arc::default() }
    }

    /// Notes a use, which is stored soon. Uses that wait when the process ends are lost.
    pub(super) fn note(&self, used: Used, now: Timestamp) {
        let mut waiting = self.waiting();
        if waiting.uses.len() < MOST || waiting.uses.contains_key(&used) {
            waiting.uses.insert(used, now);
        }
        if !mem::replace(&mut waiting.writing, true) {
            tokio::spawn(self.clone().write());
        }
    }

    async fn write(self) {
        while let Some(uses) = self.take() {
            if let Err(error) = self.store(uses).await {
                tracing::warn!(%error, "cannot store the last use of keys and sessions; trying again in a minute");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn take(&self) -> Option<HashMap<Used, Timestamp>> {
        let mut waiting = self.waiting();
        waiting.writing = !waiting.uses.is_empty();
        waiting.writing.then(|| mem::take(&mut waiting.uses))
    }

    async fn store(&self, uses: HashMap<Used, Timestamp>) -> Result<(), StoreError> {
        let latest = uses.values().max().copied();
        for (used, at) in uses {
            match used {
                Used::Key(id) => self.store.api_keys().touch(id, at).await?,
                Used::Session(token) => self.store.sessions().touch(&token, at).await?,
            }
        }
        if let Some(now) = latest {
            self.store.sessions().delete_expired(now).await?;
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
