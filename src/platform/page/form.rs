//! Extractors for the pages' queries and forms. A name may occur several times; an empty field counts as missing.

use std::borrow::Cow;

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::platform::{
    db::{Expected, Versions},
    fault::Fault,
    http::{
        AppState, Finding, Kind, Problem,
        extract::{Incoming, check_media_type},
    },
    page::session,
};

const MAX_BYTES: u64 = 1 << 18;
/// The longest body of a form before sign-in: enough for the longest name and password, and for a page to return to.
const MAX_OPEN_BYTES: u64 = 1 << 14;

/// The query of a page's address. Browsers send a form's empty fields too; these are dropped. Parameters that the page does
/// not have are ignored: mails and advertisements add theirs to links.
#[derive(Debug)]
pub(crate) struct PageQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for PageQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let filled: Vec<(Cow<'_, str>, Cow<'_, str>)> =
            pairs.filter(|(_, value)| !value.is_empty()).collect();
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&filled).finish();
        let words = |name: &str| {
            // A list's place is part of the path.
            let name = name.split('[').next().unwrap_or_default();
            let (_, value) = filled.iter().find(|(other, _)| other == name)?;
            Some(format!("this page cannot read {value:?} as its {name}; open it without, and choose there"))
        };
        parse(query.as_bytes(), words).map(Self)
    }
}

/// A form from a page of the same session, proved by its field `csrf`.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let session = session::token(request.headers(), request.extensions());
        let body = read(request, MAX_BYTES, state).await?;
        let field =
            |wanted| form_urlencoded::parse(&body).find(|(name, _)| name == wanted).map(|(_, value)| value);
        if !session.zip(field("csrf")).is_some_and(|(session, found)| session.is_form_token(&found)) {
            let mut detail =
                "the form belongs to another sign-in, so nothing was changed; reload the page and send \
                              it again"
                    .to_owned();
            // The only long text of any form.
            if let Some(note) = field("note").filter(|note| !note.trim().is_empty()) {
                detail = format!("{detail}. Your note was: {note}");
            }
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        parse(&body, |_| None).map(Self)
    }
}

/// A form for people who are not signed in yet. It must come from one of our pages.
#[derive(Debug)]
pub(crate) struct OpenForm<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for OpenForm<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        if !is_from_here(request.headers()) {
            return Err(Problem::new(
                Kind::Forbidden,
                "the form came from another site, so nothing was done",
            ));
        }
        parse(&read(request, MAX_OPEN_BYTES, state).await?, |_| None).map(Self)
    }
}

/// Whether the browser reports one of our pages as the form's source: in Sec-Fetch-Site or, over plain HTTP, where
/// browsers omit it, in Origin. A request with neither header comes from a program, which cannot be tricked this way.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin" || site == "none";
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_some() && host == text(header::HOST)
}

async fn read(request: Request, max_bytes: u64, state: &AppState) -> Result<Vec<u8>, Problem> {
    const FORM: &str = "application/x-www-form-urlencoded";
    check_media_type(request.headers(), FORM, |found| found == FORM)?;
    let limits = state.limits;
    Incoming::new(request, max_bytes, limits).read_all(limits.body()).await
}

/// A query as links have it; what is missing is left out.
pub(crate) fn query(parameters: &impl Serialize) -> String {
    serde_html_form::to_string(parameters).expect("parameters are words and numbers")
}

pub(crate) fn address(path: &str, parameters: &impl Serialize) -> String {
    format!("{path}?{}", query(parameters))
}

pub(crate) fn line(field: &str, detail: &str) -> String {
    if field.is_empty() { detail.to_owned() } else { format!("{field}: {detail}") }
}

/// The version that is expected to be stored; an empty one expects none.
pub(crate) fn expected(version: &str) -> Expected {
    if version.is_empty() {
        return Expected { one_of: None, none_of: Some(Versions::Any) };
    }
    Expected { one_of: Some(Versions::OneOf(vec![version.to_owned()])), none_of: None }
}

/// The problem of a name without a document of a kind.
pub(crate) fn gone(what: &str, name: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no {what} {name:?}; it may have been deleted"))
}

/// The refusal if somebody else changed a document of a kind.
pub(crate) fn changed_before(what: &str) -> Fault {
    let detail = format!(
        "the {what} was added, changed or deleted in the meantime, so nothing was stored; look at it again"
    );
    Fault::new("", detail)
}

/// `words` says for people what is wrong with a parameter.
fn parse<T: DeserializeOwned>(text: &[u8], words: impl Fn(&str) -> Option<String>) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(text);
    serde_path_to_error::deserialize(serde_html_form::Deserializer::new(pairs)).map_err(|error| {
        let name = error.path().to_string();
        let name = if name == "." { String::new() } else { name };
        let detail = words(&name).unwrap_or_else(|| error.inner().to_string());
        Problem::invalid(vec![Finding::parameter(name, detail)])
    })
}
