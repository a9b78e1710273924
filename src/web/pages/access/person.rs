//! `/access/people/{id}`: what one person may do.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    ConfirmPage, Tab,
    people::{self, PersonView},
};
use crate::{
    domain::Role,
    store::{Conflict, Person, PersonId, StoreError},
    web::{
        http::{AppState, Finding, Kind, Problem, extract::Path},
        pages::{
            form::Form,
            shell::{Page, Shell},
            visitor::{Admin, Visitor},
        },
    },
};

#[derive(Template)]
#[template(path = "access/person.html")]
struct PersonPage {
    shell: Shell,
    tab: Tab,
    person: PersonView,
    roles: [Role; 3],
    /// Why what was asked for was not done.
    refused: Option<String>,
}

impl PersonPage {
    fn new(person: &Person, visitor: &Visitor, refused: Option<String>) -> Self {
        Self {
            shell: visitor.shell(Page::Access),
            tab: Tab::People,
            person: PersonView::new(person, visitor),
            roles: [Role::Stylist, Role::Analyst, Role::Admin],
            refused,
        }
    }
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
) -> Result<Html<String>, Problem> {
    let person = known(&state, id).await?;
    Ok(Html(PersonPage::new(&person, &visitor, None).render()?))
}

#[derive(Deserialize)]
pub(super) struct Change {
    change: Wish,
    role: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wish {
    Role,
    Link,
    Enable,
}

/// Gives another role, makes a new link, or lets somebody in again.
pub(super) async fn change(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
    headers: HeaderMap,
    Form(Change { change, role }): Form<Change>,
) -> Result<Response, Problem> {
    let person = known(&state, id).await?;
    let (actor, name) = (visitor.actor(), person.name.as_str());
    match change {
        Wish::Link if person.disabled_at.is_some() => {
            let detail = format!("{name} is disabled, so a link would let nobody in; enable them first");
            return Err(Problem::new(Kind::Conflict, detail));
        }
        Wish::Link => return people::link(&state, &visitor, &person, &headers).await,
        Wish::Enable => {
            state.store.people().set_disabled(id, None).await?;
            state.note(actor, "person.enable", name, json!({})).await?;
        }
        Wish::Role => {
            let role = self::role(role.as_deref().unwrap_or_default())?;
            match state.store.people().set_role(id, role).await {
                Ok(()) => {}
                Err(error @ StoreError::Conflict(Conflict::LastAdmin)) => {
                    let page = PersonPage::new(&person, &visitor, Some(error.to_string()));
                    return Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response());
                }
                Err(error) => return Err(error.into()),
            }
            let details = json!({"before": person.role.as_str(), "after": role.as_str()});
            state.note(actor, "person.role", name, details).await?;
        }
    }
    Ok(Redirect::to(&format!("/access/people/{}", id.0)).into_response())
}

/// What will be when somebody is disabled.
pub(super) async fn ask(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
) -> Result<Html<String>, Problem> {
    let person = known(&state, id).await?;
    Ok(Html(asking(&person, &visitor, None).render()?))
}

fn asking(person: &Person, visitor: &Visitor, refused: Option<String>) -> ConfirmPage {
    ConfirmPage {
        shell: visitor.shell(Page::Access),
        tab: Tab::People,
        title: format!("Disable {}?", person.name),
        consequence: "Their sign-ins end at once, and no password or link lets them in until an admin enables them \
                      again. What they did stays in the audit log under their name.",
        refused,
        button: "Disable",
        back: format!("/access/people/{}", person.id.0),
    }
}

#[derive(Deserialize)]
pub(super) struct Confirmed {}

pub(super) async fn disable(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
    Form(Confirmed {}): Form<Confirmed>,
) -> Result<Response, Problem> {
    let person = known(&state, id).await?;
    match state.store.people().set_disabled(id, Some(state.now())).await {
        Ok(()) => {}
        Err(error @ StoreError::Conflict(Conflict::LastAdmin)) => {
            let page = asking(&person, &visitor, Some(error.to_string()));
            return Ok((StatusCode::CONFLICT, Html(page.render()?)).into_response());
        }
        Err(error) => return Err(error.into()),
    }
    state.note(visitor.actor(), "person.disable", person.name.as_str(), json!({})).await?;
    Ok(Redirect::to("/access").into_response())
}

async fn known(state: &AppState, id: PersonId) -> Result<Person, Problem> {
    let person = state.store.people().get(id).await?;
    person.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no person {}", id.0)))
}

pub(super) fn role(text: &str) -> Result<Role, Problem> {
    text.parse().map_err(|reason: String| Problem::invalid(vec![Finding::parameter("role", reason)]))
}
