//! Notes when keys and sessions were last used, apart from the requests that use them: a database that is locked, full or
//! slow must neither fail nor delay a request that only reads.

use std::{collections::HashMap, time::Duration};

use super::background::Background;
use crate::{
    domain::Timestamp,
    store::{KeyId, Store, StoreError, TokenHash},
};

/// The most uses that wait, so that a locked database does not fill the memory. Later ones are dropped: they are noted
/// with the next request.
const MOST: usize = 10_000;
/// How long to wait after a failed write. Uses wait meanwhile, and the log gets one warning.
const PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Used {
    Key(KeyId),
    Session(TokenHash),
}

/// Clones share the waiting uses, each with its last time.
#[derive(Debug, Clone)]
pub(super) struct Uses {
    store: Store,
    /// How long a session lasts without a use.
    idle: Duration,
    waiting: Background<Used, Timestamp>,
}

impl Uses {
    pub(super) fn new(store: Store, idle: Duration) -> Self {
        Self { store, idle, waiting: Background::default() }
    }

    pub(super) fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Notes a use, which is stored soon. Uses that wait when the process ends are lost.
    pub(super) fn note(&self, used: Used, now: Timestamp) {
        if self.waiting.has_room(&used, MOST) && self.waiting.add(used, |_| now) {
            tokio::spawn(self.clone().write());
        }
    }

    async fn write(self) {
        while let Some(uses) = self.waiting.take() {
            if let Err(error) = self.store(uses).await {
                tracing::warn!(%error, "cannot store the last use of keys and sessions; trying again in a minute");
                tokio::time::sleep(PAUSE).await;
            }
        }
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
            // Another replica may store a use later than it happened.
            self.store.sessions().delete_ended(now, now - (self.idle + PAUSE)).await?;
        }
        Ok(())
    }
}
