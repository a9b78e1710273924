//! Requests that move a complete table: how many run at once, and how long each may take.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::{IntoResponse, Response},
};
use hyper::body::{Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep_until, timeout_at},
};

use super::{Kind, Problem};
use crate::{config::Limits, telemetry::log};

/// When to try again if too many streams are open.
const RETRY: Duration = Duration::from_secs(5);

/// Admits streams.
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
        // What is there as a whole is no stream any more.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| {
            let (deadline, request) = (Box::pin(sleep_until(deadline)), log::Names::current());
            Body::new(StreamBody { body, deadline, request, _permit: permit })
        })
    }
}

/// A streamed answer. It breaks off at the deadline, so that a part is not taken for the whole.
struct StreamBody {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    /// Its future ended with the head.
    request: Option<log::Names>,
    _permit: OwnedSemaphorePermit,
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        log::enter(self.request.clone(), || {
            if self.deadline.as_mut().poll(context).is_ready() {
                tracing::warn!("an export did not finish within limits.stream_ms and was cut off");
                return Poll::Ready(Some(Err(axum::Error::new("the export did not finish in time"))));
            }
            Pin::new(&mut self.body).poll_frame(context)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::to_bytes;
    use futures_util::stream;

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
