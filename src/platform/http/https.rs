//! Whether a request came by https. Cookies, links and headers depend on it.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, header, request::Parts},
};

/// In the extensions of a request that arrived encrypted at our own listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverTls;

/// Whether the browser speaks https: with our own listener, or with a balancer that says so in `X-Forwarded-Proto`.
pub(crate) fn is_https(headers: &HeaderMap, extensions: &Extensions) -> bool {
    let reported = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    // Each further proxy may add its own protocol; the browser's comes first.
    let first = reported.and_then(|protocols| protocols.split(',').next());
    extensions.get::<OverTls>().is_some()
        || first.is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https"))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Https(pub(crate) bool);

impl<S: Send + Sync> FromRequestParts<S> for Https {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(is_https(&parts.headers, &parts.extensions)))
    }
}

/// The service's address as the person's browser reached it.
pub(crate) fn base_url(headers: &HeaderMap, https: bool) -> String {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let Some(host) = host else { return String::new() };
    let scheme = if https { "https" } else { "http" };
    format!("{scheme}://{host}")
}
