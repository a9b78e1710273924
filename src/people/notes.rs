//! The notes stored apart from their requests: when keys and sessions were last used, and failed sign-ins. A database
//! that is locked, full or slow must neither fail nor delay a request that only reads.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use atelier_core::domain::Timestamp;
use serde_json::json;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    KeyId, PersonId,
    rate::{Rate, Rates, network},
};
use crate::platform::db::{Actor, Author, Entry, Name, SIGN_IN_FAILED, Store, StoreError, TokenHash};

/// The most notes that wait. Other uses are noted with the next request, other failures with the next one.
const MOST: u32 = 64;
/// Entries of failed sign-ins, of all callers: anyone can fail as often as they like.
const ENTRIES: Rate = Rate { burst: 60, every: Duration::from_secs(1) };
/// Those about one subject from one address, so that a stranger's do not take the place of others'.
const ENTRIES_OF_ONE: Rate = Rate { burst: 10, every: Duration::from_mins(1) };
/// After a failed write.
const PAUSE: Duration = Duration::from_mins(1);

/// A subject and the network of its caller.
type SubjectAt = (String, Option<IpAddr>);

/// Clones share what waits.
#[derive(Debug, Clone)]
pub(super) struct Notes {
    slots: Arc<Semaphore>,
    pause: Duration,
    /// By subject and address, and of all.
    entries: Arc<Mutex<Rates<Option<SubjectAt>>>>,
    /// Failures without an entry of their own.
    others: Arc<AtomicU32>,
    /// The last uses that are not stored yet.
    uses: Arc<Mutex<HashMap<Used, Timestamp>>>,
}

impl Default for Notes {
    fn default() -> Self {
        let slots = Arc::new(Semaphore::new(MOST as usize));
        Self { slots, pause: PAUSE, entries: Arc::default(), others: Arc::default(), uses: Arc::default() }
    }
}

impl Notes {
    /// Stores it soon, and tries again if that fails. False if too much waits.
    fn store<F: Future<Output = Result<(), StoreError>> + Send>(
        &self,
        store: impl Fn() -> F + Send + 'static,
    ) -> bool {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { return false };
        let pause = self.pause;
        tokio::spawn(async move {
            let _until_stored = slot;
            while let Err(error) = store().await {
                tracing::warn!(%error, "cannot store a use or a failed sign-in; trying again in a minute");
                sleep(pause).await;
            }
        });
        true
    }

    /// Notes a use. While an earlier one waits, the last one takes its place. `idle` is how long a session lasts without one.
    pub(super) fn used(&self, store: &Store, used: Used, idle: Duration, now: Timestamp) {
        if self.uses().insert(used, now).is_some() {
            return;
        }
        let (store, notes) = (store.clone(), self.clone());
        let is_noted = self.store(move || {
            let (store, notes) = (store.clone(), notes.clone());
            async move {
                let now = notes.uses()[&used];
                match used {
                    Used::Key(id) => store.api_keys().touch(id, now).await?,
                    Used::Session(token) => {
                        store.sessions().touch(&token, now).await?;
                        // Another replica may store a use later than it happened.
                        store.sessions().delete_ended(now, now - (idle + PAUSE)).await?;
                    }
                }
                notes.uses().remove(&used);
                Ok(())
            }
        });
        if !is_noted {
            self.uses().remove(&used);
        }
    }

    /// Locked only to look a use up.
    fn uses(&self) -> MutexGuard<'_, HashMap<Used, Timestamp>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry to the audit log. Too many at a time are counted, and are one entry with the next failure.
    pub(super) fn failed(&self, store: &Store, tried: Tried, peer: Option<IpAddr>, now: Timestamp) {
        let (action, actor, subject) = tried.entry();
        let (one, at) = (Some((subject.clone(), peer.map(network))), Instant::now());
        let counted = [(one, ENTRIES_OF_ONE), (None, ENTRIES)].into_iter().try_for_each(|(one, rate)| {
            self.entries.lock().unwrap_or_else(PoisonError::into_inner).take(one, 1, rate, at)
        });
        if counted.is_err() || !self.enter(store.by(Author { actor, peer }), action, subject, 1, now) {
            self.others.fetch_add(1, Ordering::Relaxed);
        } else {
            self.enter_others(store, now);
        }
    }

