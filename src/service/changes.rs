//! Changing articles and customers: the database, and the copies in memory that the caller's next completion must see.

use atelier_core::domain::{Article, ArticleId, Customer, CustomerId, Timestamp};

use super::{live_release::Releases, profiles::Profiles};
use crate::store::{ChangeError, Expected, Put, Resource, Store, StoreError, Stored, Version};

/// What requests are answered from instead of the database.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    pub profiles: &'a Profiles,
    pub releases: &'a Releases,
}

/// A resource with a copy in memory.
pub trait Copied: Resource {
    /// Brings the copy up to date with the stored value of this id.
    fn refresh(copies: Copies<'_>, id: &Self::Id) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Copied for Article {
    async fn refresh(copies: Copies<'_>, _: &ArticleId) -> Result<(), StoreError> {
        copies.releases.refresh().await
    }
}

impl Copied for Customer {
    async fn refresh(copies: Copies<'_>, id: &CustomerId) -> Result<(), StoreError> {
        copies.profiles.forget(id);
        Ok(())
    }
}

/// Adds the value, or replaces the one with its id if that is as expected. Also gives its version.
pub async fn put<R: Copied>(
    store: &Store,
    copies: Copies<'_>,
    value: &R,
    expected: &Expected,
    now: Timestamp,
) -> Result<(Put, Version), ChangeError> {
    finish::<R, _>(copies, value.id(), store.resources().put_expected(value, expected, now).await).await
}

/// Changes the value with the patch's id, if it is as expected.
pub async fn patch<R: Copied>(
    store: &Store,
    copies: Copies<'_>,
    patch: &R::Patch,
    expected: &Expected,
    now: Timestamp,
) -> Result<Stored<R>, ChangeError> {
    finish::<R, _>(copies, R::target(patch), store.resources::<R>().patch(patch, expected, now).await).await
}

/// Deletes the value, if it is as expected. False if there is none.
pub async fn delete<R: Copied>(
    store: &Store,
    copies: Copies<'_>,
    id: &R::Id,
    expected: &Expected,
    now: Timestamp,
) -> Result<bool, ChangeError> {
    finish::<R, _>(copies, id, store.resources::<R>().delete_expected(id, expected, now).await).await
}

async fn finish<R: Copied, T>(
    copies: Copies<'_>,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, ChangeError> {
    // Also after an error: the value may have been stored.
    let refreshed = R::refresh(copies, id).await;
    let changed = changed?;
    refreshed?;
    Ok(changed)
}
