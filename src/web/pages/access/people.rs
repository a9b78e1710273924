//! The people, and how another one comes in: by a link that is shown once.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{NOT_KEPT, Tab};
use crate::{
    domain::Role,
    service::access::LINK,
    store::{Conflict, Name, Person, StoreError},
    web::{
        http::{AppState, Problem},
        pages::{
            figures,
            form::Form,
            shell::{Page, Shell},
            visitor::{Admin, Visitor},
        },
    },
};

#[derive(Template)]
#[template(path = "access.html")]
struct PeoplePage {
    shell: Shell,
    tab: Tab,
    people: Vec<PersonView>,
    /// What was typed, and why nobody was added.
    name: String,
    refused: Option<String>,
}

/// A person as this page and their own show them.
pub(super) struct PersonView {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) since: String,
    pub(super) disabled: Option<String>,
    /// Whoever looks at the page.
    pub(super) own: bool,
}

impl PersonView {
    pub(super) fn new(person: &Person, visitor: &Visitor) -> Self {
        Self {
            id: person.id.0,
            name: person.name.to_string(),
            role: person.role,
            since: figures::moment(person.created_at),
            disabled: person.disabled_at.map(figures::moment),
            own: person.id == visitor.person.id,
        }
    }
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    everybody(&state, &visitor, String::new(), None).await
}

async fn everybody(
    state: &AppState,
    visitor: &Visitor,
    name: String,
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let people = state.store.people().list().await?;
    let people = people.iter().map(|person| PersonView::new(person, visitor)).collect();
    let page = PeoplePage { shell: visitor.shell(Page::Access), tab: Tab::People, people, name, refused };
    Ok(Html(page.render()?))
}

#[derive(Deserialize)]
pub(super) struct Newcomer {
    name: String,
    role: String,
}

/// Adds somebody and shows the link that lets them in.
pub(super) async fn create(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    headers: HeaderMap,
    Form(Newcomer { name, role }): Form<Newcomer>,
) -> Result<Response, Problem> {
    let role = super::person::role(&role)?;
    let again = async |status: StatusCode, refused: String| {
        let page = everybody(&state, &visitor, name.clone(), Some(refused)).await?;
        Ok((status, page).into_response())
    };
    let person = match Name::new(name.trim()) {
        Ok(name) => state.store.people().create(&name, role, state.now()).await,
        Err(error) => return again(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).await,
    };
    let person = match person {
        Ok(person) => person,
        Err(error @ StoreError::Conflict(Conflict::NameTaken)) => {
            return again(StatusCode::CONFLICT, error.to_string()).await;
        }
        Err(error) => return Err(error.into()),
    };
    let details = json!({"role": role.as_str()});
    state.note(visitor.actor(), "person.create", person.name.as_str(), details).await?;
    link(&state, &visitor, &person, &headers).await
}

#[derive(Template)]
#[template(path = "access/link.html")]
struct LinkPage {
    shell: Shell,
    tab: Tab,
    person: PersonView,
    link: String,
    hours: u64,
}

/// Makes a person's link, which replaces the one before, and shows it this once.
pub(super) async fn link(
    state: &AppState,
    visitor: &Visitor,
    person: &Person,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let token = state.access.link(person.id, state.now()).await?;
    state.note(visitor.actor(), "person.link", person.name.as_str(), json!({})).await?;
    let page = LinkPage {
        shell: visitor.shell(Page::Access),
        tab: Tab::People,
        person: PersonView::new(person, visitor),
        link: format!("{}/sign-in/{}", here(headers), token.as_str()),
        hours: LINK.as_secs() / 3600,
    };
    Ok((NOT_KEPT, Html(page.render()?)).into_response())
}

/// Where the browser found the service: a colleague's will find it there, too.
fn here(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text(header::HOST.as_str()) else { return String::new() };
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{host}")
}
