//! `/access/audit`: all changes and sign-ins, and who made them, newest first.

use askama::Template;
use axum::{extract::State, response::Html};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Tab, visitor::Admin};
use crate::{
    people::{KeyId, PersonId},
    platform::{
        db::{Actor, AuditEntry, AuditFilter, Store, StoreError},
        http::{AppState, Finding, Problem},
        page::{Page, PageQuery, Shell, figures, form},
    },
};

const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "people/access/audit.html")]
struct AuditPage {
    shell: Shell,
    query: AuditQuery,
    names: Names,
    entries: Vec<AuditEntry>,
    older: Option<String>,
}

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct AuditQuery {
    #[serde(default)]
    action: String,
    #[serde(default)]
    actor: String,
    before: Option<i64>,
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    PageQuery(query): PageQuery<AuditQuery>,
) -> Result<Html<String>, Problem> {
    let names = Names::read(&state.store).await?;
    let query = AuditQuery { action: query.action.trim().to_owned(), ..query };
    let filter = AuditFilter { action: query.action.clone(), actor: parse_actor(&query.actor)? };
    let mut entries = state.store.audit().list(&filter, query.before, PAGE + 1).await?;
    let more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let older = entries
        .last()
        .filter(|_| more)
        .map(|last| form::address("/access/audit", &AuditQuery { before: Some(last.seq), ..query.clone() }));
    Ok(Html(AuditPage { shell: visitor.shell(Page::Access), query, names, entries, older }.render()?))
}

/// Parses `person-3`, `key-5`, `service` or `visitor`; an empty text means any actor.
fn parse_actor(text: &str) -> Result<Option<Actor>, Problem> {
    let number = |text: &str| text.parse().ok();
    let actor = match text.split_once('-') {
        None if text.is_empty() => return Ok(None),
        None if text == "service" => Some(Actor::Service),
        None if text == "visitor" => Some(Actor::Visitor),
        Some(("person", id)) => number(id).map(|id| Actor::Person(PersonId(id))),
        Some(("key", id)) => number(id).map(|id| Actor::Key(KeyId(id))),
        _ => None,
    };
    let detail = || format!("expected an actor such as person-1, key-1, service or visitor, found {text:?}");
    actor.map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("actor", detail())]))
}

/// The actors' names, by their text in addresses. People and keys are never deleted.
pub(crate) struct Names(Vec<(String, String)>);

impl Names {
    pub(crate) async fn read(store: &Store) -> Result<Self, StoreError> {
        let mut names = Vec::new();
        for person in store.people().list().await? {
            names.push((actor_text(Actor::Person(person.id)), person.name.to_string()));
        }
        for key in store.api_keys().list().await? {
            names.push((actor_text(Actor::Key(key.id)), format!("{} (key {})", key.label, key.id.0)));
        }
        names.push((actor_text(Actor::Service), "this machine".to_owned()));
        names.push((actor_text(Actor::Visitor), "not signed in".to_owned()));
        Ok(Self(names))
    }

    pub(crate) fn get(&self, actor: Actor) -> String {
        let text = actor_text(actor);
        let name = self.0.iter().find(|(other, _)| *other == text).map(|(_, name)| name.clone());
        // An actor may be newer than the names.
        name.unwrap_or(text)
    }
}

/// The inverse of [`parse_actor`].
fn actor_text(actor: Actor) -> String {
    match actor {
        Actor::Person(id) => format!("person-{}", id.0),
        Actor::Key(id) => format!("key-{}", id.0),
        Actor::Service => "service".to_owned(),
        Actor::Visitor => "visitor".to_owned(),
    }
}

/// The change, then the other details with their names.
fn details(entry: &AuditEntry) -> Vec<(&str, String)> {
    const CHANGE: [&str; 2] = ["before", "after"];
    let (changed, others): (Vec<_>, Vec<_>) =
        entry.details.iter().partition(|(name, _)| CHANGE.contains(&name.as_str()));
    let [before, after] =
        CHANGE.map(|name| entry.details.get(name).map_or_else(|| words(&Value::Null), words));
    let change = (!changed.is_empty()).then(|| ("", format!("{before} → {after}")));
    let others = others.into_iter().map(|(name, value)| (name.as_str(), words(value)));
    change.into_iter().chain(others).collect()
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
