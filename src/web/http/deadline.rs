//! The deadline of a request.

use std::future::Future;

use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::{Kind, Problem};
use crate::config::Limits;

/// Awaits the answer; a problem if it takes longer than `limits.request_ms`.
pub(crate) async fn limit(limits: Limits, answer: impl Future<Output = Response>) -> Response {
    let deadline = limits.request();
    timeout(deadline, answer).await.unwrap_or_else(|_| {
        let detail = format!("the request did not finish within {} ms; try again", deadline.as_millis());
        Problem::new(Kind::Deadline, detail).into_response()
    })
}
