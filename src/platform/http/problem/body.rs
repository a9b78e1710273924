//! The JSON body of a problem.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Finding, PublicProblem};
use crate::platform::http::RequestId;

/// The page that explains all problems. A problem's `type` is this path with its code as the fragment.
const PAGE: &str = "/docs/problems";

/// A problem (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// The page that explains this kind of problem.
    #[schema(examples("/docs/problems#invalid"))]
    r#type: String,
    /// The kind of problem, in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// The error, what was expected, and what to do.
    detail: String,
    /// Identifies the kind of problem; it never changes.
    #[schema(examples("invalid"))]
    code: &'static str,
    /// The request's X-Request-ID, which is also in the log.
    request_id: String,
    /// The located errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Finding>,
}

impl ProblemBody {
    pub(crate) fn new(problem: PublicProblem, request: &RequestId) -> Self {
        let PublicProblem { kind, detail, findings, .. } = problem;
        Self {
            r#type: format!("{PAGE}#{}", kind.code()),
            title: kind.title(),
            status: kind.status(),
            detail,
            code: kind.code(),
            request_id: request.as_str().to_owned(),
            errors: findings,
        }
    }
}
