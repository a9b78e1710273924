//! The timing of an answer, in its body and as a `Server-Timing` header for browsers and proxies.

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue},
    response::{IntoResponseParts, ResponseParts},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::completion::Cost;

static HEADER: HeaderName = HeaderName::from_static("server-timing");

/// How the time was spent, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Timing)]
pub(crate) struct TimingBody {
    /// Waiting for a free model, summed over all passes.
    queue_ms: f64,
    /// Running the model, summed over all passes.
    inference_ms: f64,
    /// From reading the request to this answer.
    total_ms: f64,
    /// Number of inference jobs for this answer.
    questions: usize,
    /// Size of the largest batch that one of them ran in.
    batch: usize,
}

impl TimingBody {
    pub(crate) fn new(cost: Cost, took: Duration) -> Self {
        let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            queue_ms: millis(cost.queued),
            inference_ms: millis(cost.inferred),
            total_ms: millis(took),
            questions: cost.questions,
            batch: cost.batch,
        }
    }
}

impl IntoResponseParts for TimingBody {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Self::Error> {
        let Self { queue_ms, inference_ms, total_ms, .. } = self;
        let text = format!("queue;dur={queue_ms}, inference;dur={inference_ms}, total;dur={total_ms}");
        let value = HeaderValue::try_from(text).expect("names and numbers");
        parts.headers_mut().insert(HEADER.clone(), value);
        Ok(parts)
    }
}
