//! Customers' profiles, kept in memory for as long as they are surely true, and served older when the database
//! cannot be reached.
//!
//! A profile that was read within `fresh` is taken as it is, so a change made on another replica is seen that much
//! later at most; one made here is told by [`Profiles::forget`]. When the database does not answer, whoever was
//! read within `most_age` is served as they were, with the age, and everybody else is an error. Then one request at
//! a time finds out whether the database is back: the others do not wait for it.
//!
//! Knows the store; must not know HTTP.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    domain::{CustomerId, Features},
    store::{Store, StoreError},
};

/// How long a request waits for a profile before the database counts as out of reach.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a database that was out of reach is asked again.
const RETRY: Duration = Duration::from_millis(250);

/// Whose profile is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Most profiles; those that nobody asked for longest go first.
    pub most: usize,
    /// How long a profile is taken as it is.
    pub fresh: Duration,
    /// How old one may be that is served because the database cannot be reached.
    pub most_age: Duration,
}

/// What is known of a customer.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub features: Features,
    /// How old it is, where the database could not be asked whether it is still so.
    pub stale: Option<Duration>,
}

/// The profiles of a store's customers. Clones share what is kept.
#[derive(Debug, Clone)]
pub struct Profiles {
    store: Store,
    keep: Keep,
    /// Held for as long as it takes to look something up, never while the database is asked.
    kept: Arc<Mutex<Kept>>,
}

impl Profiles {
    pub fn new(store: Store, keep: Keep) -> Self {
        Self { store, keep, kept: Arc::default() }
    }

    /// None if there is no such customer.
    ///
    /// # Errors
    /// Among others if the database cannot be reached and the profile is not kept (`Unreachable`).
    pub async fn get(&self, id: &CustomerId, now: Instant) -> Result<Option<Profile>, StoreError> {
        let (entry, changes, may_ask) = {
            let mut kept = self.kept();
            let entry = kept.find(id, self.keep.most);
            (entry, kept.changes, kept.may_ask(now))
        };
        let age = entry.as_ref().map(|entry| now.saturating_duration_since(entry.read));
        if let Some(entry) = &entry
            && age < Some(self.keep.fresh)
        {
            return Ok(Some(entry.profile(None)));
        }
        let asked = if may_ask { self.ask(id, changes, now).await } else { Err(silent()) };
        match (asked, entry) {
            (Err(StoreError::Unreachable { .. }), Some(entry)) if age <= Some(self.keep.most_age) => {
                Ok(Some(entry.profile(age)))
            }
            (asked, _) => asked,
        }
    }

    /// The customer was changed or erased here: what was known of them is gone, and what is being read right now is
    /// not kept.
    pub fn forget(&self, id: &CustomerId) {
        let mut kept = self.kept();
        kept.changes += 1;
        kept.remove(id);
    }

    /// The same for everybody.
    pub fn forget_all(&self) {
        let mut kept = self.kept();
        kept.changes += 1;
        kept.young.clear();
        kept.old.clear();
    }

