//! Failed sign-ins and wrong old passwords, for the audit log.
//!
//! Anyone can fail as often as they like. So the log gets one entry a minute for each account and address, with the
//! number of attempts, and at most [`MOST`] entries a minute. Attempts that are refused before the password is computed
//! are not counted.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use atelier_core::domain::Timestamp;
use serde_json::json;

use super::{PersonId, background::Background};
use crate::platform::db::{Actor, Author, Entry, Name, SIGN_IN_FAILED, Store};

/// The most accounts and addresses a minute. The attempts on others are one entry.
const MOST: usize = 60;
const PAUSE: Duration = Duration::from_mins(1);

/// What was tried with a wrong password or link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Tried {
    Person(Name),
    /// By this signed-in person, who wants a new one.
    OldPassword(PersonId, Name),
    /// The name is not kept: it may be a password that was typed into the wrong field.
    UnknownName,
    Link,
    Others,
}

impl Tried {
    fn subject(&self) -> &str {
        match self {
            Self::Person(name) | Self::OldPassword(_, name) => name.as_str(),
            Self::UnknownName => "unknown name",
            Self::Link => "invalid link",
            Self::Others => "other names and addresses",
        }
    }

    fn action(&self) -> (&'static str, Actor) {
        match self {
            Self::OldPassword(person, _) => ("password.failed", Actor::Person(*person)),
            _ => (SIGN_IN_FAILED, Actor::Visitor),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Attempts {
    count: u32,
    last: Timestamp,
}

/// Clones share the waiting attempts.
#[derive(Debug, Clone)]
pub(super) struct Failures {
    store: Store,
    waiting: Background<(Tried, Option<IpAddr>), Attempts>,
    pause: Duration,
}

impl Failures {
    pub(super) fn new(store: Store) -> Self {
        Self { store, waiting: Background::default(), pause: PAUSE }
    }

    /// Counts an attempt. The first one is stored at once, the later ones of a minute together.
    pub(super) fn note(&self, tried: Tried, peer: Option<IpAddr>, now: Timestamp) {
        let key = (tried, peer);
        let key = if self.waiting.has_room(&key, MOST - 1) { key } else { (Tried::Others, None) };
        if self.add(key, Attempts { count: 1, last: now }) {
            tokio::spawn(self.clone().write());
        }
    }

    fn add(&self, key: (Tried, Option<IpAddr>), more: Attempts) -> bool {
        self.waiting.add(key, |before| {
            let before = before.map_or(0, |before| before.count);
            Attempts { count: before.saturating_add(more.count), ..more }
        })
    }

    async fn write(self) {
        while let Some((storing, failures)) = self.waiting.take().await {
            self.store(failures).await;
            drop(storing);
            tokio::time::sleep(self.pause).await;
        }
    }

    /// Stores what waits, at the end of the process.
    pub(super) async fn flush(&self) {
        self.store(self.waiting.take_all().await).await;
    }

    /// What cannot be stored waits again.
    async fn store(&self, failures: HashMap<(Tried, Option<IpAddr>), Attempts>) {
        for ((tried, peer), attempts) in failures {
            let (action, actor) = tried.action();
            let store = self.store.by(Author { actor, peer });
            let details = json!({"attempts": attempts.count});
            let entry = Entry::new(action, tried.subject(), details);
            if let Err(error) = store.audit().append(&entry, attempts.last).await {
                tracing::warn!(%error, "cannot store failed sign-ins; trying again in a minute");
                self.add((tried, peer), attempts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::db::AuditFilter;

    #[tokio::test]
    async fn many_attempts_are_few_entries_that_count_them_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}/a.db", folder.path().display())).await.unwrap();
        let failures = Failures { pause: Duration::from_millis(50), ..Failures::new(store.clone()) };
        let ada = Tried::Person(Name::new("Ada").unwrap());
        for number in 0..500_u32 {
            let peer = Some(IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
            failures.note(Tried::UnknownName, peer, Timestamp::from_millis(number.into()));
            failures.note(ada.clone(), None, Timestamp::from_millis(number.into()));
        }
        let counted = async || -> (usize, u64) {
            let entries = store.audit().list(&AuditFilter::default(), None, 1000).await.unwrap();
            let attempts = entries.iter().map(|entry| entry.details["attempts"].as_u64().unwrap());
            (entries.len(), attempts.sum())
        };
        let began = std::time::Instant::now();
        while counted().await.1 < 1000 {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", counted().await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (entries, attempts) = counted().await;
        // Two rounds: the notes before the task began, and those after.
        assert!(entries <= 2 * MOST && attempts == 1000, "{entries} entries, {attempts} attempts");
        let others = store.audit().list(&AuditFilter::default(), None, 1000).await.unwrap();
        assert!(others.iter().any(|entry| entry.subject == "other names and addresses"), "{others:?}");
        assert!(others.iter().all(|entry| entry.actor == Actor::Visitor));
        let again = Failures { pause: Duration::from_hours(1), ..Failures::new(store.clone()) };
        (0..3).for_each(|_| again.note(Tried::Link, None, Timestamp::from_millis(1)));
        again.flush().await;
        assert_eq!(counted().await.1, 1003, "the end of the process does not wait for the hour");
    }
}
