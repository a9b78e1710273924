//! A problem as programs read it.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Finding, Told};
use crate::web::http::RequestId;

/// Where each problem is explained: its `type` is this path with its code as the fragment.
const PAGE: &str = "/docs/problems";

/// A problem as programs read it (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// The page that explains this kind of problem.
    #[schema(examples("/docs/problems#invalid"))]
    r#type: String,
    title: &'static str,
    status: u16,
    /// What was found, what was expected, what to do.
    detail: String,
    /// What programs tell kinds apart by.
    #[schema(examples("invalid"))]
    code: &'static str,
    /// The request's X-Request-ID, by which the log knows it.
    request_id: String,
    /// Each place that something is the matter with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Finding>,
}

impl ProblemBody {
    pub(crate) fn new(told: Told, request: &RequestId) -> Self {
        let Told { kind, detail, findings, .. } = told;
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
