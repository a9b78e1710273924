//! A cache of customers' profiles and purchases. Stale profiles are served only while the database cannot be reached.
//!
//! A change on another replica shows once the cached profile is no longer fresh; a change here calls
//! [`Profiles::forget`]. Knows the store; must not know HTTP.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atelier_core::domain::{Customer, CustomerId};

use crate::{
    completion::Stored,
    config::Keep,
    platform::{
        cache::Cache,
        db::{Resource, Store, StoreError},
        http::AppState,
    },
    telemetry::timed,
};

/// The profiles of a store's customers. Clones share the cache.
#[derive(Debug, Clone)]
pub struct Profiles {
    store: Store,
    /// Each with the text that it was read from: while that stays the same, the profile stays with what was made of it.
    cache: Cache<CustomerId, (Arc<str>, Arc<Stored>)>,
}

#[derive(Debug, Clone)]
pub struct Profile {
    pub stored: Arc<Stored>,
    /// Its age, if the database could not be reached to confirm it.
    pub stale: Option<Duration>,
}

impl Profiles {
    pub fn new(store: Store, keep: Keep) -> Self {
        Self { store, cache: Cache::new(keep, weigh) }
    }

    /// None if there is no such customer.
    ///
    /// # Errors
    /// `Unreachable` if the database cannot be reached and the profile is not cached; other database errors.
    pub async fn get(&self, id: &CustomerId, now: Instant) -> Result<Option<Profile>, StoreError> {
        let read = async |before: Option<(Arc<str>, Arc<Stored>)>| {
            let found = timed("database: customer", self.store.customers().get_with_purchases(id)).await?;
            let Some((id, text, bought)) = found else { return Ok(None) };
            let read = format!("{bought}\n{text}");
            if let Some(before) = before.filter(|before| *before.0 == *read) {
                return Ok(Some(before));
            }
            let features = Customer::parse((id, text))?.features;
            let bought = bought.lines().map(str::to_owned).collect();
            Ok(Some((read.into(), Arc::new(Stored::new(features, bought)))))
        };
        let cached = self.cache.get(id, now, |before| self.store.soon(read(before))).await?;
        Ok(cached.map(|cached| Profile { stored: cached.value.1, stale: cached.stale }))
    }

    pub fn forget(&self, id: &CustomerId) {
        self.cache.forget(id);
    }

    pub fn forget_all(&self) {
        self.cache.forget_all();
    }
}

/// About how many bytes a profile takes: what it was read from, that parsed, and what is made of it for requests.
fn weigh((text, _): &(Arc<str>, Arc<Stored>)) -> usize {
    const OF_EVERY: usize = 2000;
    OF_EVERY + 6 * text.len()
}

impl AppState {
    pub(crate) fn profiles(&self) -> &Profiles {
        self.part()
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::platform::db::Expected;
    use atelier_core::domain::{FeatureValue, Features, Timestamp};

    const KEEP: Keep =
        Keep { most: 1 << 20, fresh: Duration::from_secs(1), most_age: Duration::from_mins(1) };
    const SECOND: Duration = Duration::from_secs(1);

    fn id(number: usize) -> CustomerId {
        CustomerId::new(format!("c-{number}")).unwrap()
    }

    fn customer(number: usize, age: f64) -> Customer {
        let features = [("age".to_owned(), FeatureValue::Number(age))].into_iter().collect();
        Customer { id: id(number), features }
    }

    async fn put(store: &Store, customer: &Customer) {
        store.customers().put(customer, &Expected::default(), Timestamp::from_millis(0)).await.unwrap();
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

    async fn get(
        profiles: &Profiles,
        number: usize,
        now: Instant,
    ) -> Result<Option<(Features, Option<Duration>)>, StoreError> {
        let found = profiles.get(&id(number), now).await?;
        Ok(found.map(|profile| (profile.stored.features.clone(), profile.stale)))
    }

    #[tokio::test]
    async fn a_change_shows_once_the_cached_profile_is_no_longer_fresh() {
        let (_folder, store, profiles) = with(1).await;
        let now = Instant::now();
        let profile = |age| Ok(Some((customer(0, age).features, None)));
        assert_eq!(get(&profiles, 0, now).await, profile(30.0));
        put(&store, &customer(0, 31.0)).await;
        assert_eq!(get(&profiles, 0, now + SECOND / 2).await, profile(30.0), "still fresh");
        assert_eq!(get(&profiles, 0, now + SECOND).await, profile(31.0));
        put(&store, &customer(0, 32.0)).await;
        profiles.forget(&id(0));
        assert_eq!(get(&profiles, 0, now + SECOND).await, profile(32.0), "a change made here");
        assert_eq!(get(&profiles, 1, now).await, Ok(None));
    }

    #[tokio::test]
    async fn an_unchanged_row_keeps_what_was_made_of_it() {
        let (_folder, store, profiles) = with(1).await;
        let now = Instant::now();
        let read = async |now| profiles.get(&id(0), now).await.unwrap().unwrap().stored;
        let first = read(now).await;
        assert!(Arc::ptr_eq(&first, &read(now + SECOND).await));
        put(&store, &customer(0, 31.0)).await;
        assert!(!Arc::ptr_eq(&first, &read(now + 2 * SECOND).await));
    }

    #[tokio::test]
    async fn without_the_database_cached_profiles_are_served_with_their_age() {
        let (_folder, store, profiles) = with(2).await;
        let now = Instant::now();
        let cached = get(&profiles, 0, now).await.unwrap().unwrap();
        store.close().await;
        assert_eq!(get(&profiles, 0, now + 5 * SECOND).await, Ok(Some((cached.0, Some(5 * SECOND)))));
        let mut missing = Vec::new();
        for (number, when) in [(1, 5 * SECOND), (0, 61 * SECOND)] {
            missing.push(get(&profiles, number, now + when).await);
        }
        // As an erased customer is.
        profiles.forget(&id(0));
        missing.push(get(&profiles, 0, now).await);
        assert!(missing.iter().all(|one| matches!(one, Err(StoreError::Unreachable { .. }))), "{missing:?}");
    }
}
