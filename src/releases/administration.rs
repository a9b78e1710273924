//! What an admin changes about answering: the release and the routing.

use std::{io, sync::Arc};

use atelier_core::domain::Timestamp;
use atelier_engine::{evaluation::Stored, release::ReleaseError};
use serde_json::json;
use tokio::task;

use super::{
    ActivateError, LiveRelease, Releases,
    release_folder::{AddError, Listed, Packed},
    routing::Routing,
};
use crate::platform::{
    db::{Author, Entry, Store},
    fault::Fault,
};

/// The releases in the models folder, by name.
pub async fn list_releases(releases: &Arc<Releases>) -> io::Result<Vec<Listed>> {
    let releases = Arc::clone(releases);
    task::spawn_blocking(move || releases.list())
        .await
        .expect("reading manifests does not panic; this is a bug")
}

/// The evaluation of a release in the models folder, as it was measured before it was brought here. None if there is no such
/// release.
pub async fn read_evaluation(releases: &Releases, name: &str) -> Option<Result<Stored, ReleaseError>> {
    let folder = releases.find(name)?;
    let read = task::spawn_blocking(move || Stored::read(&folder));
    Some(read.await.expect("reading does not panic; this is a bug"))
}

/// Adds a packed release to the models folder, and does not activate it. One that cannot be served has an entry in the audit
/// log.
pub async fn add(
    releases: &Releases,
    store: &Store,
    author: Author,
    packed: Packed,
    now: Timestamp,
) -> Result<Listed, AddError> {
    let added = releases.add(packed, author, now).await;
    if let Err(AddError::Refused { name, reason }) = &added {
        let entry = Entry::new("release.refused", name, json!({"reason": reason}));
        store.by(author).audit().append(&entry, now).await?;
    }
    added
}

/// Activates a release on every replica. A release that cannot be served has an entry in the audit log too.
pub async fn activate(
    releases: &Releases,
    store: &Store,
    author: Author,
    name: &str,
    force: bool,
    now: Timestamp,
) -> Result<Arc<LiveRelease>, ActivateError> {
    let activated = releases.activate(name, force, author, now).await;
    match &activated {
        // Without the database there is no entry either.
        Ok(_) | Err(ActivateError::Store(_)) => {}
        Err(refused) => {
            let reason = json!({"reason": refused.to_string()});
            store.by(author).audit().append(&Entry::new("release.refused", name, reason), now).await?;
        }
    }
    activated
}

/// What is wrong with a routing, for the release that is being served.
pub fn check_routing(routing: Routing, live: &LiveRelease) -> Option<Fault> {
    let method = routing.default_method.filter(|method| !live.serving.has(*method))?;
    Some(Fault::new("default_method", format!("the release {} has no method {method}", live.name())))
}
