//! Changing customers: the database and the cache of profiles.

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, Timestamp};

use super::profiles::Profiles;
use crate::store::{Author, ChangeError, Expected, Put, Store, Stored, Version};

/// Adds the customer, or replaces the one with this id if they are as expected. Also gives their version.
pub async fn put(
    store: &Store,
    profiles: &Profiles,
    author: Author,
    customer: &Customer,
    expected: &Expected,
    now: Timestamp,
) -> Result<(Put, Version), ChangeError> {
    let put = store.by(author).customers().put_expected(customer, expected, now).await;
    // Also after an error: the customer may have been stored.
    profiles.forget(&customer.id);
    put
}

/// Changes the customer with the patch's id, if they are as expected.
pub async fn patch(
    store: &Store,
    profiles: &Profiles,
    author: Author,
    patch: &CustomerPatch,
    expected: &Expected,
    now: Timestamp,
) -> Result<Stored<Customer>, ChangeError> {
    let stored = store.by(author).customers().patch(patch, expected, now).await;
    profiles.forget(&patch.id);
    stored
}

/// Erases the customer, if they are as expected. False if there is no such customer.
pub async fn erase(
    store: &Store,
    profiles: &Profiles,
    author: Author,
    id: &CustomerId,
    expected: &Expected,
    now: Timestamp,
) -> Result<bool, ChangeError> {
    let erased = store.by(author).customers().erase_expected(id, expected, now).await;
    profiles.forget(id);
    erased
}
