//! Changing customers: the database and the cache of profiles.

use super::profiles::Profiles;
use crate::{
    domain::{Customer, CustomerId, Timestamp},
    store::{Author, Put, Store, StoreError},
};

/// Adds the customer, or replaces the one with this id.
pub async fn put(
    store: &Store,
    profiles: &Profiles,
    author: Author,
    customer: &Customer,
    now: Timestamp,
) -> Result<Put, StoreError> {
    let put = store.by(author).customers().put(customer, now).await;
    // Also after an error: the customer may have been stored.
    profiles.forget(&customer.id);
    put
}

/// Erases the customer. False if there is no such customer.
pub async fn erase(
    store: &Store,
    profiles: &Profiles,
    author: Author,
    id: &CustomerId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let erased = store.by(author).customers().erase(id, now).await;
    profiles.forget(id);
    erased
}
