//! The copies in memory of articles and customers, which the caller's next completion must see changed.

use std::{sync::Arc, time::Duration};

use atelier_core::domain::CustomerId;
use tokio::time::timeout;

use crate::{customers::profiles::Profiles, platform::http::AppState, releases::Releases};

/// How long a change waits for the catalogue in memory to include it. After a large import the catalogue is reread, which
/// takes seconds.
const PATIENCE: Duration = Duration::from_millis(750);

/// What requests are answered from instead of the database. Bring it up to date after each change, also after one that failed,
/// because it may have been stored.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    pub profiles: &'a Profiles,
    pub releases: &'a Arc<Releases>,
}

impl Copies<'_> {
    pub async fn refresh_articles(self) {
        let releases = Arc::clone(self.releases);
        // It continues after the timeout, so that the change is soon suggested.
        let refreshing = tokio::spawn(async move { releases.apply_change().await });
        if let Ok(refreshed) = timeout(PATIENCE, refreshing).await {
            refreshed.expect("reading changes does not panic; this is a bug");
        }
    }

    pub fn forget_customer(self, id: &CustomerId) {
        self.profiles.forget(id);
        self.releases.sample().forget(id);
    }
}

impl AppState {
    pub(crate) fn copies(&self) -> Copies<'_> {
        Copies { profiles: self.profiles(), releases: self.releases() }
    }
}
