//! `/access` and `/access/people/{id}`: people, their roles and their sign-in links.

use askama::Template;
use atelier_core::domain::Role;
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    ConfirmPage, Confirmed, Tab,
    visitor::{Admin, Visitor},
};
use crate::{
    people::{LINK, Person, PersonId, Token},
    platform::{
        db::{Conflict, Name, StoreError},
        http::{
            AppState, Finding, Kind, Problem,
            extract::Path,
            https::{Https, base_url},
        },
        page::{Form, Page, Refused, Shell, figures},
    },
};

#[derive(Template)]
#[template(path = "people/access.html")]
struct PeoplePage {
    shell: Shell,
    people: Vec<Person>,
    own: PersonId,
    /// The name and the role in the form, and why adding them failed.
    name: String,
    role: Role,
    /// Names this form, so that one that is sent twice adds one person.
    form: Uuid,
    refused: Option<String>,
}

pub(super) async fn page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
) -> Result<Html<String>, Problem> {
    people_page(&state, &visitor, (String::new(), Role::Stylist), None).await
}

async fn people_page(
    state: &AppState,
    visitor: &Visitor,
    (name, role): (String, Role),
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let page = PeoplePage {
        shell: visitor.shell(Page::Access),
        people: state.store.people().list().await?,
        own: visitor.person.id,
        name,
        role,
        form: Uuid::new_v4(),
        refused,
    };
    Ok(Html(page.render()?))
}

#[derive(Deserialize)]
pub(super) struct NewPerson {
    name: String,
    role: String,
    form: Option<String>,
}

pub(super) async fn create(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Https(https): Https,
    headers: HeaderMap,
    Form(NewPerson { name, role, form }): Form<NewPerson>,
) -> Result<Response, Problem> {
    let role = parse_role(&role)?;
    let refuse = async |status: StatusCode, reason: String| {
        let page = people_page(&state, &visitor, (name.clone(), role), Some(reason)).await?;
        Ok((status, page).into_response())
    };
    let name = match Name::new(name.trim()) {
        Ok(name) => name,
        Err(error) => return refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).await,
    };
    let form = form.unwrap_or_else(|| Uuid::new_v4().to_string());
    let link = Token::of_form(&visitor.token, &format!("{form} {name} {role}"));
    let (store, now) = (state.store.by(visitor.author()), state.now());
    let person = match store.people().create(&name, role, Some(&link.hash()), now).await {
        Ok(person) => person,
        Err(error @ StoreError::Conflict(Conflict::NameTaken)) => {
            match state.access().holder(&link, now).await {
                // The same form was sent before.
                Ok(person) => person,
                Err(_) => return refuse(StatusCode::CONFLICT, error.to_string()).await,
            }
        }
        Err(error) => return Err(error.into()),
    };
    link_page(&visitor, &person, &link, &base_url(&headers, https))
}

#[derive(Template)]
#[template(path = "people/access/link.html")]
struct LinkPage<'a> {
    shell: Shell,
    person: &'a Person,
    link: String,
}

fn link_page(visitor: &Visitor, person: &Person, token: &Token, base_url: &str) -> Result<Response, Problem> {
    let page = LinkPage {
        shell: visitor.shell(Page::Access),
        person,
        link: format!("{base_url}/sign-in/{}", token.as_str()),
    };
    Ok(Html(page.render()?).into_response())
}

#[derive(Template)]
#[template(path = "people/access/person.html")]
struct PersonPage<'a> {
    shell: Shell,
    person: &'a Person,
    own: PersonId,
    name: String,
    refused: Option<String>,
}

/// `refused` is why a change failed, and the name that was typed.
fn show_person(
    person: &Person,
    visitor: &Visitor,
    refused: Option<(String, Option<String>)>,
) -> Result<Html<String>, Problem> {
    let (shell, own) = (visitor.shell(Page::Access), visitor.person.id);
    let (refused, typed) = refused.unzip();
    let name = typed.flatten().unwrap_or_else(|| person.name.to_string());
    Ok(Html(PersonPage { shell, person, own, name, refused }.render()?))
}

