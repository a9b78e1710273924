//! Extractors for the pages' queries and forms. A name may occur several times; an empty field counts as missing.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use serde::de::DeserializeOwned;

use super::visitor;
use crate::{
    domain::TooManySlots,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{Incoming, check_media_type},
    },
};

/// The longest body of a form.
const MAX_BYTES: u64 = 1 << 18;
/// The longest body of a form before sign-in: enough for the longest name and password, and for a page to return to.
const MAX_OPEN_BYTES: u64 = 1 << 14;

/// The query of a page's address. Browsers send a form's empty fields too; these are dropped.
#[derive(Debug)]
pub(crate) struct PageQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for PageQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let filled = pairs.filter(|(name, value)| !value.is_empty() && !is_tracking(name));
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(filled).finish();
        parse(query.as_bytes()).map(Self)
    }
}

/// A form from a page of the same session, proved by its field `csrf`.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let session = visitor::token(request.headers(), request.extensions());
        let body = read(request, MAX_BYTES, state).await?;
        let found = form_urlencoded::parse(&body).find(|(name, _)| name == "csrf").map(|(_, value)| value);
        if !session.zip(found).is_some_and(|(session, found)| session.is_form_token(&found)) {
            let detail = "the form belongs to another sign-in, so nothing was changed; reload the page and send it \
                          again";
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        parse(&body).map(Self)
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
        parse(&read(request, MAX_OPEN_BYTES, state).await?).map(Self)
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

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(text);
    serde_path_to_error::deserialize(serde_html_form::Deserializer::new(pairs)).map_err(|error| {
        let name = error.path().to_string();
        let name = if name == "." { String::new() } else { name };
        Problem::invalid(vec![Finding::parameter(name, error.inner().to_string())])
    })
}

/// Whether a parameter comes from a mail or an advertisement: such links get them on their way.
fn is_tracking(name: &str) -> bool {
    let names = [
        "fbclid", "gclid", "gbraid", "wbraid", "dclid", "ttclid", "igshid", "srsltid", "msclkid", "mc_cid",
        "mc_eid", "_ga", "_gl",
    ];
    name.starts_with("utm_") || names.contains(&name)
}

/// Passes each parameter of a query to `take`, for views whose parameter names are not fixed. Returns a finding for
/// each parameter that `take` refused.
pub(super) fn each_parameter(
    query: &str,
    mut take: impl FnMut(&str, &str) -> Result<(), String>,
) -> Vec<Finding> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .filter(|(name, _)| !is_tracking(name))
        .filter_map(|(name, value)| {
            take(&name, value.trim()).err().map(|detail| Finding::parameter(name, detail))
        })
        .collect()
}

/// A finding if the outfit has too many slots.
pub(super) fn too_long<T>(slots: &[T]) -> Option<Finding> {
    TooManySlots::check(slots.len()).err().map(|error| Finding::parameter("slot", error.to_string()))
}
