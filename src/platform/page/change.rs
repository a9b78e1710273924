//! Taking back a change that customers see, for a minute. `platform/parts/change.html` has this button, and what pages say before a
//! change.

use axum::response::Redirect;
use serde::Deserialize;

use super::form::address;
use crate::platform::{
    db::{AuditEntry, AuditFilter, Author},
    http::{AppState, Kind, Problem},
};

/// The form that takes back what was just done.
pub(crate) struct Undo {
    pub(crate) words: String,
    pub(crate) action: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// The change that a page offers to take back, or that a form takes back: the number of its entry in the audit log.
#[derive(Deserialize)]
pub(crate) struct Change {
    pub(crate) undo: Option<i64>,
}

const UNDO_MILLIS: i64 = 60_000;

/// Leads to a page that offers to take back the author's latest change.
pub(crate) async fn made(
    state: &AppState,
    author: Author,
    action: &str,
    page: &str,
) -> Result<Redirect, Problem> {
    let entry = find(state, author, action, None).await?;
    let offering = entry.map(|entry| address(page, &[("undo", entry.seq.to_string())]));
    Ok(Redirect::to(offering.as_deref().unwrap_or(page)))
}

/// The author's change of this number, for a minute.
pub(crate) async fn undoable(
    state: &AppState,
    author: Author,
    action: &str,
    seq: Option<i64>,
) -> Result<Option<AuditEntry>, Problem> {
    let entry = if seq.is_some() { find(state, author, action, seq).await? } else { None };
    Ok(entry.filter(|entry| state.now().millis() - entry.at.millis() < UNDO_MILLIS))
}

/// The change that a form takes back, if it does, or why it cannot.
pub(crate) async fn check_undo(
    state: &AppState,
    author: Author,
    action: &str,
    seq: Option<i64>,
) -> Result<Option<AuditEntry>, Problem> {
    let entry = undoable(state, author, action, seq).await?;
    if seq.is_some() && entry.is_none() {
        let detail = "you can undo your own change for a minute, and this one is older or another's; change it back on its page";
        return Err(Problem::new(Kind::Conflict, detail));
    }
    Ok(entry)
}

async fn find(
    state: &AppState,
    author: Author,
    action: &str,
    seq: Option<i64>,
) -> Result<Option<AuditEntry>, Problem> {
    let filter = AuditFilter { action: action.to_owned(), actor: Some(author.actor) };
    let found = state.store.audit().list(&filter, seq.map(|seq| seq.saturating_add(1)), 1).await?.pop();
    Ok(found.filter(|entry| seq.is_none_or(|seq| seq == entry.seq)))
}
