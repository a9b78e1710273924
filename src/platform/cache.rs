//! A cache of database rows. Fresh rows are served without a query, stale ones only while the database cannot be
//! reached.
//!
//! When the database does not answer, rows read within `most_age` are served with their age; everything else is an
//! error. Knows the meaning of the store's errors, but not of the rows.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::db::StoreError;
use crate::config::Keep;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cached<V> {
    pub(crate) value: V,
    /// Its age, if the database could not be reached to confirm it.
    pub(crate) stale: Option<Duration>,
}

/// Clones share the entries.
#[derive(Debug, Clone)]
pub(crate) struct Cache<K, V> {
    keep: Keep,
    weigh: fn(&V) -> usize,
    /// Locked only to look an entry up, never during a query.
    entries: Arc<Mutex<Entries<K, V>>>,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// `weigh` gives an entry's part of the most that is kept.
    pub(crate) fn new(keep: Keep, weigh: fn(&V) -> usize) -> Self {
        Self { keep, weigh, entries: Arc::new(Mutex::new(Entries::new())) }
    }

    /// The row with this key, if there is one. `query` reads it from the database, only if needed, and is given the row that
    /// is no longer fresh.
    ///
    /// # Errors
    /// `Unreachable` if the database cannot be reached and the row is not cached; other database errors.
    pub(crate) async fn get<F: Future<Output = Result<Option<V>, StoreError>>>(
        &self,
        key: &K,
        now: Instant,
        query: impl FnOnce(Option<V>) -> F,
    ) -> Result<Option<Cached<V>>, StoreError> {
        let (entry, changes) = {
            let mut entries = self.entries();
            let entry = entries.find(key, self.keep.most);
            let age = entry.as_ref().map(|entry| now.saturating_duration_since(entry.read));
            if let (Some(entry), Some(age)) = (&entry, age)
                && age < self.keep.fresh
            {
                return Ok(Some(Cached { value: entry.value.clone(), stale: None }));
            }
            (entry.zip(age), entries.changes)
        };
        let query = query(entry.as_ref().map(|(entry, _)| entry.value.clone()));
        match (self.query(key, changes, now, query).await, entry) {
            (Err(StoreError::Unreachable { .. }), Some((entry, age))) if age <= self.keep.most_age => {
                Ok(Some(Cached { value: entry.value, stale: Some(age) }))
            }
            (result, _) => Ok(result?.map(|value| Cached { value, stale: None })),
        }
    }

    /// Drops a changed row. The result of a query that is running now is not cached either.
    pub(crate) fn forget(&self, key: &K) {
        let mut entries = self.entries();
        entries.changes += 1;
        entries.remove(key);
    }

    /// Like [`Cache::forget`], for all rows.
    pub(crate) fn forget_all(&self) {
        let mut entries = self.entries();
        entries.changes += 1;
        *entries = Entries { changes: entries.changes, ..Entries::new() };
    }

    async fn query(
        &self,
        key: &K,
        changes: u64,
        now: Instant,
        query: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, StoreError> {
        let found = query.await?;
        let mut entries = self.entries();
        let Some(value) = found else {
            entries.remove(key);
            return Ok(None);
        };
        if entries.changes == changes {
            // Its age counts from the start of the query: the row may have changed since.
            let entry = Entry { weight: (self.weigh)(&value), value: value.clone(), read: now };
            entries.insert(key.clone(), entry, self.keep.most);
        }
        Ok(Some(value))
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two generations: when the young entries weigh half of the limit they become the old ones, and old entries that were
/// not used since are dropped.
#[derive(Debug)]
struct Entries<K, V> {
    young: HashMap<K, Entry<V>>,
    old: HashMap<K, Entry<V>>,
    /// Weight added to the young ones.
    weight: usize,
    /// The number of calls to `forget` and `forget_all`.
    changes: u64,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    value: V,
    weight: usize,
    read: Instant,
}

impl<K: Eq + Hash, V: Clone> Entries<K, V> {
    fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, changes: 0 }
    }

    /// An old entry that is found becomes young again.
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
        if self.weight + entry.weight > most / 2 {
            (self.old, self.weight) = (std::mem::take(&mut self.young), 0);
        }
        // One alone may be too heavy.
        if entry.weight <= most / 2 {
            self.weight += entry.weight;
            self.young.insert(key, entry);
        }
    }

    fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep { most: 4, fresh: Duration::from_secs(1), most_age: Duration::from_mins(1) };

    async fn read(cache: &Cache<u32, u32>, key: u32, now: Instant) -> Option<u32> {
        let found = cache.get(&key, now, async |_| Ok(Some(key * 10))).await;
        found.unwrap().map(|cached| cached.value)
    }

    #[tokio::test]
    async fn the_weight_of_entries_is_limited() {
        let cache = Cache::new(KEEP, |value| if *value == 190 { 3 } else { 1 });
        let now = Instant::now();
        for key in 0..20 {
            assert_eq!(read(&cache, key, now).await, Some(key * 10));
            assert_eq!(read(&cache, 0, now).await, Some(0));
            let entries = cache.entries();
            assert!(entries.young.len() + entries.old.len() <= KEEP.most, "{key}");
        }
        let entries = cache.entries();
        assert!(!entries.young.contains_key(&19), "heavier than half of the limit");
        assert!(entries.young.contains_key(&0) || entries.old.contains_key(&0), "used again and again");
    }

    #[tokio::test]
    async fn a_row_read_before_a_change_is_not_cached() {
        let cache = Cache::new(KEEP, |_| 1);
        let now = Instant::now();
        // The change comes while the query runs.
        let late = cache.get(&1, now, async |_| {
            cache.forget(&1);
            Ok(Some(10))
        });
        assert!(late.await.unwrap().is_some());
        let gone = cache.get(&1, now, async |_| Ok(None)).await;
        assert_eq!(gone, Ok(None), "the database is queried again");
    }
}
