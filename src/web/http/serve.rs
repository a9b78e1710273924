//! Accepts connections, enforces their time limits, and shuts down without losing a request.
//!
//! Shutdown has three steps. First the service keeps accepting for a moment, and every answer says
//! `Connection: close`, so that callers leave by themselves. Then it takes the connections that the kernel has already
//! accepted, closes the listener, and gives the last callers a moment to send their requests. Finally it waits for the
//! requests that have arrived completely, and cuts all other connections.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderValue, header},
    response::Response,
};
use hyper::{
    body::{Frame, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tower_service::Service;

/// How long the service keeps accepting after it was told to stop.
const FAREWELL: Duration = Duration::from_millis(400);
/// How long the last callers have to send their requests.
const LAST_CALL: Duration = Duration::from_millis(400);
/// How long an answer may take to be written before its connection is cut.
const FLUSH: Duration = Duration::from_secs(1);
/// How long to wait after the system ran out of sockets.
const NO_SOCKETS: Duration = Duration::from_millis(100);

/// Serves until `shutdown` completes, then lets the requests in progress finish. A connection may stay idle for
/// `idle`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    idle: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ending, stages) = watch::channel(Stage::Open);
    let connections = Connections { http: http_builder(idle), router, stages };
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => connections.accept(accepted, &mut open).await,
            () = &mut shutdown => break,
            Some(_) = open.join_next() => {}
        }
    }
    ending.send_replace(Stage::Farewell);
    let farewell = Instant::now() + FAREWELL;
    while !open.is_empty() {
        tokio::select! {
            accepted = listener.accept() => connections.accept(accepted, &mut open).await,
            () = sleep_until(farewell) => break,
            Some(_) = open.join_next() => {}
        }
    }
    // Connections that the kernel has already accepted must not be lost.
    while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
        connections.accept(accepted, &mut open).await;
    }
    drop(listener);
    let last_call = Instant::now() + LAST_CALL;
    while !open.is_empty() {
        tokio::select! {
            () = sleep_until(last_call) => break,
            Some(_) = open.join_next() => {}
        }
    }
    ending.send_replace(Stage::End);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// The stage of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// Every answer says `Connection: close`.
    Farewell,
    /// Connections without a request in progress are cut.
    End,
}

fn http_builder(idle: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle);
    http
}

/// Shared by all connections.
#[derive(Clone)]
struct Connections {
    http: http1::Builder,
    router: Router,
    stages: watch::Receiver<Stage>,
}

impl Connections {
    async fn accept(&self, accepted: io::Result<(TcpStream, std::net::SocketAddr)>, open: &mut JoinSet<()>) {
        match accepted {
            Ok((stream, _)) => {
                open.spawn(self.clone().serve(stream));
            }
            // The caller left before the connection was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections; raise the limit of open files");
                tokio::time::sleep(NO_SOCKETS).await;
            }
        }
    }

    async fn serve(mut self, stream: TcpStream) {
        // Each answer is written at once, so waiting for more data would gain nothing.
        let _ = stream.set_nodelay(true);
        let busy = Arc::new(AtomicUsize::new(0));
        let service = service_fn({
            let (router, stages, busy) = (self.router.clone(), self.stages.clone(), Arc::clone(&busy));
            move |request: Request<hyper::body::Incoming>| {
                let progress =
                    Arc::new(Progress { busy: Arc::clone(&busy), arrived: AtomicBool::new(false) });
                answer(router.clone(), stages.clone(), progress, request.map(Body::new))
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // A broken connection is the caller's concern.
            _ = &mut connection => return,
            // The stage's sender lives as long as the server does.
            _ = self.stages.wait_for(|stage| *stage == Stage::End) => {}
        }
        connection.as_mut().graceful_shutdown();
        while timeout(FLUSH, connection.as_mut()).await.is_err() {
            if busy.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

async fn answer(
    mut router: Router,
    stages: watch::Receiver<Stage>,
    progress: Arc<Progress>,
    request: Request,
) -> Result<Response, Infallible> {
    if request.body().is_end_stream() {
        progress.arrive();
    }
    let request = request.map(|body| Body::new(TrackedBody { body, progress: Arc::clone(&progress) }));
    let mut response = router.call(request).await?;
    if *stages.borrow() != Stage::Open {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Body::new(TrackedBody { body, progress })))
}

/// One request. It is in progress from when it has arrived completely until its answer is sent.
struct Progress {
    /// How many requests are in progress on the connection.
    busy: Arc<AtomicUsize>,
    arrived: AtomicBool,
}

impl Progress {
    fn arrive(&self) {
        if !self.arrived.swap(true, Ordering::Relaxed) {
            self.busy.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if *self.arrived.get_mut() {
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The body of a request or an answer, which reports when it ends.
struct TrackedBody {
    body: Body,
    progress: Arc<Progress>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None)) {
            self.progress.arrive();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
