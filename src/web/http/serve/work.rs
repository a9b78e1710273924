//! Keeps the threads that compute answers apart from those that move bytes. Requests that wait for a core would otherwise
//! delay everyone's bytes, and health checks, which are answered at once.

use std::{
    future::pending,
    io,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

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

/// The longest body of a completion that computes little.
const LITTLE: u64 = 16 << 10;
/// With fewer other requests hardly anything else runs.
const FEW: usize = 2;

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
pub(crate) struct Work {
    runtime: Handle,
    running: Arc<AtomicUsize>,
}

/// A request that is being answered, until it is dropped.
struct Running<'a> {
    running: &'a AtomicUsize,
    others: usize,
}

impl<'a> Running<'a> {
    fn start(running: &'a AtomicUsize) -> Self {
        Self { running, others: running.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Work {
    /// The runtime of the caller.
    pub(crate) fn here() -> Self {
        Self { runtime: Handle::current(), running: Arc::default() }
    }

    /// Whether a request computes nothing: a health check.
    pub(super) fn is_none(request: &Request) -> bool {
        matches!(request.uri().path(), "/livez" | "/readyz" | "/v1/livez" | "/v1/readyz")
    }

    /// Whether a request computes little on its own threads: a completion, because its model runs on others.
    pub(super) fn is_little(request: &Request) -> bool {
        matches!(request.uri().path(), "/complete" | "/v1/complete")
            && request.body().size_hint().upper().is_some_and(|bytes| bytes <= LITTLE)
    }

    /// Dropping the future ends the work. Little of it stays on the connection's thread while hardly anything else runs: to hand it
    /// over and back wakes two threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        is_little: bool,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let running = Running::start(&self.running);
        if is_little && running.others < FEW {
            return work.await;
        }
        let mut task = JoinSet::new();
        task.spawn_on(work, &self.runtime);
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
        task.spawn_on(produce, &self.runtime);
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
