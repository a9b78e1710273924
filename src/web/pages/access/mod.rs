//! `/access`: who gets in. People and what they may do, the keys of programs, and what either changed.

mod audit;
mod keys;
mod people;
mod person;

use askama::Template;
use axum::{
    Router,
    http::{HeaderName, header},
    routing::get,
};

use super::AppState;
use crate::web::pages::shell::Shell;
use crate::{
    store::{KeyId, PersonId},
    web::http::extract::PathParameter,
};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/access", get(people::page).post(people::create))
        .route("/access/people/{id}", get(person::page).post(person::change))
        .route("/access/people/{id}/disable", get(person::ask).post(person::disable))
        .route("/access/keys", get(keys::page).post(keys::create))
        .route("/access/keys/{id}/revoke", get(keys::ask).post(keys::revoke))
        .route("/access/audit", get(audit::page))
}

/// The pages below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    People,
    Keys,
    Audit,
}

/// Asks before something is done that others will notice.
#[derive(Template)]
#[template(path = "access/confirm.html")]
struct ConfirmPage {
    shell: Shell,
    tab: Tab,
    title: String,
    /// What will be the case afterwards.
    consequence: &'static str,
    /// Why it was not done, where it was tried.
    refused: Option<String>,
    button: &'static str,
    back: String,
}

/// A page with a secret on it stays nowhere.
const NOT_KEPT: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

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