pub(super) async fn person_page(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
) -> Result<Html<String>, Problem> {
    show_person(&find(&state, id).await?, &visitor, None)
}

#[derive(Deserialize)]
pub(super) struct ChangeForm {
    change: Change,
    role: Option<String>,
    name: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Role,
    Link,
    /// Ends all sessions.
    #[serde(rename = "sign-out")]
    SignOut,
    Enable,
    /// Of somebody who never signed in.
    Name,
    /// Somebody who never signed in.
    Remove,
}

/// Changes the role, creates a sign-in link, ends all sessions, enables the person again, or renames or removes them.
pub(super) async fn change(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
    Https(https): Https,
    headers: HeaderMap,
    Form(ChangeForm { change, role, name }): Form<ChangeForm>,
) -> Result<Response, Problem> {
    let person = find(&state, id).await?;
    let store = state.store.by(visitor.author());
    let (people, now) = (store.people(), state.now());
    match change {
        Change::Link if person.disabled_at.is_some() => {
            let detail = format!("{} is disabled, so a link would not work; enable them first", person.name);
            return Err(Problem::new(Kind::Conflict, detail));
        }
        Change::Link => {
            let token = state.access().by(visitor.author()).link(id, now).await?;
            return link_page(&visitor, &person, &token, &base_url(&headers, https));
        }
        _ => {}
    }
    let changed = async {
        let typed = name.as_deref().unwrap_or_default().trim();
        let wanted = role.as_deref().unwrap_or_default();
        match change {
            Change::Link => {}
            Change::SignOut => store.sessions().end_all(id, now).await?,
            Change::Enable => people.set_disabled(id, false, now).await?,
            Change::Role => people.set_role(id, parse_role(wanted)?, now).await?,
            Change::Name => people.rename(id, &Name::new(typed).map_err(Refused::invalid)?, now).await?,
            Change::Remove => people.remove(id, now).await?,
        }
        Ok::<_, Refused>(())
    };
    if let Err(refused) = changed.await {
        let (status, reason) = refused.for_form()?;
        return Ok((status, show_person(&person, &visitor, Some((reason, name)))?).into_response());
    }
    let is_gone = matches!(change, Change::Remove);
    let next = if is_gone { "/access".to_owned() } else { format!("/access/people/{}", id.0) };
    Ok(Redirect::to(&next).into_response())
}

pub(super) async fn confirm_disable(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
) -> Result<Html<String>, Problem> {
    show_disable(&find(&state, id).await?, &visitor, None)
}

fn show_disable(
    person: &Person,
    visitor: &Visitor,
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let page = ConfirmPage {
        shell: visitor.shell(Page::Access),
        tab: Tab::People,
        title: format!("Disable {}?", person.name),
        consequence: "They are signed out at once and cannot sign in until an admin enables them again. Their \
                      changes stay in the audit log under their name.",
        refused,
        button: "Disable",
        back: format!("/access/people/{}", person.id.0),
    };
    Ok(Html(page.render()?))
}

pub(super) async fn disable(
    Admin(visitor): Admin,
    State(state): State<AppState>,
    Path(id): Path<PersonId>,
    Form(Confirmed {}): Form<Confirmed>,
) -> Result<Response, Problem> {
    let person = find(&state, id).await?;
    let store = state.store.by(visitor.author());
    let Err(error) = store.people().set_disabled(id, true, state.now()).await else {
        return Ok(Redirect::to("/access").into_response());
    };
    let (status, reason) = Refused::from(error).for_form()?;
    Ok((status, show_disable(&person, &visitor, Some(reason))?).into_response())
}

async fn find(state: &AppState, id: PersonId) -> Result<Person, Problem> {
    let person = state.store.people().get(id).await?;
    person.ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no person {}", id.0)))
}

fn parse_role(text: &str) -> Result<Role, Problem> {
    text.parse().map_err(|reason: String| Problem::invalid(vec![Finding::parameter("role", reason)]))
}
