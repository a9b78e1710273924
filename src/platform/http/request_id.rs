//! Every request has an id: the caller's if it sent a usable one, otherwise a new one. It is returned with the answer
//! and appears in every log line and problem of the request.

use std::convert::Infallible;

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderName, HeaderValue, request::Parts},
    response::Response,
};
use uuid::Uuid;

use super::{metrics::method_name, routes::matched, trace::TraceParent};
use crate::telemetry::log;

static HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Long enough for common id formats; longer ones would bloat the log.
const MAX_BYTES: usize = 128;

#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("checked when it was assigned")
    }

    pub(crate) fn put_on(self, response: &mut Response) {
        response.headers_mut().insert(HEADER.clone(), self.0);
    }
}

pub(crate) fn assign(request: &mut Request) -> RequestId {
    let sent = request.headers().get(&HEADER).filter(|value| is_usable(value)).cloned();
    let id = RequestId(sent.unwrap_or_else(|| {
        HeaderValue::try_from(Uuid::new_v4().to_string()).expect("a UUID is a header value")
    }));
    request.extensions_mut().insert(id.clone());
    id
}

fn is_usable(value: &HeaderValue) -> bool {
    (1..=MAX_BYTES).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// The names in its log lines. They have the route's template: paths and queries contain the ids of customers, and
/// the secrets of sign-in links.
pub(crate) fn for_log(request: &Request) -> log::Names {
    let extensions = request.extensions();
    let id = extensions.get::<RequestId>().map(|id| ("id", id.as_str()));
    let trace = extensions.get::<TraceParent>().map(|parent| ("trace_id", parent.trace_id()));
    let method = ("method", method_name(request.method()));
    let route = ("route", matched(extensions).unwrap_or("none"));
    let names = id.into_iter().chain(trace).chain([method, route]);
    log::Names::new(names.map(|(name, text)| (name, text.to_owned())))
}

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().expect("`web::around` sets it"))
    }
}
