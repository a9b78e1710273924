//! Requests that move a complete table: how many run at once, and how long each may take.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{Kind, Problem};
use crate::{config::Limits, telemetry::log};

const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Streams {
    free: Arc<Semaphore>,
    limits: Limits,
}

impl Streams {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { free: Arc::new(Semaphore::new(limits.streams as usize)), limits }
    }

    /// Awaits the answer of a stream that is admitted. The stream ends when the answer's body does.
    pub(crate) async fn run(&self, answer: impl Future<Output = Response>) -> Response {
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            let detail = format!("{} imports and exports are already running", self.limits.streams);
            return Problem::new(Kind::TooManyStreams, detail).retry_after(RETRY).into_response();
        };
        let deadline = Instant::now() + self.limits.stream();
        let Ok(response) = timeout_at(deadline, answer).await else {
            let most = self.limits.stream().as_millis();
            let detail = format!("the import or export did not finish within {most} ms; split it");
            return Problem::new(Kind::Deadline, detail).into_response();
        };
        // A complete body is no stream any more.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| {
            // Its future ends with the head, and the body goes on.
            let (request, parts) = (log::Names::current(), body.into_data_stream());
            let parts = stream::unfold((parts, permit), move |(mut parts, permit)| {
                log::scope(request.clone(), async move {
                    let part = timeout_at(deadline, parts.next()).await.unwrap_or_else(|_| {
                        tracing::warn!("an export did not finish within limits.stream_ms and was cut off");
                        // A part must not be taken for the whole.
                        Some(Err(axum::Error::new("the export did not finish in time")))
                    });
                    Some((part?, (parts, permit)))
                })
            });
            // Compression asks once more after the end.
            Body::from_stream(parts.fuse())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::to_bytes;

    use super::*;

    /// Else what it logs has no request id.
    #[tokio::test]
    async fn a_body_is_made_as_a_part_of_its_request() {
        let request = log::Names::new([("id", "r-1".to_owned())]);
        let name = || async { Ok::<_, Infallible>(format!("{:?}", log::Names::current())) };
        let streamed = async { Body::from_stream(stream::once(name())).into_response() };
        let answer = log::scope(Some(request.clone()), Streams::new(Limits::default()).run(streamed)).await;
        assert!(log::Names::current().is_none());
        let body = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert_eq!(body, format!("{:?}", Some(request)));
    }
}