    fn enter_others(&self, store: &Store, now: Timestamp) {
        let others = self.others.swap(0, Ordering::Relaxed);
        let store = store.by(Author { actor: Actor::Visitor, peer: None });
        if others > 0
            && !self.enter(store, SIGN_IN_FAILED, "other names and addresses".to_owned(), others, now)
        {
            self.others.fetch_add(others, Ordering::Relaxed);
        }
    }

    fn enter(
        &self,
        store: Store,
        action: &'static str,
        subject: String,
        attempts: u32,
        now: Timestamp,
    ) -> bool {
        self.store(move || {
            let (store, subject) = (store.clone(), subject.clone());
            async move {
                let entry = Entry::new(action, &subject, json!({"attempts": attempts}));
                store.audit().append(&entry, now).await
            }
        })
    }

    /// Waits until everything is stored, at the end of the process.
    pub(super) async fn flush(&self, store: &Store, now: Timestamp) {
        self.enter_others(store, now);
        // The semaphore is never closed.
        let _ = self.slots.acquire_many(MOST).await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Used {
    Key(KeyId),
    Session(TokenHash),
}

/// The target of a wrong password or link.
#[derive(Debug)]
pub(super) enum Tried {
    Person(Name),
    /// By this signed-in person, who wants a new one.
    OldPassword(PersonId, Name),
    /// The name is not kept: it may be a password that was typed into the wrong field.
    UnknownName,
    Link,
}

impl Tried {
    /// The entry's action, actor and subject.
    fn entry(self) -> (&'static str, Actor, String) {
        match self {
            Self::Person(name) => (SIGN_IN_FAILED, Actor::Visitor, name.to_string()),
            Self::OldPassword(person, name) => ("password.failed", Actor::Person(person), name.to_string()),
            Self::UnknownName => (SIGN_IN_FAILED, Actor::Visitor, "unknown name".to_owned()),
            Self::Link => (SIGN_IN_FAILED, Actor::Visitor, "invalid link".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;

    use super::*;
    use crate::platform::db::AuditFilter;

    #[tokio::test]
    async fn failures_are_few_entries_that_count_them_all_whatever_fails() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/a.db", folder.path().display());
        let store = Store::open(&url).await.unwrap();
        let mut raw = sqlx::AnyConnection::connect(&url).await.unwrap();
        let refuse = "create trigger refuse before insert on audit_log begin select raise(abort, 'no'); end";
        sqlx::raw_sql(refuse).execute(&mut raw).await.unwrap();
        let notes = Notes { pause: Duration::from_millis(20), ..Notes::default() };
        let now = Timestamp::from_millis(60_000);
        for number in 0..500_u32 {
            notes.failed(&store, Tried::UnknownName, Some(number.to_be_bytes().into()), now);
        }
        assert!(notes.slots.available_permits() < 5, "they wait, and others are counted");
        sqlx::raw_sql("drop trigger refuse").execute(&mut raw).await.unwrap();
        while notes.slots.available_permits() < MOST as usize {
            sleep(Duration::from_millis(10)).await;
        }
        // The end of the process.
        notes.flush(&store, now).await;
        let entries = store.audit().list(&AuditFilter::default(), None, 1000).await.unwrap();
        let attempts: u64 = entries.iter().map(|entry| entry.details["attempts"].as_u64().unwrap()).sum();
        assert!(entries.len() < 70 && attempts == 500, "{} entries, {attempts} attempts", entries.len());
        assert_eq!(entries[0].subject, "other names and addresses");
        assert!(entries.iter().all(|entry| entry.actor == Actor::Visitor));
    }
}
