//! `/operations/releases`: which releases there are, and what changes when another one answers.

use std::sync::Arc;

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

/// A release as its manifest tells it.
struct ReleaseView {
    name: String,
    active: bool,
    /// What it says of itself, or why it says nothing.
    told: Result<Told, String>,
}

struct Told {
    created: String,
    data: String,
    default_method: Method,
    methods: Vec<Method>,
}

impl Told {
    fn new(manifest: &Manifest) -> Self {
        Self {
            created: manifest.created.replace('T', " ").trim_end_matches('Z').to_owned(),
            data: manifest.data.name.clone(),
            default_method: manifest.default_method,
            methods: manifest.methods.iter().map(|entry| entry.method).collect(),
        }
    }

    fn methods(&self) -> String {
        words(&self.methods)
    }
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let active = state.releases.current().map(|live| live.name().to_owned());
    let view = |(name, manifest): (String, Result<Manifest, ReleaseError>)| ReleaseView {
        active: active.as_ref() == Some(&name),
        told: manifest.map(|manifest| Told::new(&manifest)).map_err(|error| error.to_string()),
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
    /// The one that answers, and what it says of itself.
    before: Option<(String, Told)>,
    /// What else will be different, in sentences.
    changes: Vec<String>,
    /// Why it was not activated, where it was tried.
    refused: Option<String>,
}

/// What changes when the release answers.
pub(super) async fn ask(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Html<String>, Problem> {
    Ok(Html(comparing(&state, &visitor, name, None).await?.render()?))
}

async fn listed(state: &AppState) -> Result<Vec<(String, Result<Manifest, ReleaseError>)>, Problem> {
    list_releases(&state.releases).await.map_err(|error| Problem::inside(Kind::Internal, error))
}

async fn comparing(
    state: &AppState,
    visitor: &Visitor,
    name: String,
    refused: Option<String>,
) -> Result<ReleasePage, Problem> {
    let found = listed(state).await?.into_iter().find(|(one, _)| *one == name);
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
    let before = live
        .map(|live: Arc<LiveRelease>| (live.name().to_owned(), Told::new(live.serving.release().manifest())));
    let release = ReleaseView {
        active: before.as_ref().is_some_and(|(active, _)| *active == name),
        told: manifest.map(|manifest| Told::new(&manifest)).map_err(|error| error.to_string()),
        name,
    };
    let shell = visitor.shell(Page::Operations);
    Ok(ReleasePage { shell, tab: Tab::Releases, release, before, changes, refused })
}

/// What a caller will notice.
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
        changes.push(format!("Lost: {}. Whoever asks for them by name is answered with 422.", words(&lost)));
    }
    if !gained.is_empty() {
        changes.push(format!("New: {}.", words(&gained)));
    }
    if manifest.data.fingerprint != next.data.fingerprint {
        changes.push("It was trained on other data, so its articles may be others.".to_owned());
    }
    let routed = live.routing.default_method.iter().copied();
    let arms = live.routing.experiment.iter().flat_map(|experiment| experiment.arms.iter());
    let mut routed: Vec<Method> = routed.chain(arms.map(|arm| arm.method)).collect();
    routed.sort_unstable();
    routed.dedup();
    let passed_over = without(&routed, &after);
    if !passed_over.is_empty() {
        changes.push(format!(
            "The routing names {}, which it lacks; its default answers there.",
            words(&passed_over)
        ));
    }
    changes
}

fn words(methods: &[Method]) -> String {
    methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
pub(super) struct Confirmed {
    /// Which release answered when the page was made; empty where none did.
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
            format!("meanwhile {now} was activated; look at what changes against it, and try again");
        let page = comparing(&state, &visitor, name, Some(refused)).await?;
        return Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response());
    }
    let (actor, now) = (visitor.actor(), state.now());
    match administration::activate(&state.releases, &state.store, actor, &name, now).await {
        Ok(_) => Ok(Redirect::to("/operations/releases").into_response()),
        Err(error @ ActivateError::Load(_)) => {
            let page = comparing(&state, &visitor, name, Some(error.to_string())).await?;
            Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
