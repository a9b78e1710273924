//! `/operations/releases`: the releases, and the changes when another one is activated.

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::Tab;
use crate::{
    domain::Method,
    models::release::{Manifest, ReleaseError},
    service::{
        administration::{self, list_releases},
        live_release::{ActivateError, LiveRelease},
    },
    web::{
        http::{
            AppState, Kind, Problem,
            extract::{Path, ReleaseName},
        },
        pages::{
            form::Form,
            shell::{Page, Shell},
            visitor::{Admin, Visitor},
        },
    },
};

#[derive(Template)]
#[template(path = "operations/releases.html")]
struct ReleasesPage {
    shell: Shell,
    tab: Tab,
    releases: Vec<ReleaseView>,
}

/// A release as its manifest describes it.
struct ReleaseView {
    name: String,
    active: bool,
    /// An error says why it cannot be served.
    manifest: Result<ManifestView, String>,
}

struct ManifestView {
    created: String,
    data: String,
    default_method: Method,
    methods: Vec<Method>,
}

impl ManifestView {
    fn new(manifest: &Manifest) -> Self {
        Self {
            created: manifest.created.replace('T', " ").trim_end_matches('Z').to_owned(),
            data: manifest.data.name.clone(),
            default_method: manifest.default_method,
            methods: manifest.methods.iter().map(|entry| entry.method).collect(),
        }
    }

    fn methods(&self) -> String {
        join(&self.methods)
    }
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let active = state.releases.current().map(|live| live.name().to_owned());
    let view = |(name, manifest): (String, Result<Manifest, ReleaseError>)| ReleaseView {
        active: active.as_ref() == Some(&name),
        manifest: manifest.map(|manifest| ManifestView::new(&manifest)).map_err(|error| error.to_string()),
        name,
    };
    let releases = listed(&state).await?.into_iter().map(view).collect();
    let page = ReleasesPage { shell: visitor.shell(Page::Operations), tab: Tab::Releases, releases };
    Ok(Html(page.render()?))
}

#[derive(Template)]
#[template(path = "operations/release.html")]
struct ReleasePage {
    shell: Shell,
    tab: Tab,
    release: ReleaseView,
    /// The live release.
    before: Option<(String, ManifestView)>,
    /// Other differences, in sentences.
    changes: Vec<String>,
    /// Why activating failed, if it was tried.
    refused: Option<String>,
}

/// Shows what changes when the release is activated.
pub(super) async fn confirm(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Html<String>, Problem> {
    Ok(Html(release_page(&state, &visitor, name, None).await?.render()?))
}

async fn listed(state: &AppState) -> Result<Vec<(String, Result<Manifest, ReleaseError>)>, Problem> {
    list_releases(&state.releases).await.map_err(|error| Problem::inside(Kind::Internal, error))
}

async fn release_page(
    state: &AppState,
    visitor: &Visitor,
    name: String,
    refused: Option<String>,
) -> Result<ReleasePage, Problem> {
    let found = listed(state).await?.into_iter().find(|(other, _)| *other == name);
    let Some((_, manifest)) = found else {
        return Err(Problem::new(
            Kind::NotFound,
            format!("there is no release {name:?} in the models folder"),
        ));
    };
    let live = state.releases.current();
    let changes = match (&live, &manifest) {
        (Some(live), Ok(manifest)) => changes(live, manifest),
        _ => Vec::new(),
    };
    let before =
        live.map(|live| (live.name().to_owned(), ManifestView::new(live.serving.release().manifest())));
    let release = ReleaseView {
        active: before.as_ref().is_some_and(|(active, _)| *active == name),
        manifest: manifest.map(|manifest| ManifestView::new(&manifest)).map_err(|error| error.to_string()),
        name,
    };
    let shell = visitor.shell(Page::Operations);
    Ok(ReleasePage { shell, tab: Tab::Releases, release, before, changes, refused })
}

/// The differences that callers notice.
fn changes(live: &LiveRelease, next: &Manifest) -> Vec<String> {
    let manifest = live.serving.release().manifest();
    let before: Vec<Method> = manifest.methods.iter().map(|entry| entry.method).collect();
    let after: Vec<Method> = next.methods.iter().map(|entry| entry.method).collect();
    let without = |some: &[Method], others: &[Method]| {
        some.iter().copied().filter(|method| !others.contains(method)).collect::<Vec<_>>()
    };
    let (lost, gained) = (without(&before, &after), without(&after, &before));
    let mut changes = Vec::new();
    if !lost.is_empty() {
        changes.push(format!("Removed: {}. Requests that name them are refused with 422.", join(&lost)));
    }
    if !gained.is_empty() {
        changes.push(format!("New: {}.", join(&gained)));
    }
    if manifest.data.fingerprint != next.data.fingerprint {
        changes.push("It was trained on other data, so its articles may differ.".to_owned());
    }
    let routed = live.routing.default_method.iter().copied();
    let arms = live.routing.experiment.iter().flat_map(|experiment| experiment.arms.iter());
    let mut routed: Vec<Method> = routed.chain(arms.map(|arm| arm.method)).collect();
    routed.sort_unstable();
    routed.dedup();
    let passed_over = without(&routed, &after);
    if !passed_over.is_empty() {
        changes.push(format!(
            "The routing names {}, which this release does not have; its default method answers instead.",
            join(&passed_over)
        ));
    }
    changes
}

fn join(methods: &[Method]) -> String {
    methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
pub(super) struct Confirmed {
    /// The release that was live when the page was rendered; empty if there was none.
    #[serde(default)]
    before: String,
}

pub(super) async fn activate(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
    Form(Confirmed { before }): Form<Confirmed>,
) -> Result<Response, Problem> {
    let now = state.releases.current().map(|live| live.name().to_owned()).unwrap_or_default();
    if now != before {
        let refused =
            format!("{now} was activated in the meantime; review the changes against it and try again");
        let page = release_page(&state, &visitor, name, Some(refused)).await?;
        return Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response());
    }
    let (actor, now) = (visitor.actor(), state.now());
    match administration::activate(&state.releases, &state.store, actor, &name, now).await {
        Ok(_) => Ok(Redirect::to("/operations/releases").into_response()),
        Err(error @ ActivateError::Load(_)) => {
            let page = release_page(&state, &visitor, name, Some(error.to_string())).await?;
            Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
