//! What waits to be stored apart from the requests: one value for each key, and at most one task that stores them.

use std::{
    collections::HashMap,
    hash::Hash,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::MutexGuard;

/// Clones share what waits.
#[derive(Debug)]
pub(super) struct Background<K, V> {
    waiting: Arc<Mutex<Waiting<K, V>>>,
    /// Held while values are stored, so that the end of the process waits for them.
    storing: Arc<tokio::sync::Mutex<()>>,
}

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

    /// What waits, for the task, when no other values are being stored. None ends the task.
    pub(super) async fn take(&self) -> Option<(MutexGuard<'_, ()>, HashMap<K, V>)> {
        let storing = self.storing.lock().await;
        let mut waiting = self.lock();
        waiting.busy = !waiting.values.is_empty();
        waiting.busy.then(|| (storing, mem::take(&mut waiting.values)))
    }

    /// What waits, for the end of the process, after the task has stored what it took.
    pub(super) async fn take_all(&self) -> HashMap<K, V> {
        let _storing = self.storing.lock().await;
        mem::take(&mut self.lock().values)
    }

    /// Locked only to add or take values, never during a write.
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting<K, V>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Background<K, V> {
    fn default() -> Self {
        let waiting = Waiting { values: HashMap::new(), busy: false };
        Self { waiting: Arc::new(Mutex::new(waiting)), storing: Arc::default() }
    }
}

impl<K, V> Clone for Background<K, V> {
    fn clone(&self) -> Self {
        Self { waiting: Arc::clone(&self.waiting), storing: Arc::clone(&self.storing) }
    }
}
