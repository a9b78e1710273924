//! Whether programs need an API key: by the setting, and by the demo's mark in the database.

use std::time::{Duration, Instant};

use super::Access;
use crate::{
    service::cache::{Cache, Keep},
    store::{Store, StoreError},
};

/// When programs on this machine need an API key. Other programs always do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequireKey {
    /// Unless the database holds only the demo world.
    #[default]
    Auto,
    Always,
    Never,
}

/// The rule, with the mark as last read.
#[derive(Debug, Clone)]
pub(super) struct Keyless {
    rule: RequireKey,
    /// Has an entry while the mark is there.
    mark: Cache<(), ()>,
}

/// A mark that another process cleared counts for a second more; while the database cannot be reached, for ten minutes,
/// as API keys do.
const MARK: Keep = Keep { most: 2, fresh: Duration::from_secs(1), most_age: Duration::from_mins(10) };

impl Keyless {
    pub(super) fn new(rule: RequireKey) -> Self {
        Self { rule, mark: Cache::new(MARK) }
    }

    /// Reads the mark again at the next request, because this process may have cleared it.
    pub(super) fn forget_mark(&self) {
        self.mark.forget_all();
    }

    async fn admits(&self, store: &Store, now: Instant) -> Result<bool, StoreError> {
        match self.rule {
            RequireKey::Always => Ok(false),
            RequireKey::Never => Ok(true),
            RequireKey::Auto => {
                let read = async { Ok(store.settings().is_demo().await?.then_some(())) };
                Ok(self.mark.get(&(), now, read).await?.is_some())
            }
        }
    }
}

impl Access {
    /// Requires keys by another rule than always.
    pub fn require_key(self, rule: RequireKey) -> Self {
        Self { keyless: Keyless::new(rule), ..self }
    }

    pub fn rule(&self) -> RequireKey {
        self.keyless.rule
    }

    /// Whether programs on this machine may call the API without a key now.
    pub async fn admits_keyless(&self) -> Result<bool, StoreError> {
        self.keyless.admits(&self.store, Instant::now()).await
    }

    /// To be called after an import: it may have cleared the demo's mark.
    pub fn forget_demo_mark(&self) {
        self.keyless.forget_mark();
    }
}
