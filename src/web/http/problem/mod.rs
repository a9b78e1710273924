//! Everything that can go wrong with a request.
//!
//! A handler returns a [`Problem`]; `pages::problem` gives it a body when the request is known: RFC 9457 for programs, a
//! page for people who asked for HTML. What is told stands in the problem's detail and
//! findings; what is for the log alone, its cause, is logged here, once, and never told: a 5xx body says
//! nothing of the inside.

mod body;
mod finding;
mod kind;

use std::{any::Any, fmt, time::Duration};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};

pub use self::{
    body::ProblemBody,
    finding::Finding,
    kind::{KINDS, Kind},
};
use crate::store::StoreError;
use crate::web::http::RequestId;

/// What a 5xx says where its cause is not the caller's to know.
const IN_THE_LOG: &str = "the log tells more under this request's id";

/// A problem as handlers know it.
#[derive(Debug)]
pub struct Problem {
    told: Told,
    /// For the log.
    cause: Option<String>,
}

/// The part of a problem that the caller is told.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) retry_after: Option<Duration>,
}

impl Problem {
    /// `detail` is for the caller: what was found, what was expected, what to do.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            told: Told { kind, detail: detail.into(), findings: Vec::new(), retry_after: None },
            cause: None,
        }
    }

    /// A request that can be read and makes no sense, at each of these places.
    pub fn invalid(mut findings: Vec<Finding>) -> Self {
        /// Nobody reads more at once, and a request must not be able to ask for megabytes of them.
        const MOST: usize = 20;
        let detail = match &findings[..] {
            [only] => only.detail.clone(),
            all if all.len() > MOST => {
                format!("{} things are wrong with the request, errors has the first {MOST}", all.len())
            }
            all => format!("{} things are wrong with the request, see errors", all.len()),
        };
        findings.truncate(MOST);
        Self::new(Kind::Invalid, detail).with_findings(findings)
    }

    /// A problem of the service's own. The cause goes to the log, and nowhere else.
    pub fn inside(kind: Kind, cause: impl fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..Self::new(kind, IN_THE_LOG) }
    }

    pub fn with_findings(mut self, findings: Vec<Finding>) -> Self {
        self.told.findings = findings;
        self
    }

    /// When it is worth trying again.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.told.retry_after = Some(wait);
        self
    }

    pub fn kind(&self) -> Kind {
        self.told.kind
    }

    /// What the caller is told: the kind, the detail, and the findings.
    #[cfg(test)]
    pub(crate) fn told(&self) -> (Kind, &str, &[Finding]) {
        (self.told.kind, &self.told.detail, &self.told.findings)
    }

    /// As one item of a list of answers: of one request, some parts can be done and others not.
    pub fn into_item(self, request: &RequestId) -> ProblemBody {
        ProblemBody::new(self.logged(), request)
    }

    /// What is told, once the log has the rest.
    fn logged(self) -> Told {
        let code = self.told.kind.code();
        if let Some(cause) = self.cause {
            tracing::error!(code, error = cause, "request failed");
        } else if self.told.kind.status() >= 500 {
            tracing::error!(code, error = self.told.detail, "request failed");
        }
        self.told
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { .. }
            | StoreError::Busy { .. }
            | StoreError::Full
            | StoreError::ReadOnly => {
                Self::inside(Kind::Unavailable, error).retry_after(Duration::from_secs(1))
            }
            StoreError::Conflict(_) => Self::new(Kind::Conflict, error.to_string()),
            StoreError::NotFound(_) => Self::new(Kind::NotFound, error.to_string()),
            StoreError::Unfit { .. } => Self::new(Kind::Invalid, error.to_string()),
            StoreError::Newer { .. }
            | StoreError::Altered { .. }
            | StoreError::NotSqlite
            | StoreError::Damaged { .. }
            | StoreError::Other(_) => Self::inside(Kind::Internal, error),
        }
    }
}

impl From<askama::Error> for Problem {
    fn from(error: askama::Error) -> Self {
        Self::inside(Kind::Internal, error)
    }
}

/// Only carries what is told to `render`, which knows the request.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let told = self.logged();
        let mut response = status(told.kind).into_response();
        response.extensions_mut().insert(told);
        response
    }
}

pub(crate) fn status(kind: Kind) -> StatusCode {
    StatusCode::from_u16(kind.status()).expect("every kind has a valid status; this is a bug")
}

/// For the layer that catches panics.
#[expect(clippy::needless_pass_by_value, reason = "the layer calls it so")]
pub(crate) fn from_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Problem::inside(Kind::Internal, format_args!("panic: {}", message.unwrap_or_default())).into_response()
}
