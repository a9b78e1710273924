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
        page::{
            figures,
            form::{self, PageQuery},
            shell::{Page, Shell},
        },
    },
};

/// Entries per page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "people/access/audit.html")]
struct AuditPage {
    shell: Shell,
    tab: Tab,
    action: String,
    actor: String,
    /// The values for `actor`, each with its name.
    actors: Vec<(String, String)>,
    entries: Vec<EntryView>,
    /// Whether this is the first page.
    newest: bool,
    /// The address of the next page.
    older: Option<String>,
}

struct EntryView {
    at: String,
    actor: String,
    /// The address that the request came from; empty if there was no request.
    peer: String,
    action: String,
    subject: String,
    details: Vec<(String, String)>,
}

#[derive(Deserialize, Serialize)]
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
    PageQuery(AuditQuery { action, actor, before }): PageQuery<AuditQuery>,
) -> Result<Html<String>, Problem> {
    let names = Names::read(&state.store).await?;
    let filter = AuditFilter { action: action.trim().to_owned(), actor: parse_actor(&actor)? };
    let mut entries = state.store.audit().list_matching(&filter, before, PAGE + 1).await?;
    let more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let older = entries.last().filter(|_| more).map(|last| {
        let (action, actor) = (filter.action.clone(), actor.clone());
        form::address("/access/audit", &AuditQuery { action, actor, before: Some(last.seq) })
    });
    let page = AuditPage {
        shell: visitor.shell(Page::Access),
        tab: Tab::Audit,
        action: filter.action,
        actor,
        entries: entries.into_iter().map(|entry| EntryView::new(entry, &names)).collect(),
        actors: names.0,
        newest: before.is_none(),
        older,
    };
    Ok(Html(page.render()?))
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

impl EntryView {
    fn new(entry: AuditEntry, names: &Names) -> Self {
        let mut details = entry.details;
        let change = match (details.remove("before"), details.remove("after")) {
            (None, None) => None,
            (before, after) => {
                let words = |value: Option<Value>| words(&value.unwrap_or_default());
                Some((String::new(), format!("{} → {}", words(before), words(after))))
            }
        };
        let others = details.into_iter().map(|(name, value)| (name, words(&value)));
        Self {
            at: figures::moment(entry.at),
            actor: names.get(entry.actor),
            peer: entry.peer.map(|peer| peer.to_string()).unwrap_or_default(),
            action: entry.action,
            subject: entry.subject,
            details: change.into_iter().chain(others).collect(),
        }
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
