//! `/operations/releases`: the releases, and the changes when another one is activated.

use std::sync::Arc;

use askama::Template;
use atelier_core::domain::{Method, list_methods};
use atelier_engine::release::Manifest;
use axum::{
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    people::page::{
        audit::Names,
        visitor::{Admin, Analyst, Visitor},
    },
    platform::page::operations::Tab,
    platform::{
        db::{AuditEntry, AuditFilter},
        http::{
            AppState, Kind, Problem,
            extract::{Path, ReleaseName},
            uncancelled::uncancelled,
        },
        page::{
            change::{self, Change, Undo},
            figures,
            form::{Form, PageQuery},
            shell::{Page, Shell},
        },
    },
    releases::{ACTIVATE, ActivateError, LiveRelease, release_folder::Listed},
};

#[derive(Template)]
#[template(path = "releases/releases.html")]
struct ReleasesPage {
    shell: Shell,
    tab: Tab,
    /// The live release, or an empty text.
    live: String,
    releases: Vec<Listed>,
    history: Vec<Activation>,
    undo: Option<Undo>,
}

const PAGE: &str = "/operations/releases";

/// A change of the live release.
struct Activation {
    at: String,
    who: String,
    before: Option<String>,
    after: String,
    /// Whether the release before is there and not live, so that a click can lead back to it.
    back: bool,
}

/// The activations that the page shows.
const HISTORY: usize = 20;
/// Entries of the audit log that are read at once.
const READ: u32 = 100;

impl Listed {
    /// Why loading failed the last time, if its files are still the same.
    fn failed(&self) -> Option<&String> {
        self.tried.as_ref()?.as_ref().err()
    }
}

fn created(manifest: &Manifest) -> String {
    manifest.created.replace('T', " ").trim_end_matches('Z').to_owned()
}

fn methods(manifest: &Manifest) -> String {
    list_methods(manifest.methods.iter().map(|entry| entry.method))
}

pub(crate) async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    PageQuery(Change { undo }): PageQuery<Change>,
) -> Result<Html<String>, Problem> {
    let live = state.releases().current().map(|live| live.name().to_owned()).unwrap_or_default();
    let releases = listed(&state).await?;
    let history = history(&state, &releases, &live).await?;
    let shell = visitor.shell(Page::Operations);
    let entry = change::undoable(&state, visitor.author(), ACTIVATE, undo).await?;
    let undo = entry.and_then(|entry| {
        let before = before_of(&entry).filter(|before| *before != live)?;
        let words = format!("{} is live now, instead of {before}.", entry.subject);
        let fields = vec![("undo", entry.seq.to_string()), ("before", entry.subject.clone())];
        Some(Undo { words, action: format!("{PAGE}/{before}"), fields })
    });
    let page = ReleasesPage { shell, tab: Tab::Releases, live, releases, history, undo };
    Ok(Html(page.render()?))
}

/// The last activations, newest first. Reloads are left out.
async fn history(state: &AppState, releases: &[Listed], live: &str) -> Result<Vec<Activation>, Problem> {
    let filter = AuditFilter { action: ACTIVATE.into(), actor: None };
    let mut activations: Vec<AuditEntry> = Vec::new();
    let mut before = None;
    while activations.len() < HISTORY {
        let mut entries = state.store.audit().list(&filter, before, READ).await?;
        let more = entries.len() == READ as usize;
        before = entries.last().map(|last| last.seq);
        entries.retain(|entry| before_of(entry) != Some(&entry.subject));
        activations.append(&mut entries);
        if !more {
            break;
        }
    }
    activations.truncate(HISTORY);
    let names = Names::read(&state.store).await?;
    let view = |entry: AuditEntry| {
        let before = before_of(&entry).map(str::to_owned);
        let can_go_back = |name: &String| {
            name != live && releases.iter().any(|one| one.name == *name && one.manifest.is_ok())
        };
        Activation {
            at: figures::moment(entry.at),
            who: names.get(entry.actor),
            back: before.as_ref().is_some_and(can_go_back),
            before,
            after: entry.subject,
        }
    };
    Ok(activations.into_iter().map(view).collect())
}

/// The release that was live before an activation.
fn before_of(activation: &AuditEntry) -> Option<&str> {
    activation.details.get("before").and_then(Value::as_str)
}

