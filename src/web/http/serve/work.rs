//! Keeps the threads that compute answers apart from those that move bytes. Requests that wait for a core would otherwise
//! delay everyone's bytes, and health checks, which are answered at once.

use std::{future::pending, io, panic::resume_unwind};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
};
use futures_util::{StreamExt, stream};
use tokio::{
    runtime::{Handle, Runtime},
    sync::mpsc,
    task::JoinSet,
};

/// The threads of the connections. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Connections(Option<Runtime>);

impl Connections {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self(Some(Runtime::new()?)))
    }

    pub(crate) async fn run(
        &self,
        serving: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> io::Result<()> {
        self.0.as_ref().expect("it is there until it is dropped; this is a bug").spawn(serving).await?
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // A runtime must not wait for its threads in another.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The runtime that computes.
#[derive(Debug, Clone)]
pub(crate) struct Work(Handle);

impl Work {
    /// The runtime of the caller.
    pub(crate) fn here() -> Self {
        Self(Handle::current())
    }

    /// Whether a request is answered by the connection's own thread: a health check, which computes nothing.
    pub(super) fn is_none(request: &Request) -> bool {
        matches!(request.uri().path(), "/livez" | "/readyz" | "/v1/livez" | "/v1/readyz")
    }

    /// Dropping the future ends the work.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let mut task = JoinSet::new();
        task.spawn_on(work, &self.0);
        match task.join_next().await.expect("there is one task; this is a bug") {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process ends.
            Err(_) => pending().await,
        }
    }

    /// The body, which is computed as it is sent, unless it is complete.
    pub(super) fn produce(&self, body: Body) -> Body {
        if body.size_hint().exact().is_some() {
            return body;
        }
        let (sender, receiver) = mpsc::channel(1);
        let mut task = JoinSet::new();
        let produce = async move {
            let mut parts = body.into_data_stream();
            while let Some(part) = parts.next().await {
                if sender.send(part).await.is_err() {
                    return;
                }
            }
        };
        task.spawn_on(produce, &self.0);
        let parts = stream::unfold((receiver, task), async |(mut receiver, mut task)| {
            let part = match receiver.recv().await {
                Some(part) => part,
                // A part must not be taken for the whole.
                None => Err(axum::Error::new(task.join_next().await?.err()?)),
            };
            Some((part, (receiver, task)))
        });
        Body::from_stream(parts)
    }
}
