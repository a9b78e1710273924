//! `/access`: people and their roles, API keys, and the audit log of their changes.

pub(crate) mod audit;
mod keys;
mod people;
pub(crate) mod sign_in;
pub(crate) mod visitor;

use askama::Template;
use axum::{Router, routing::get};
use serde::Deserialize;

use super::{KeyId, PersonId};
use crate::platform::{
    http::{AppState, extract::PathParameter},
    page::Shell,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/access", get(people::page).post(people::create))
        .route("/access/people/{id}", get(people::person_page).post(people::change))
        .route("/access/people/{id}/disable", get(people::confirm_disable).post(people::disable))
        .route("/access/keys", get(keys::page).post(keys::create))
        .route("/access/keys/{id}/revoke", get(keys::confirm_revoke).post(keys::revoke))
        .route("/access/audit", get(audit::page))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    People,
    Keys,
    Audit,
}

/// The page before an action that affects others.
#[derive(Template)]
#[template(path = "people/access/confirm.html")]
struct ConfirmPage {
    shell: Shell,
    tab: Tab,
    title: String,
    consequence: &'static str,
    refused: Option<String>,
    button: &'static str,
    back: String,
}

/// The empty form that confirms an action.
#[derive(Deserialize)]
pub(crate) struct Confirmed {}

fn number(text: &str) -> Result<i64, String> {
    let id = text.parse().ok().filter(|id| *id > 0);
    id.ok_or_else(|| format!("an id is a whole number above 0, found {text:?}"))
}

impl PathParameter for PersonId {
    fn parse(text: &str) -> Result<Self, String> {
        number(text).map(Self)
    }
}

impl PathParameter for KeyId {
    fn parse(text: &str) -> Result<Self, String> {
        number(text).map(Self)
    }
}
