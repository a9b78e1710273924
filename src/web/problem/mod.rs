//! Everything that can go wrong with a request, and its two renderings.
//!
//! A handler returns a [`Problem`]; the layer `render` gives it a body when the request is known:
//! RFC 9457 for programs, a page for people who asked for HTML. A 5xx body says nothing of the inside;
//! the log has that once, here.

use std::{any::Any, fmt};

use askama::Template;
use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Serialize;

use super::{AppState, RequestId};
use crate::store::StoreError;

/// Where each problem is explained: its `type` is this path with its code as the fragment.
const PAGE: &str = "/docs/problems";

/// A problem as handlers know it.
#[derive(Debug)]
pub enum Problem {
    NoSuchPage,
    MethodNotAllowed,
    /// The database cannot be reached or cannot write.
    Store(StoreError),
    Template(askama::Error),
    Panic(String),
}

/// What is told of a problem. One row of the page that explains them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    /// What it means and what the caller can do.
    pub meaning: &'static str,
}

const NOT_FOUND: Kind = Kind {
    code: "not-found",
    status: 404,
    title: "There is nothing here",
    meaning: "No page or resource has this path. Check the path and the ids in it.",
};
const METHOD_NOT_ALLOWED: Kind = Kind {
    code: "method-not-allowed",
    status: 405,
    title: "This path does not take this method",
    meaning: "The path exists, the HTTP method does not fit it. The Allow header names those that do.",
};
const UNAVAILABLE: Kind = Kind {
    code: "unavailable",
    status: 503,
    title: "The service cannot answer right now",
    meaning: "Something that the service needs, such as its database, cannot be reached. Try again after \
              the time in Retry-After; the log names the cause under the request's id.",
};
const INTERNAL: Kind = Kind {
    code: "internal",
    status: 500,
    title: "Something went wrong inside",
    meaning: "A mistake in the service or a damaged record. The log names it under the request's id; \
              please report it with that.",
};

/// Every kind, in the order of the page.
pub const KINDS: [Kind; 4] = [NOT_FOUND, METHOD_NOT_ALLOWED, UNAVAILABLE, INTERNAL];

impl Problem {
    fn kind(&self) -> Kind {
        match self {
            Self::NoSuchPage => NOT_FOUND,
            Self::MethodNotAllowed => METHOD_NOT_ALLOWED,
            Self::Store(
                StoreError::Unreachable { .. }
                | StoreError::Busy { .. }
                | StoreError::Full
                | StoreError::ReadOnly,
            ) => UNAVAILABLE,
            Self::Store(_) | Self::Template(_) | Self::Panic(_) => INTERNAL,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchPage | Self::MethodNotAllowed => f.write_str(self.kind().title),
            Self::Store(error) => error.fmt(f),
            Self::Template(error) => error.fmt(f),
            Self::Panic(message) => write!(f, "panic: {message}"),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<askama::Error> for Problem {
    fn from(error: askama::Error) -> Self {
        Self::Template(error)
    }
}

/// Only carries the kind to `render`, which knows the request.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let kind = self.kind();
        if kind.status >= 500 {
            tracing::error!(code = kind.code, error = %self, "request failed");
        }
        let mut response = status(kind).into_response();
        response.extensions_mut().insert(kind);
        response
    }
}

fn status(kind: Kind) -> StatusCode {
    StatusCode::from_u16(kind.status).expect("every kind has a valid status; this is a bug")
}

/// For the layer that catches panics.
#[expect(clippy::needless_pass_by_value, reason = "the layer calls it so")]
pub(super) fn from_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Problem::Panic(message.unwrap_or_default()).into_response()
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: String,
    code: &'a str,
    request_id: &'a str,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    kind: Kind,
    detail: &'a str,
    request_id: &'a str,
}

/// Gives every problem its body.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let wants_page = wants_page(request.headers());
    let id =
        request.extensions().get::<RequestId>().cloned().expect("the outer layer sets it; this is a bug");
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let Some(kind) = response.extensions_mut().remove::<Kind>() else { return response };

    let detail = match kind {
        NOT_FOUND => format!("nothing is at {path}"),
        METHOD_NOT_ALLOWED => format!("{path} does not take {method}"),
        _ => "the log tells more under this request's id".to_owned(),
    };
    let mut rendered = if wants_page {
        page(&ProblemPage { kind, detail: &detail, request_id: id.as_str() })
    } else {
        let body = ProblemBody {
            r#type: format!("{PAGE}#{}", kind.code),
            title: kind.title,
            status: kind.status,
            detail,
            code: kind.code,
            request_id: id.as_str(),
        };
        let json = serde_json::to_vec(&body).expect("a problem is plain JSON; this is a bug");
        ([(header::CONTENT_TYPE, "application/problem+json")], json).into_response()
    };
    *rendered.status_mut() = status(kind);
    // Allow of a 405 and the like were set where the problem arose.
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            rendered.headers_mut().append(name, value.clone());
        }
    }
    rendered.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    if kind == UNAVAILABLE {
        rendered.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    rendered
}

/// Browsers name text/html in Accept; programs that take anything get JSON.
fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

fn page(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the problem page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[derive(Template)]
#[template(path = "docs/problems.html")]
struct ProblemsPage {
    kinds: &'static [Kind],
}

pub(super) fn router() -> Router<AppState> {
    Router::new().route(PAGE, get(problems))
}

async fn problems() -> Result<Html<String>, Problem> {
    Ok(Html(ProblemsPage { kinds: &KINDS }.render()?))
}
