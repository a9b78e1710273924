//! What the database said, remembered: taken as it is while it is fresh, and served older when the database cannot
//! be reached.
//!
//! When the database does not answer, whatever was read within `most_age` is served as it was, with its age, and
//! everything else is an error. Then one request at a time finds out whether the database is back: the others do not
//! wait for it. Knows what the store's errors mean, and not what is remembered.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::store::StoreError;

/// How long a request waits for an answer before the database counts as out of reach.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a database that was out of reach is asked again.
const RETRY: Duration = Duration::from_millis(250);

/// How much is remembered, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Most entries; those that nobody asked for longest go first.
    pub most: usize,
    /// How long one is taken as it is.
    pub fresh: Duration,
    /// How old one may be that is served because the database cannot be reached.
    pub most_age: Duration,
}

/// Something that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cached<V> {
    pub(crate) value: V,
    /// How old it is, where the database could not be asked whether it is still so.
    pub(crate) stale: Option<Duration>,
}

/// Clones share what is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Cache<K, V> {
    keep: Keep,
    /// Held for as long as it takes to look something up, never while the database is asked.
    kept: Arc<Mutex<Kept<K, V>>>,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, kept: Arc::new(Mutex::new(Kept::new())) }
    }

    /// `ask` asks the database; it is not even begun where that is not needed. None if there is nothing.
    ///
    /// # Errors
    /// Among others if the database cannot be reached and the answer is not remembered (`Unreachable`).
    pub(crate) async fn get(
        &self,
        key: &K,
        now: Instant,
        ask: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<Cached<V>>, StoreError> {
        let (entry, changes, may_ask) = {
            let mut kept = self.kept();
            let entry = kept.find(key, self.keep.most);
            let age = entry.as_ref().map(|entry| now.saturating_duration_since(entry.read));
            if let (Some(entry), Some(age)) = (&entry, age)
                && age < self.keep.fresh
            {
                return Ok(Some(Cached { value: entry.value.clone(), stale: None }));
            }
            (entry.zip(age), kept.changes, kept.may_ask(now))
        };
        let asked = if may_ask { self.ask(key, changes, now, ask).await } else { Err(silent()) };
        match (asked, entry) {
            (Err(StoreError::Unreachable { .. }), Some((entry, age))) if age <= self.keep.most_age => {
                Ok(Some(Cached { value: entry.value, stale: Some(age) }))
            }
            (asked, _) => Ok(asked?.map(|value| Cached { value, stale: None })),
        }
    }

    /// It changed: what was remembered is gone, and what is being read right now is not kept.
    pub(crate) fn forget(&self, key: &K) {
        let mut kept = self.kept();
        kept.changes += 1;
        kept.remove(key);
    }

    /// The same for everything.
    pub(crate) fn forget_all(&self) {
        let mut kept = self.kept();
        kept.changes += 1;
        kept.young.clear();
        kept.old.clear();
    }

    async fn ask(
        &self,
        key: &K,
        changes: u64,
        now: Instant,
        ask: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, StoreError> {
        let found = timeout(PATIENCE, ask).await.unwrap_or_else(|_| Err(silent()));
        let mut kept = self.kept();
        kept.ask_from = match found {
            Err(StoreError::Unreachable { .. }) => Some(Instant::now() + RETRY),
            _ => None,
        };
        let Some(value) = found? else {
            kept.remove(key);
            return Ok(None);
        };
        if kept.changes == changes {
            // As of when it was asked for: it may have changed since.
            let entry = Entry { value: value.clone(), read: now };
            kept.insert(key.clone(), entry, self.keep.most);
        }
        Ok(Some(value))
    }

    fn kept(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn silent() -> StoreError {
    StoreError::Unreachable { reason: "it did not answer within a second".into() }
}

/// Two generations: when the young ones are half of what may be kept they become the old ones, and the old ones
/// that nobody asked for since are gone.
#[derive(Debug)]
struct Kept<K, V> {
    young: HashMap<K, Entry<V>>,
    old: HashMap<K, Entry<V>>,
    /// How often something was forgotten.
    changes: u64,
    /// When a database that did not answer is asked again.
    ask_from: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    value: V,
    read: Instant,
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), changes: 0, ask_from: None }
    }

    /// What is found is young again.
    fn find(&mut self, key: &K, most: usize) -> Option<Entry<V>> {
        if let Some(entry) = self.young.get(key) {
            return Some(entry.clone());
        }
        let (key, entry) = self.old.remove_entry(key)?;
        self.insert(key, entry.clone(), most);
        Some(entry)
    }

    fn insert(&mut self, key: K, entry: Entry<V>, most: usize) {
        self.old.remove(&key);
        self.young.insert(key, entry);
        if self.young.len() >= most.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
    }

    fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
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
    use super::*;

    const KEEP: Keep = Keep { most: 4, fresh: Duration::from_secs(1), most_age: Duration::from_mins(1) };

    async fn read(recall: &Cache<u32, u32>, key: u32, now: Instant) -> Option<u32> {
        recall.get(&key, now, async { Ok(Some(key * 10)) }).await.unwrap().map(|recalled| recalled.value)
    }

    #[tokio::test]
    async fn no_more_is_kept_than_may_be() {
        let recall = Cache::new(KEEP);
        let now = Instant::now();
        for key in 0..20 {
            assert_eq!(read(&recall, key, now).await, Some(key * 10));
            assert_eq!(read(&recall, 0, now).await, Some(0));
            let kept = recall.kept();
            assert!(kept.young.len() + kept.old.len() <= KEEP.most, "{key}");
        }
        let kept = recall.kept();
        assert!(kept.young.contains_key(&0) || kept.old.contains_key(&0), "asked for again and again");
    }

    #[tokio::test]
    async fn what_was_read_before_a_change_is_not_kept() {
        let recall = Cache::new(KEEP);
        let now = Instant::now();
        // The change comes between the read and its end.
        let late = recall.get(&1, now, async {
            recall.forget(&1);
            Ok(Some(10))
        });
        assert!(late.await.unwrap().is_some());
        let gone = recall.get(&1, now, async { Ok(None) }).await;
        assert_eq!(gone, Ok(None), "the database is asked anew");
    }

    #[tokio::test]
    async fn one_caller_at_a_time_asks_a_silent_database() {
        let recall = Cache::<u32, u32>::new(KEEP);
        let now = Instant::now();
        let mut kept = recall.kept();
        kept.ask_from = Some(now + RETRY);
        assert!(!kept.may_ask(now), "it was asked just now");
        assert!(kept.may_ask(now + RETRY));
        assert!(!kept.may_ask(now + RETRY), "another one is asking");
    }
}
