//! `/sign-in`: by name and password, or by a one-time link; also signing out and changing the password.

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{AppendHeaders, Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::Deserialize;

use super::visitor::{Guest, Stranger, Visitor, cookie, device_cookie, signed_out};
use crate::{
    people::{SignInError, Token, sql::people::Person},
    platform::{
        http::{AppState, Kind, Problem, https::Https},
        page::{Form, OpenForm, Page, PageQuery, Shell},
    },
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/sign-in", get(page).post(sign_in))
        .route("/sign-in/{link}", get(link).layer(map_response(hide_address)))
        .route("/sign-in/link", post(enter))
        .route("/sign-out", post(sign_out))
        .route("/password", get(password).post(change_password))
}

#[derive(Template)]
#[template(path = "people/sign-in.html")]
struct SignInPage {
    shell: Shell,
    next: String,
    name: String,
    refused: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

async fn page(
    State(state): State<AppState>,
    Guest(visitor): Guest,
    PageQuery(Next { next }): PageQuery<Next>,
) -> Result<Response, Problem> {
    if visitor.is_some() {
        return Ok(Redirect::to(destination(&next)).into_response());
    }
    let shell = Shell::outside(state.is_demo());
    let page = SignInPage { shell, next, name: String::new(), refused: None };
    Ok(Html(page.render()?).into_response())
}

#[derive(Deserialize)]
struct Credentials {
    name: String,
    password: String,
    #[serde(default)]
    next: String,
}

async fn sign_in(
    State(state): State<AppState>,
    Stranger { author, device, .. }: Stranger,
    Https(https): Https,
    OpenForm(Credentials { name, password, next }): OpenForm<Credentials>,
) -> Result<Response, Problem> {
    match state.access().by(author).sign_in(&name, &password, device.as_ref(), state.now()).await {
        Ok(token) => signed_in(&state, &token, https, destination(&next)).await,
        Err(error) => refuse(&state, error, name, next),
    }
}

/// The page again if another name, password or link may do.
fn refuse(state: &AppState, error: SignInError, name: String, next: String) -> Result<Response, Problem> {
    let status = match error {
        SignInError::Wrong => StatusCode::UNAUTHORIZED,
        SignInError::Link => StatusCode::NOT_FOUND,
        _ => return Err(error.into()),
    };
    let shell = Shell::outside(state.is_demo());
    let page = SignInPage { shell, next, name, refused: Some(error.to_string()) };
    Ok((status, Html(page.render()?)).into_response())
}

#[derive(Template)]
#[template(path = "people/sign-in/link.html")]
struct LinkPage {
    shell: Shell,
    name: String,
    link: String,
    refused: Option<String>,
}

/// Opening a link, as mail programs do, does not use it up.
async fn link(State(state): State<AppState>, Path(link): Path<String>) -> Result<Response, Problem> {
    match find_holder(&state, &link).await {
        Ok(person) => Ok(link_page(&state, &person, link, None)?.into_response()),
        Err(error) => refuse(&state, error, String::new(), String::new()),
    }
}

async fn find_holder(state: &AppState, link: &str) -> Result<Person, SignInError> {
    state.access().holder(&parse_link(link)?, state.now()).await
}

fn link_page(
    state: &AppState,
    person: &Person,
    link: String,
    refused: Option<String>,
) -> Result<Html<String>, askama::Error> {
    let page =
        LinkPage { shell: Shell::outside(state.is_demo()), name: person.name.to_string(), link, refused };
    page.render().map(Html)
}

/// A link's address is a secret until the link is used. The page's files and its form must not carry it to a proxy's
/// log in `Referer`. (`no-referrer` would also hide the form's origin, which `OpenForm` checks.)
async fn hide_address(mut response: Response) -> Response {
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    response
}

#[derive(Deserialize)]
struct Entry {
    /// In the body, because paths are logged.
    link: String,
    #[serde(default)]
    password: String,
}

async fn enter(
    State(state): State<AppState>,
    Stranger { author, host, .. }: Stranger,
    Https(https): Https,
    OpenForm(Entry { link, password }): OpenForm<Entry>,
) -> Result<Response, Problem> {
    let password = (!password.is_empty()).then_some(password);
    let access = state.access().by(author).of_shop(&host);
    let entered = match parse_link(&link) {
        Ok(link) => access.enter(&link, password.as_deref(), state.now()).await,
        Err(error) => Err(error),
    };
    match entered {
        Ok(token) => signed_in(&state, &token, https, destination("")).await,
        Err(error @ SignInError::Password(_)) => {
            let person = find_holder(&state, &link).await?;
            let page = link_page(&state, &person, link, Some(error.to_string()))?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(error) => refuse(&state, error, String::new(), String::new()),
    }
}

#[derive(Template)]
#[template(path = "people/password.html")]
struct PasswordPage {
    shell: Shell,
    name: String,
    has_password: bool,
    refused: Option<String>,
}

async fn password(State(state): State<AppState>, Guest(visitor): Guest) -> Result<Response, Problem> {
    let Some(visitor) = visitor else { return Ok(Redirect::to("/sign-in?next=%2Fpassword").into_response()) };
    Ok(password_page(&state, &visitor, None).await?.into_response())
}

async fn password_page(
    state: &AppState,
    visitor: &Visitor,
    refused: Option<String>,
) -> Result<Html<String>, Problem> {
    let has_password = state.access().has_password(visitor.person.id).await?;
    let (shell, name) = (visitor.plain_shell(), visitor.person.name.to_string());
    Ok(Html(PasswordPage { shell, name, has_password, refused }.render()?))
}

#[derive(Deserialize)]
struct NewPassword {
    #[serde(default)]
    old: String,
    password: String,
}

async fn change_password(
    State(state): State<AppState>,
    Guest(visitor): Guest,
    Https(https): Https,
    Form(NewPassword { old, password }): Form<NewPassword>,
) -> Result<Response, Problem> {
    let visitor = visitor.ok_or_else(signed_out)?;
    let access = state.access().by(visitor.author()).of_shop(&visitor.host);
    match access.change_password(&visitor.person, &old, &password, state.now()).await {
        Ok(token) => signed_in(&state, &token, https, destination("")).await,
        Err(error @ (SignInError::OldPassword | SignInError::Password(_))) => {
            let page = password_page(&state, &visitor, Some(error.to_string())).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
struct Nothing {}

async fn sign_out(
    State(state): State<AppState>,
    Guest(visitor): Guest,
    Https(https): Https,
    Form(Nothing {}): Form<Nothing>,
) -> Result<Response, Problem> {
    if let Some(visitor) = visitor {
        state.access().by(visitor.author()).sign_out(&visitor.token, state.now()).await?;
    }
    Ok(([(header::SET_COOKIE, cookie(None, https))], Redirect::to("/sign-in")).into_response())
}

async fn signed_in(state: &AppState, token: &Token, https: bool, to: &str) -> Result<Response, Problem> {
    let cookie = cookie(Some((token, state.access().lifetimes())), https);
    let device = state.access().device(token, state.now()).await?;
    let device = device.map(|device| [(header::SET_COOKIE, device_cookie(&device, https))]);
    let answer = (AppendHeaders([(header::SET_COOKIE, cookie)]), device.map(AppendHeaders), Redirect::to(to));
    Ok(answer.into_response())
}

/// The page after signing in; never one of another site, even if a link names it.
fn destination(next: &str) -> &str {
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        // A header takes no other characters, and an address has them percent-encoded.
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_ours { next } else { Page::Studio.path() }
}

fn parse_link(link: &str) -> Result<Token, SignInError> {
    Token::parse(link).ok_or(SignInError::Link)
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Wrong => Self::new(Kind::SignIn, error.to_string()),
            SignInError::TooMany(wait) => {
                Self::new(Kind::TooManyAttempts, error.to_string()).retry_after(wait)
            }
            SignInError::QueueFull(error) => Self::new(Kind::SignInsFull, error.to_string()),
            SignInError::Link => Self::new(Kind::NotFound, error.to_string()),
            SignInError::OldPassword | SignInError::Password(_) => {
                Self::new(Kind::Invalid, error.to_string())
            }
            SignInError::Store(error) => error.into(),
        }
    }
}
