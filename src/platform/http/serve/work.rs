//! Keeps the threads that compute answers apart from those that move bytes, but for small completions, whose models have threads
//! of their own, and for what precedes every handler. Requests that wait for a core would otherwise delay everyone's bytes, and health checks.

use std::{
    future::pending,
    io,
    panic::resume_unwind,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use atelier_engine::inference::available_cores;
use axum::{
    body::{Body, HttpBody},
    extract::Request,
};
use futures_util::{StreamExt, stream};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use crate::{platform::http::routes::VERSION, telemetry::carried};

/// The longest body of a completion that computes little.
const LITTLE: u64 = 16 << 10;
/// Begins the paths of documents.
const DOCUMENTS: [&str; 3] = ["/docs", "/openapi.json", "/static/"];
/// While fewer other requests run, small completions delay health checks and others' bytes by a few milliseconds.
const FEW: usize = 64;

/// The threads of the connections. They end when this is dropped.
#[derive(Debug)]
struct Connections(Option<Runtime>);

impl Connections {
    fn start() -> io::Result<Self> {
        // The models need the other cores, and threads that look for each other's work cost more than they move.
        let threads = available_cores().div_ceil(2);
        Ok(Self(Some(Builder::new_multi_thread().worker_threads(threads).enable_all().build()?)))
    }

    async fn run(&self, serving: impl Future<Output = io::Result<()>> + Send + 'static) -> io::Result<()> {
        self.0.as_ref().expect("it is there until it is dropped").spawn(serving).await?
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

/// The runtime that computes. The threads of the connections end with its last clone, after what requests left to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    runtime: Handle,
    running: Arc<AtomicUsize>,
    connections: Arc<OnceLock<Connections>>,
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

/// A task that ends when this is dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How much the handler of a request computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// A health check.
    Nothing,
    /// A small completion, whose model runs on threads of its own, or a document that is at hand.
    Little,
    Much,
}

impl Amount {
    pub(crate) fn of(request: &Request) -> Self {
        let path = request.uri().path();
        match path.strip_prefix(VERSION).unwrap_or(path) {
            "/livez" | "/readyz" => Self::Nothing,
            "/complete" if request.body().size_hint().upper().is_some_and(|most| most <= LITTLE) => {
                Self::Little
            }
            _ if DOCUMENTS.iter().any(|start| path.starts_with(start)) => Self::Little,
            _ => Self::Much,
        }
    }
}

impl Work {
    /// The runtime of the caller.
    pub(crate) fn here() -> Self {
        Self { runtime: Handle::current(), running: Arc::default(), connections: Arc::default() }
    }

    /// Runs what accepts connections on their threads.
    pub(crate) async fn serve(
        &self,
        serving: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> io::Result<()> {
        let connections = Connections::start()?;
        self.connections.get_or_init(|| connections).run(serving).await
    }

    /// Dropping the future ends the work. Little of it stays on the connection's thread while few others run: to hand it over and
    /// back wakes two threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        amount: Amount,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if amount == Amount::Nothing {
            return work.await;
        }
        let running = Running::start(&self.running);
        if amount == Amount::Little && running.others < FEW {
            return work.await;
        }
        let mut task = Task(self.runtime.spawn(carried(work)));
        match (&mut task.0).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process ends.
            Err(_) => pending().await,
        }
    }

    /// The body, which is computed as it is sent, unless it is complete.
    pub(crate) fn produce(&self, body: Body) -> Body {
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
