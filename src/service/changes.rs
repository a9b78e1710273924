//! Changing articles and customers: the database, and the copies in memory that the caller's next completion must see.

use atelier_core::domain::{Article, ArticleId, Customer, CustomerId};

use super::{live_release::Releases, profiles::Profiles};
use crate::store::{ChangeError, Resource, StoreError};

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

/// Ends a change of the value with this id: brings its copy up to date, also after an error, because the value may have been
/// stored.
pub async fn finish<R: Copied, T>(
    copies: Copies<'_>,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, ChangeError> {
    let refreshed = R::refresh(copies, id).await;
    let changed = changed?;
    refreshed?;
    Ok(changed)
}