    async fn ask(&self, id: &CustomerId, changes: u64, now: Instant) -> Result<Option<Profile>, StoreError> {
        let found = timeout(PATIENCE, self.store.customers().get(id)).await.unwrap_or_else(|_| Err(silent()));
        let mut kept = self.kept();
        kept.ask_from = match found {
            Err(StoreError::Unreachable { .. }) => Some(Instant::now() + RETRY),
            _ => None,
        };
        let Some(customer) = found? else {
            kept.remove(id);
            return Ok(None);
        };
        // As of when it was asked for: it may have changed since.
        let entry = Entry { features: Arc::new(customer.features), read: now };
        let profile = entry.profile(None);
        if kept.changes == changes {
            kept.insert(customer.id, entry, self.keep.most);
        }
        Ok(Some(profile))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn silent() -> StoreError {
    StoreError::Unreachable { reason: "it did not answer within a second".into() }
}

/// Two generations: when the young ones are half of what may be kept they become the old ones, and the old ones
/// that nobody asked for since are gone.
#[derive(Debug, Default)]
struct Kept {
    young: HashMap<CustomerId, Entry>,
    old: HashMap<CustomerId, Entry>,
    /// How often something was forgotten.
    changes: u64,
    /// When a database that did not answer is asked again.
    ask_from: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Entry {
    features: Arc<Features>,
    read: Instant,
}

impl Entry {
    fn profile(&self, stale: Option<Duration>) -> Profile {
        Profile { features: Features::clone(&self.features), stale }
    }
}

impl Kept {
    /// Whoever is found is young again.
    fn find(&mut self, id: &CustomerId, most: usize) -> Option<Entry> {
        if let Some(entry) = self.young.get(id) {
            return Some(entry.clone());
        }
        let (id, entry) = self.old.remove_entry(id)?;
        self.insert(id, entry.clone(), most);
        Some(entry)
    }

    fn insert(&mut self, id: CustomerId, entry: Entry, most: usize) {
        self.old.remove(&id);
        self.young.insert(id, entry);
        if self.young.len() >= most.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
    }

    fn remove(&mut self, id: &CustomerId) {
        self.young.remove(id);
        self.old.remove(id);
    }

    /// Whether the database is worth asking. If it was silent, this caller finds out for the others.
    fn may_ask(&mut self, now: Instant) -> bool {
        match self.ask_from {
            Some(from) if now < from => false,
            Some(_) => {
                self.ask_from = Some(now + PATIENCE + RETRY);
                true
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{
        domain::{Customer, FeatureValue},
        store::Timestamp,
    };

    const KEEP: Keep = Keep { most: 4, fresh: Duration::from_secs(1), most_age: Duration::from_secs(60) };
    const SECOND: Duration = Duration::from_secs(1);

    fn id(number: usize) -> CustomerId {
        CustomerId::new(format!("c-{number}")).unwrap()
    }

    fn customer(number: usize, age: f64) -> Customer {
        let features = [("age".to_owned(), FeatureValue::Number(age))].into_iter().collect();
        Customer { id: id(number), features }
    }

    async fn put(store: &Store, customer: &Customer) {
        store.customers().put(customer, Timestamp::from_millis(0)).await.unwrap();
    }

    async fn with(customers: usize) -> (TempDir, Store, Profiles) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}/a.db", folder.path().display())).await.unwrap();
        for number in 0..customers {
            put(&store, &customer(number, 30.0)).await;
        }
        let profiles = Profiles::new(store.clone(), KEEP);
        (folder, store, profiles)
    }

    #[tokio::test]
    async fn a_change_is_seen_once_what_is_kept_is_no_longer_fresh() {
        let (_folder, store, profiles) = with(1).await;
        let now = Instant::now();
        let known = |age, stale| Ok(Some(Profile { features: customer(0, age).features, stale }));
        assert_eq!(profiles.get(&id(0), now).await, known(30.0, None));
        put(&store, &customer(0, 31.0)).await;
        assert_eq!(profiles.get(&id(0), now + SECOND / 2).await, known(30.0, None), "still fresh");
        assert_eq!(profiles.get(&id(0), now + SECOND).await, known(31.0, None));
        put(&store, &customer(0, 32.0)).await;
        profiles.forget(&id(0));
        assert_eq!(profiles.get(&id(0), now + SECOND).await, known(32.0, None), "a change made here");
        assert_eq!(profiles.get(&id(1), now).await, Ok(None));
    }

    #[tokio::test]
    async fn without_the_database_who_is_known_is_served_with_the_age() {
        let (_folder, store, profiles) = with(2).await;
        let now = Instant::now();
        let known = profiles.get(&id(0), now).await.unwrap().unwrap();
        store.close().await;
        let later = profiles.get(&id(0), now + 5 * SECOND).await.unwrap().unwrap();
        assert_eq!(later, Profile { stale: Some(5 * SECOND), ..known });
        for (number, when) in [(1, 5 * SECOND), (0, 61 * SECOND)] {
            let missing = profiles.get(&id(number), now + when).await;
            assert!(matches!(missing, Err(StoreError::Unreachable { .. })), "{number}: {missing:?}");
        }
    }

    #[tokio::test]
    async fn who_was_erased_is_gone_and_stays_gone() {
        let (_folder, store, profiles) = with(1).await;
        let now = Instant::now();
        profiles.get(&id(0), now).await.unwrap().unwrap();
        // A read that began before the erasure ends after it.
        let changes = profiles.kept().changes;
        let customer = id(0);
        let read = profiles.ask(&customer, changes, now);
        profiles.forget(&id(0));
        assert!(read.await.unwrap().is_some());
        store.customers().erase(&id(0)).await.unwrap();
        assert_eq!(profiles.get(&id(0), now).await, Ok(None));
    }

    #[tokio::test]
    async fn no_more_are_kept_than_may_be() {
        let (_folder, _store, profiles) = with(20).await;
        let now = Instant::now();
        for number in 0..20 {
            profiles.get(&id(number), now).await.unwrap().unwrap();
            profiles.get(&id(0), now).await.unwrap().unwrap();
            let kept = profiles.kept();
            assert!(kept.young.len() + kept.old.len() <= KEEP.most, "{number}");
        }
        let kept = profiles.kept();
        assert!(
            kept.young.contains_key(&id(0)) || kept.old.contains_key(&id(0)),
            "asked for again and again"
        );
    }

    #[tokio::test]
    async fn one_caller_at_a_time_asks_a_silent_database() {
        let (_folder, _store, profiles) = with(0).await;
        let now = Instant::now();
        let mut kept = profiles.kept();
        kept.ask_from = Some(now + RETRY);
        assert!(!kept.may_ask(now), "it was asked just now");
        assert!(kept.may_ask(now + RETRY));
        assert!(!kept.may_ask(now + RETRY), "another one is asking");
    }
}
