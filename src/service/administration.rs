//! What an admin changes about answering: the release and the routing, each with its entry in the audit log.

use std::{io, sync::Arc};

use serde_json::json;
use tokio::task;

use super::{
    audit::note,
    fault::{Fault, Field},
    live_release::{ActivateError, LiveRelease, Releases},
    release_folder::Listed,
    routing::{Experiment, Routing},
};
use crate::{
    domain::{Method, Timestamp},
    store::{Actor, Store, StoreError},
};

/// The releases in the models folder, by name.
pub async fn list_releases(releases: &Arc<Releases>) -> io::Result<Vec<Listed>> {
    let releases = Arc::clone(releases);
    task::spawn_blocking(move || releases.list())
        .await
        .expect("reading manifests does not panic; this is a bug")
}

/// Activates a release on every replica.
pub async fn activate(
    releases: &Releases,
    store: &Store,
    actor: Actor,
    name: &str,
    force: bool,
    now: Timestamp,
) -> Result<Arc<LiveRelease>, ActivateError> {
    let before = releases.current().map(|live| live.name().to_owned());
    let live = releases.activate(name, force, now).await?;
    note(store, actor, "release.activate", name, None, json!({"before": before, "after": name}), now).await?;
    Ok(live)
}

/// Sets a routing without faults, on every replica.
pub async fn set_routing(
    releases: &Releases,
    store: &Store,
    actor: Actor,
    routing: &Routing,
    now: Timestamp,
) -> Result<(), StoreError> {
    let before = releases.current().map(|live| live.routing.to_string());
    releases.route(routing, now).await?;
    let details = json!({"before": before, "after": routing.to_string()});
    note(store, actor, "routing.set", "routing", None, details, now).await
}

/// What is wrong with a routing, for the release that is being served.
pub fn check_routing(routing: &Routing, live: &LiveRelease) -> Vec<Fault> {
    let arms = routing.experiment.iter().flat_map(|experiment| experiment.arms.iter().enumerate());
    let arms = arms.map(|(place, arm)| (Field::ArmMethod(place), arm.method));
    let default = routing.default_method.map(|method| (Field::DefaultMethod, method));
    let missing = |(field, method): (Field, Method)| {
        let detail = format!("the release {} has no method {method}", live.name());
        (!live.serving.has(method)).then(|| Fault::new(field, detail))
    };
    let mut faults: Vec<Fault> = default.into_iter().chain(arms).filter_map(missing).collect();
    if let Some(Err(error)) = routing.experiment.as_ref().map(Experiment::check) {
        faults.push(Fault::new(Field::Experiment, error.to_string()));
    }
    faults
}
