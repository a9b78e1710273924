//! Customers' profiles, kept in memory for as long as they are surely true, and served older when the database
//! cannot be reached.
//!
//! A change made on another replica is seen as much later as a profile stays fresh; one made here is told by
//! [`Profiles::forget`]. Knows the store; must not know HTTP.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::cache::Cache;
pub use super::cache::Keep;
use crate::{
    domain::{CustomerId, Features},
    store::{Store, StoreError},
    util::telemetry::timed,
};

/// The profiles of a store's customers. Clones share what is kept.
#[derive(Debug, Clone)]
pub struct Profiles {
    store: Store,
    cache: Cache<CustomerId, Arc<Features>>,
}

/// What is known of a customer.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub features: Features,
    /// How old it is, where the database could not be asked whether it is still so.
    pub stale: Option<Duration>,
}

impl Profiles {
    pub fn new(store: Store, keep: Keep) -> Self {
        Self { store, cache: Cache::new(keep) }
    }

    /// None if there is no such customer.
    ///
    /// # Errors
    /// Among others if the database cannot be reached and the profile is not kept (`Unreachable`).
    pub async fn get(&self, id: &CustomerId, now: Instant) -> Result<Option<Profile>, StoreError> {
        let ask = async {
            let found = timed("database: customer", self.store.customers().get(id)).await?;
            Ok(found.map(|customer| Arc::new(customer.features)))
        };
        let cached = self.cache.get(id, now, ask).await?;
        Ok(cached.map(|it| Profile { features: Features::clone(&it.value), stale: it.stale }))
    }

    /// The customer was changed or erased here: nothing that was known of them is served any more.
    pub fn forget(&self, id: &CustomerId) {
        self.cache.forget(id);
    }

    /// The same for everybody.
    pub fn forget_all(&self) {
        self.cache.forget_all();
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Customer, FeatureValue, Timestamp};

    const KEEP: Keep = Keep { most: 4, fresh: Duration::from_secs(1), most_age: Duration::from_mins(1) };
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
    async fn who_was_erased_is_gone_at_once() {
        let (_folder, store, profiles) = with(1).await;
        let now = Instant::now();
        profiles.get(&id(0), now).await.unwrap().unwrap();
        store.customers().erase(&id(0)).await.unwrap();
        profiles.forget(&id(0));
        assert_eq!(profiles.get(&id(0), now).await, Ok(None));
        store.close().await;
        let gone = profiles.get(&id(0), now).await;
        assert!(matches!(gone, Err(StoreError::Unreachable { .. })), "{gone:?}");
    }
}
