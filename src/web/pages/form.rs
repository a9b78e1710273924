//! What a person sends from a page: queries and forms, in which a name may stand several times and an empty field
//! is none.

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use serde::de::DeserializeOwned;

use super::visitor;
use crate::{
    domain::TooManySlots,
    web::http::{Finding, Kind, Problem},
};

/// Longer than any form here.
const MOST: usize = 1 << 18;

/// The query of a page's address. Browsers send a form's empty fields too: those are as if they were not there.
#[derive(Debug)]
pub(crate) struct PageQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for PageQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let given = pairs.filter(|(_, value)| !value.is_empty());
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
        parse(query.as_bytes()).map(Self)
    }
}

/// A form that a page of this very session sent: it carries the session's `csrf`.
#[derive(Debug)]
pub(crate) struct Form<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let expected = visitor::token(request.headers()).map(|token| token.form_token());
        let body = read(request).await?;
        let given = form_urlencoded::parse(&body).find(|(name, _)| name == "csrf").map(|(_, value)| value);
        if expected.is_none() || expected.as_deref() != given.as_deref() {
            let detail = "the form was not made by a page of your present sign-in, so nothing was changed; load the \
                          page anew and send it again";
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        parse(&body).map(Self)
    }
}

/// A form of whoever is not signed in yet. It must come from a page of ours.
#[derive(Debug)]
pub(crate) struct OpenForm<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for OpenForm<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        if !is_from_here(request.headers()) {
            return Err(Problem::new(
                Kind::Forbidden,
                "the form came from another site, so nothing was done",
            ));
        }
        parse(&read(request).await?).map(Self)
    }
}

/// Whether a browser says that a page of ours sent it: by Sec-Fetch-Site, or over plain HTTP, where it leaves that
/// out, by Origin. A program that says nothing is nobody's victim.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin" || site == "none";
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_some() && host == text(header::HOST)
}

async fn read(request: Request) -> Result<Bytes, Problem> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_none_or(|found| !found.starts_with(FORM)) {
        let detail = format!("a page's form is {FORM}, found {}", media_type.unwrap_or("no content type"));
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    to_bytes(request.into_body(), MOST)
        .await
        .map_err(|_| Problem::new(Kind::TooLarge, format!("a page's form has at most {MOST} bytes")))
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(text);
    serde_path_to_error::deserialize(serde_html_form::Deserializer::new(pairs)).map_err(|error| {
        let name = error.path().to_string();
        let name = if name == "." { String::new() } else { name };
        Problem::invalid(vec![Finding::parameter(name, error.inner().to_string())])
    })
}

/// Hands over each parameter of a page's address, for views whose names are not all known beforehand; what is wrong
/// with which comes back.
pub(super) fn each_parameter(
    query: &str,
    mut take: impl FnMut(&str, &str) -> Result<(), String>,
) -> Vec<Finding> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .filter_map(|(name, value)| {
            take(&name, value.trim()).err().map(|detail| Finding::parameter(name, detail))
        })
        .collect()
}

/// What is wrong with an outfit of more slots than there are.
pub(super) fn too_long<T>(slots: &[T]) -> Option<Finding> {
    TooManySlots::check(slots.len()).err().map(|error| Finding::parameter("slot", error.to_string()))
}
