//! `/access/keys`: the API keys of programs, and publishable ones of shops' pages.

use std::time::Duration;

use askama::Template;
use atelier_core::domain::Timestamp;
use axum::{
    extract::State,
    http::HeaderMap,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    ConfirmPage, Confirmed, Tab,
    visitor::{Admin, Visitor},
};
use crate::{
    people::{Key, Opens, PageOrigin, RequireKey, Scope, sql::keys::ApiKey},
    platform::{
        db::{KeyId, Name},
        http::{
            AppState, Finding, Kind, Problem,
            extract::Path,
            https::{Https, base_url},
        },
        page::{Form, Page, Refused, Shell, figures},
    },
};

/// The lifetimes to choose from, in days.
const LIFETIMES: [u64; 4] = [7, 30, 90, 365];

#[derive(Template)]
#[template(path = "people/access/keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<ApiKey>,
    now: Timestamp,
    rule: RequireKey,
    typed: NewKey,
    /// Another for each form.
    form: Uuid,
    refused: Option<String>,
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    let days = Some(LIFETIMES[2]);
    let usual = NewKey { label: String::new(), scope: Vec::new(), origins: None, days, form: None };
    keys_page(&state, &visitor, usual, None).await
}

async fn keys_page(
    state: &AppState,
    visitor: &Visitor,
    typed: NewKey,
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let page = KeysPage {
        shell: visitor.shell(Page::Access),
        keys: state.store.api_keys().list().await?,
        now: state.now(),
        rule: state.access().rule(),
        typed,
        form: Uuid::new_v4(),
        refused,
    };
    Ok(Html(page.render()?))
}

#[derive(Clone, Deserialize)]
pub(super) struct NewKey {
    label: String,
    #[serde(default)]
    scope: Vec<String>,
    /// Of the form for publishable keys: what spaces separate.
    origins: Option<String>,
    /// Days until the key expires; none means never.
    days: Option<u64>,
    /// Names the form, so that one that is sent twice makes one key.
    form: Option<String>,
}

#[derive(Template)]
#[template(path = "people/access/key.html")]
struct KeyPage {
    shell: Shell,
    key: Key,
    record: ApiKey,
    /// The service's address, for pages of shops.
    here: String,
}

pub(super) async fn create(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Https(https): Https,
    headers: HeaderMap,
    Form(typed): Form<NewKey>,
) -> Result<Response, Problem> {
    match issue(&state, &visitor, typed.clone()).await {
        Ok((key, record)) => {
            let here = base_url(&headers, https);
            let page = KeyPage { shell: visitor.shell(Page::Access), key, record, here };
            Ok(Html(page.render()?).into_response())
        }
        Err(refused) => {
            let (status, reason) = refused.for_form()?;
            Ok((status, keys_page(&state, &visitor, typed, Some(reason)).await?).into_response())
        }
    }
}

async fn issue(state: &AppState, visitor: &Visitor, typed: NewKey) -> Result<(Key, ApiKey), Refused> {
    let NewKey { label, scope, origins, days, form } = typed;
    let name = Name::new(label.trim()).map_err(Refused::invalid)?;
    let opens = read_opens(&scope, origins.as_deref())?;
    if let Some(days) = days.filter(|days| !LIFETIMES.contains(days)) {
        let detail = format!("a key expires after one of {LIFETIMES:?} days, or never; found {days}");
        return Err(Problem::invalid(vec![Finding::parameter("days", detail)]).into());
    }
    let lifetime = days.map(|days| Duration::from_hours(24 * days));
    let form = form.unwrap_or_else(|| Uuid::new_v4().to_string());
    let key = Key::of_form(&visitor.token, &format!("{form} {name} {opens:?} {days:?}"), &opens);
    let access = state.access().by(visitor.author());
    let record = access.record_key(&key, &name, &opens, lifetime, state.now()).await?;
    Ok((key, record))
}

fn read_opens(scopes: &[String], origins: Option<&str>) -> Result<Opens, Refused> {
    if let Some(origins) = origins {
        let origins: Result<Vec<PageOrigin>, String> = origins.split_whitespace().map(str::parse).collect();
        let origins = origins.map_err(Refused::invalid)?;
        if origins.is_empty() {
            return Err(Refused::invalid("a publishable key needs the origin of at least one site"));
        }
        return Ok(Opens::Pages(origins));
    }
    let scopes: Result<Vec<Scope>, String> = scopes.iter().map(|scope| scope.parse()).collect();
    let scopes = scopes.map_err(|reason| Problem::invalid(vec![Finding::parameter("scope", reason)]))?;
    if scopes.is_empty() {
        return Err(Refused::invalid("a key needs at least one scope; choose what it may do"));
    }
    Ok(Opens::Scopes(scopes))
}

pub(super) async fn confirm_revoke(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<KeyId>,
) -> Result<Html<String>, Problem> {
    let key = find(&state, id).await?;
    let page = ConfirmPage {
        shell: visitor.shell(Page::Access),
        tab: Tab::Keys,
        title: format!("Revoke the key {}?", key.label),
        consequence: "Requests with this key are refused with 401 at once. A revoked key cannot be restored; if a \
                      program still needs one, create its new key first.",
        refused: None,
        button: "Revoke",
        back: "/access/keys".to_owned(),
    };
    Ok(Html(page.render()?))
}

pub(super) async fn revoke(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<KeyId>,
    Form(Confirmed {}): Form<Confirmed>,
) -> Result<Redirect, Problem> {
    find(&state, id).await?;
    state.store.by(visitor.author()).api_keys().revoke(id, state.now()).await?;
    Ok(Redirect::to("/access/keys"))
}

async fn find(state: &AppState, id: KeyId) -> Result<ApiKey, Problem> {
    let keys = state.store.api_keys().list().await?;
    let key = keys.into_iter().find(|key| key.id == id);
    key.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no API key {}", id.0)))
}
