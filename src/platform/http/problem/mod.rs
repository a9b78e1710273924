//! All errors of requests.
//!
//! A handler returns a [`Problem`]. `pages::problem` gives it a body when the request is known: RFC 9457 JSON for
//! programs, a page for callers that ask for HTML. The caller sees the detail and the findings. The cause is logged here,
//! once, and never shown: a 5xx body reveals nothing internal.

mod body;
mod finding;
mod kind;

use std::{any::Any, fmt, time::Duration};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};

pub(crate) use self::finding::value_or_finding;
pub use self::{
    body::ProblemBody,
    finding::Finding,
    kind::{KINDS, Kind},
};
use super::RequestId;
use crate::platform::db::StoreError;

/// The detail of a problem whose cause is only for the log.
const IN_THE_LOG: &str = "the log has the cause under this request's id";

#[derive(Debug)]
pub struct Problem {
    public: PublicProblem,
    /// For the log only.
    cause: Option<String>,
}

/// The part of a problem that the caller sees.
#[derive(Debug, Clone)]
pub(crate) struct PublicProblem {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) retry_after: Option<Duration>,
}

impl Problem {
    /// The caller sees `detail`: what was found, what was expected, what to do.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let public = PublicProblem { kind, detail: detail.into(), findings: Vec::new(), retry_after: None };
        Self { public, cause: None }
    }

    /// A request that can be parsed but has these errors.
    pub fn invalid(mut findings: Vec<Finding>) -> Self {
        /// A request must not be able to produce megabytes of errors.
        const MOST: usize = 20;
        let detail = match &findings[..] {
            [only] => only.detail.clone(),
            all if all.len() > MOST => {
                format!("the request has {} errors; `errors` lists the first {MOST}", all.len())
            }
            all => format!("the request has {} errors; `errors` lists them", all.len()),
        };
        findings.truncate(MOST);
        Self::new(Kind::Invalid, detail).with_findings(findings)
    }

    /// A problem of the service itself. The cause goes to the log only.
    pub fn inside(kind: Kind, cause: impl fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..Self::new(kind, IN_THE_LOG) }
    }

    pub fn with_findings(mut self, findings: Vec<Finding>) -> Self {
        self.public.findings = findings;
        self
    }

    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.public.retry_after = Some(wait);
        self
    }

    pub fn kind(&self) -> Kind {
        self.public.kind
    }

    #[cfg(test)]
    pub(crate) fn shown_to_caller(&self) -> (Kind, &str, &[Finding]) {
        (self.public.kind, &self.public.detail, &self.public.findings)
    }

    /// The body for one failed item of a request with several items.
    pub fn into_item(self, request: &RequestId) -> ProblemBody {
        ProblemBody::new(self.log(), request)
    }

    /// Logs the cause and returns the part that the caller sees.
    fn log(self) -> PublicProblem {
        let code = self.public.kind.code();
        if let Some(cause) = self.cause {
            tracing::error!(code, error = cause, "request failed");
        } else if self.public.kind.status() >= 500 && self.public.kind != Kind::Stopping {
            tracing::error!(code, error = self.public.detail, "request failed");
        }
        self.public
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { .. }
            | StoreError::Busy { .. }
            | StoreError::Full
            | StoreError::ReadOnly => Self::inside(Kind::Unavailable, error),
            StoreError::DemoFull => Self::new(Kind::DemoFull, error.to_string()),
            StoreError::Conflict(_) => Self::new(Kind::Conflict, error.to_string()),
            StoreError::NotFound(_) => Self::new(Kind::NotFound, error.to_string()),
            StoreError::Unfit { .. } | StoreError::TooLarge { .. } => {
                Self::new(Kind::Invalid, error.to_string())
            }
            // The log must not name a customer.
            StoreError::Damaged { table: "customers", reason, .. } => Self::inside(
                Kind::Internal,
                format_args!("a row of table customers is damaged: {reason}; `atelier export` names it"),
            ),
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

/// A response without a body. `pages::problem`, which knows the request, adds the body.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let public = self.log();
        let mut response = status(public.kind).into_response();
        response.extensions_mut().insert(public);
        response
    }
}

pub(crate) fn status(kind: Kind) -> StatusCode {
    StatusCode::from_u16(kind.status()).expect("every kind has a valid status")
}

#[expect(clippy::needless_pass_by_value, reason = "panics are passed by value")]
pub(crate) fn from_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Problem::inside(Kind::Internal, format_args!("panic: {}", message.unwrap_or_default())).into_response()
}
