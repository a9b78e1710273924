//! A map whose clones share its parts: to change one entry of a large map copies a small part.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

/// A power of two.
const SHARDS: usize = 1024;

#[derive(Debug, Clone)]
pub struct Sharded<K, V> {
    shards: Vec<Arc<HashMap<K, V>>>,
    hasher: RandomState,
}

impl<K, V> Default for Sharded<K, V> {
    fn default() -> Self {
        Self { shards: vec![Arc::default(); SHARDS], hasher: RandomState::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Sharded<K, V> {
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[self.shard(key)].get(key)
    }

    pub fn insert(&mut self, key: K, value: V) {
        let shard = self.shard(&key);
        Arc::make_mut(&mut self.shards[shard]).insert(key, value);
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let shard = self.shard(key);
        Arc::make_mut(&mut self.shards[shard]).remove(key);
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "some of the bits")]
        let hash = self.hasher.hash_one(key) as usize;
        hash % SHARDS
    }
}
