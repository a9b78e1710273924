//! Changing articles and customers: the database, and the copies in memory that the caller's next completion must see.

use std::{sync::Arc, time::Duration};

use atelier_core::domain::{Article, ArticleId, Customer, CustomerId};
use tokio::time::timeout;

use crate::{
    customers::profiles::Profiles,
    platform::db::{ChangeError, Resource},
    releases::Releases,
};

/// How long a change waits for the catalogue in memory to include it. After a large import the catalogue is reread, which
/// takes seconds.
const PATIENCE: Duration = Duration::from_millis(750);

/// What requests are answered from instead of the database.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    pub profiles: &'a Profiles,
    pub releases: &'a Arc<Releases>,
}

/// A resource with a copy in memory.
pub trait Copied: Resource {
    /// Brings the copy up to date with the stored value of this id.
    fn refresh(copies: Copies<'_>, id: &Self::Id) -> impl Future<Output = ()> + Send;
}

impl Copied for Article {
    async fn refresh(copies: Copies<'_>, _: &ArticleId) {
        let releases = Arc::clone(copies.releases);
        // It continues after the timeout, so that the change is soon suggested.
        let refreshing = tokio::spawn(async move { releases.apply_change().await });
        if let Ok(refreshed) = timeout(PATIENCE, refreshing).await {
            refreshed.expect("reading changes does not panic; this is a bug");
        }
    }
}

impl Copied for Customer {
    async fn refresh(copies: Copies<'_>, id: &CustomerId) {
        copies.profiles.forget(id);
        copies.releases.sample().forget(id);
    }
}

/// Ends a change of the value with this id: brings its copy up to date, also after an error, because the value may have been
/// stored.
pub async fn finish<R: Copied, T>(
    copies: Copies<'_>,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, ChangeError> {
    R::refresh(copies, id).await;
    changed
}
