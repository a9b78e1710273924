//! Notes when keys and sessions were last used, apart from the requests that use them: a database that is locked, full or
//! slow must neither fail nor delay a request that only reads.

use std::{collections::HashMap, time::Duration};

use atelier_core::domain::Timestamp;

use super::{KeyId, background::Background};
use crate::platform::db::{Store, StoreError, TokenHash};

/// The most uses that wait, so that a locked database does not fill the memory. Others are dropped: they are noted with the
/// next request.
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
    pause: Duration,
}

impl Uses {
    pub(super) fn new(store: Store, idle: Duration) -> Self {
        Self { store, idle, waiting: Background::default(), pause: PAUSE }
    }

    pub(super) fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Notes a use, which is stored soon.
    pub(super) fn note(&self, used: Used, now: Timestamp) {
        if self.add(used, now) {
            tokio::spawn(self.clone().write());
        }
    }

    fn add(&self, used: Used, at: Timestamp) -> bool {
        self.waiting.has_room(&used, MOST)
            && self.waiting.add(used, |later| later.map_or(at, |later| later.max(at)))
    }

    async fn write(self) {
        while let Some((storing, uses)) = self.waiting.take().await {
            let stored = self.store(uses).await;
            drop(storing);
            if let Err(error) = stored {
                tracing::warn!(%error, "cannot store the last use of keys and sessions; trying again in a minute");
                tokio::time::sleep(self.pause).await;
            }
        }
    }

    /// Stores what waits, at the end of the process.
    pub(super) async fn flush(&self) {
        if let Err(error) = self.store(self.waiting.take_all().await).await {
            tracing::warn!(%error, "the last use of keys and sessions is lost");
        }
    }

    /// What cannot be stored waits again.
    async fn store(&self, uses: HashMap<Used, Timestamp>) -> Result<(), StoreError> {
        let latest = uses.values().max().copied();
        let mut uses = uses.into_iter();
        while let Some((used, at)) = uses.next() {
            let stored = match used {
                Used::Key(id) => self.store.api_keys().touch(id, at).await,
                Used::Session(token) => self.store.sessions().touch(&token, at).await,
            };
            if stored.is_err() {
                for (used, at) in uses.chain([(used, at)]) {
                    self.add(used, at);
                }
                return stored;
            }
        }
        if let Some(now) = latest {
            // Another replica may store a use later than it happened.
            self.store.sessions().delete_ended(now, now - (self.idle + PAUSE)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;

    use super::*;
    use crate::platform::db::Name;

    #[tokio::test]
    async fn a_use_that_could_not_be_stored_waits_for_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/a.db", folder.path().display());
        let store = Store::open(&url).await.unwrap();
        let now = Timestamp::from_millis(60_000);
        let mut keys = Vec::new();
        for label in ["one", "two", "three"] {
            let (label, token) = (Name::new(label).unwrap(), TokenHash::new(label));
            keys.push(store.api_keys().create(&token, &label, &[], None, now, None).await.unwrap().id);
        }
        let uses = Uses { pause: Duration::from_millis(20), ..Uses::new(store.clone(), PAUSE) };
        let mut raw = sqlx::AnyConnection::connect(&url).await.unwrap();
        let refuse = "create trigger refuse before update on api_keys begin select raise(abort, 'no'); end";
        sqlx::raw_sql(refuse).execute(&mut raw).await.unwrap();
        for key in &keys {
            uses.note(Used::Key(*key), now);
        }
        let flushed = Uses::new(store.clone(), PAUSE);
        flushed.add(Used::Key(keys[0]), now);
        flushed.flush().await;
        assert!(flushed.waiting.has_room(&Used::Key(keys[0]), 0), "it waits again");
        sqlx::raw_sql("drop trigger refuse").execute(&mut raw).await.unwrap();
        let stored = async || {
            let keys = store.api_keys().list().await.unwrap();
            keys.iter().filter(|key| key.last_used_at == Some(now)).count()
        };
        let began = std::time::Instant::now();
        while stored().await < keys.len() {
            assert!(began.elapsed() < Duration::from_secs(30), "{} of 3", stored().await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
