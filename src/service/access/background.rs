//! What waits to be stored apart from the requests: one value for each key, and at most one task that stores them.

use std::{
    collections::HashMap,
    hash::Hash,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Clones share what waits.
#[derive(Debug)]
pub(super) struct Background<K, V>(Arc<Mutex<Waiting<K, V>>>);

#[derive(Debug)]
struct Waiting<K, V> {
    values: HashMap<K, V>,
    /// Whether a task is storing values. It ends when nothing waits.
    busy: bool,
}

impl<K: Eq + Hash, V> Background<K, V> {
    /// Adds to the key's value. If it returns true, no task is storing values, and the caller starts one.
    pub(super) fn add(&self, key: K, add: impl FnOnce(Option<V>) -> V) -> bool {
        let mut waiting = self.lock();
        let value = add(waiting.values.remove(&key));
        waiting.values.insert(key, value);
        !mem::replace(&mut waiting.busy, true)
    }

    /// Whether the key, or fewer than `most` others, wait.
    pub(super) fn has_room(&self, key: &K, most: usize) -> bool {
        let waiting = self.lock();
        waiting.values.len() < most || waiting.values.contains_key(key)
    }

    /// What waits, for the task. None ends the task.
    pub(super) fn take(&self) -> Option<HashMap<K, V>> {
        let mut waiting = self.lock();
        waiting.busy = !waiting.values.is_empty();
        waiting.busy.then(|| mem::take(&mut waiting.values))
    }

    /// Locked only to add or take values, never during a write.
    fn lock(&self) -> MutexGuard<'_, Waiting<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Background<K, V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting { values: HashMap::new(), busy: false })))
    }
}

impl<K, V> Clone for Background<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