#[derive(Template)]
#[template(path = "releases/release.html")]
struct ReleasePage {
    shell: Shell,
    tab: Tab,
    release: Listed,
    /// The live release.
    before: Option<Arc<LiveRelease>>,
    /// Other differences, in sentences.
    changes: Vec<String>,
    /// Why activating failed, if it was tried.
    refused: Option<String>,
    /// Whether the release has too few of the catalogue's articles, so that activating it must be confirmed again.
    force: bool,
}

impl ReleasePage {
    fn live(&self) -> &str {
        self.before.as_ref().map_or("", |live| live.name())
    }

    fn is_live(&self) -> bool {
        self.before.as_ref().is_some_and(|live| live.name() == self.release.name)
    }
}

/// Shows what changes when the release is activated.
pub(crate) async fn confirm(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Html<String>, Problem> {
    Ok(Html(release_page(&state, &visitor, name, None).await?.render()?))
}

async fn listed(state: &AppState) -> Result<Vec<Listed>, Problem> {
    state.releases().list().await.map_err(|error| Problem::inside(Kind::Internal, error))
}

async fn release_page(
    state: &AppState,
    visitor: &Visitor,
    name: String,
    refused: Option<String>,
) -> Result<ReleasePage, Problem> {
    let found = listed(state).await?.into_iter().find(|listed| listed.name == name);
    let Some(release) = found else {
        return Err(Problem::new(
            Kind::NotFound,
            format!("there is no release {name:?} in the models folder"),
        ));
    };
    let before = state.releases().current();
    let changes = match (&before, &release.manifest) {
        (Some(live), Ok(manifest)) => changes(live, manifest),
        _ => Vec::new(),
    };
    let shell = visitor.shell(Page::Operations);
    Ok(ReleasePage { shell, tab: Tab::Releases, release, before, changes, refused, force: false })
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
        changes
            .push(format!("Removed: {}. Requests that name them are refused with 422.", list_methods(&lost)));
    }
    if !gained.is_empty() {
        changes.push(format!("New: {}.", list_methods(&gained)));
    }
    if manifest.data.fingerprint != next.data.fingerprint {
        changes.push("It was trained on other data, so its articles may differ.".to_owned());
    }
    let passed_over = without(live.routing.default_method.as_slice(), &after);
    if !passed_over.is_empty() {
        changes.push(format!(
            "The routing names {}, which this release does not have; its default method answers instead.",
            list_methods(&passed_over)
        ));
    }
    let mut arms: Vec<Method> = live.arms.methods().collect();
    arms.sort_unstable();
    arms.dedup();
    let missing = without(&arms, &after);
    if !missing.is_empty() {
        changes.push(format!(
            "A running experiment compares {}, which this release does not have: it will have no customers.",
            list_methods(&missing)
        ));
    }
    changes
}

#[derive(Deserialize)]
pub(crate) struct Confirmed {
    /// The release that was live when the page was rendered; empty if there was none.
    #[serde(default)]
    before: String,
    /// Whether a release without any article of the catalogue is activated. The page asks first.
    #[serde(default)]
    force: bool,
    /// The activation that it takes back.
    undo: Option<i64>,
}

pub(crate) async fn activate(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
    Form(Confirmed { before, force, undo }): Form<Confirmed>,
) -> Result<Response, Problem> {
    let now = state.releases().current().map(|live| live.name().to_owned()).unwrap_or_default();
    // A double click: the first one has done it.
    if now == name && now != before {
        return Ok(Redirect::to(PAGE).into_response());
    }
    if now != before {
        let refused =
            format!("{now} was activated in the meantime; review the changes against it and try again");
        let page = release_page(&state, &visitor, name, Some(refused)).await?;
        return Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response());
    }
    let (author, now) = (visitor.author(), state.now());
    change::check_undo(&state, author, ACTIVATE, undo).await?;
    let (its_state, its_name) = (state.clone(), name.clone());
    let activated =
        uncancelled(async move { its_state.releases().activate(&its_name, force, author, now).await }).await;
    match activated {
        Ok(_) => Ok(change::made(&state, author, ACTIVATE, PAGE).await?.into_response()),
        Err(
            error @ (ActivateError::Load(_)
            | ActivateError::CoversLittle { .. }
            | ActivateError::Compared { .. }),
        ) => {
            let force = matches!(error, ActivateError::CoversLittle { .. });
            let page = release_page(&state, &visitor, name, Some(error.to_string())).await?;
            let page = ReleasePage { force, ..page };
            Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
