//! The articles in memory, which the caller's next completion must see changed.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::releases::Releases;

/// How long a change waits for the catalogue in memory to include it. After a large import the catalogue is reread, which
/// takes seconds.
const PATIENCE: Duration = Duration::from_millis(750);

/// Brings them up to date after a change, also after one that failed, because it may have been stored.
pub async fn refresh(releases: &Arc<Releases>) {
    let releases = Arc::clone(releases);
    // It continues after the timeout, so that the change is soon suggested.
    let refreshing = tokio::spawn(async move { releases.apply_change().await });
    if let Ok(refreshed) = timeout(PATIENCE, refreshing).await {
        refreshed.expect("reading changes does not panic");
    }
}
