//! `/access/audit`: what was changed, by whom, the newest first.

use askama::Template;
use axum::{extract::State, response::Html};
use serde::Deserialize;
use serde_json::Value;

use super::Tab;
use crate::{
    store::{Actor, AuditEntry, AuditFilter, KeyId, PersonId, Store, StoreError},
    web::{
        http::{AppState, Finding, Problem},
        pages::{
            figures,
            form::PageQuery,
            shell::{Page, Shell},
            visitor::Admin,
        },
    },
};

/// Entries of a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "access/audit.html")]
struct AuditPage {
    shell: Shell,
    tab: Tab,
    action: String,
    actor: String,
    /// What `actor` may be, with its name.
    actors: Vec<(String, String)>,
    entries: Vec<EntryView>,
    /// Whether it is the first page.
    newest: bool,
    /// Where the next page is.
    older: Option<String>,
}

struct EntryView {
    at: String,
    actor: String,
    action: String,
    subject: String,
    details: Vec<(String, String)>,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    action: String,
    #[serde(default)]
    actor: String,
    before: Option<i64>,
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    PageQuery(Wanted { action, actor, before }): PageQuery<Wanted>,
) -> Result<Html<String>, Problem> {
    let names = Names::read(&state.store).await?;
    let filter = AuditFilter { action: action.trim().to_owned(), actor: named(&actor)? };
    let mut entries = state.store.audit().list_matching(&filter, before, PAGE + 1).await?;
    let more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let older = entries.last().filter(|_| more).map(|last| {
        let mut query = form_urlencoded::Serializer::new("/access/audit?".to_owned());
        query.append_pair("action", &filter.action).append_pair("actor", &actor);
        query.append_pair("before", &last.seq.to_string()).finish()
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

/// Who is meant by a text of the form `person-3`, `key-5` or `service`; nobody in particular where it is empty.
fn named(text: &str) -> Result<Option<Actor>, Problem> {
    let number = |text: &str| text.parse().ok();
    let actor = match text.split_once('-') {
        None if text.is_empty() => return Ok(None),
        None if text == "service" => Some(Actor::Service),
        Some(("person", id)) => number(id).map(|id| Actor::Person(PersonId(id))),
        Some(("key", id)) => number(id).map(|id| Actor::Key(KeyId(id))),
        _ => None,
    };
    let detail = || format!("somebody is person-1, key-1 or service, found {text:?}");
    actor.map(Some).ok_or_else(|| Problem::invalid(vec![Finding::parameter("actor", detail())]))
}

/// What everybody is called, by the text that names them in an address. Neither people nor keys are ever deleted.
struct Names(Vec<(String, String)>);

impl Names {
    async fn read(store: &Store) -> Result<Self, StoreError> {
        let mut names = Vec::new();
        for person in store.people().list().await? {
            names.push((text_of(Actor::Person(person.id)), person.name.to_string()));
        }
        for key in store.api_keys().list().await? {
            names.push((text_of(Actor::Key(key.id)), format!("{} (key {})", key.label, key.id.0)));
        }
        names.push((text_of(Actor::Service), "this machine".to_owned()));
        Ok(Self(names))
    }

    fn of(&self, actor: Actor) -> String {
        let text = text_of(actor);
        let name = self.0.iter().find(|(one, _)| *one == text).map(|(_, name)| name.clone());
        // Made since the names were read.
        name.unwrap_or(text)
    }
}

/// What [`named`] reads.
fn text_of(actor: Actor) -> String {
    match actor {
        Actor::Person(id) => format!("person-{}", id.0),
        Actor::Key(id) => format!("key-{}", id.0),
        Actor::Service => "service".to_owned(),
    }
}

impl EntryView {
    fn new(entry: AuditEntry, names: &Names) -> Self {
        let mut details = entry.details;
        // What changed reads best from left to right.
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
            actor: names.of(entry.actor),
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
