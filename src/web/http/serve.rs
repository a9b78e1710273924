//! Connections: accepted, held to their time limits, and brought to an end so that no request is lost.
//!
//! Told to stop, the service goes on accepting for a moment and says in every answer that the connection closes,
//! so that callers leave by themselves. Then it takes what the kernel has accepted in its name, closes the
//! listener, and leaves newcomers a moment to send what they came for. What is left then is either busy, and is
//! waited for, or it is idle or not all of its request has arrived, and it is cut.

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

/// How long answers ask callers to leave before nobody is accepted any more, and how long those that came last may
/// take to send what they came for.
const FAREWELL: Duration = Duration::from_millis(400);
const LAST_CALL: Duration = Duration::from_millis(400);
/// How long an answer may take to leave a connection that is to be cut.
const FLUSH: Duration = Duration::from_secs(1);
/// How long to wait where the machine gives no more sockets.
const NO_SOCKETS: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is done, then lets the requests in progress finish. A connection may be `idle` for so long.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    idle: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ending, stages) = watch::channel(Stage::Open);
    let connections = Connections { http: http(idle), router, stages };
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => connections.take(accepted, &mut open).await,
            () = &mut shutdown => break,
            Some(_) = open.join_next() => {}
        }
    }
    ending.send_replace(Stage::Farewell);
    let farewell = Instant::now() + FAREWELL;
    while !open.is_empty() {
        tokio::select! {
            accepted = listener.accept() => connections.take(accepted, &mut open).await,
            () = sleep_until(farewell) => break,
            Some(_) = open.join_next() => {}
        }
    }
    // What the kernel has accepted meanwhile was accepted.
    while let Ok(accepted) = timeout(Duration::ZERO, listener.accept()).await {
        connections.take(accepted, &mut open).await;
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

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// Answers say that their connection closes.
    Farewell,
    /// Connections that no request is in progress on are cut.
    End,
}

fn http(idle: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle);
    http
}

/// What every connection needs.
#[derive(Clone)]
struct Connections {
    http: http1::Builder,
    router: Router,
    stages: watch::Receiver<Stage>,
}

impl Connections {
    async fn take(&self, accepted: io::Result<(TcpStream, std::net::SocketAddr)>, open: &mut JoinSet<()>) {
        match accepted {
            Ok((stream, _)) => {
                open.spawn(self.clone().hold(stream));
            }
            // The caller left before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted; raise the limit of open files");
                tokio::time::sleep(NO_SOCKETS).await;
            }
        }
    }

    async fn hold(mut self, stream: TcpStream) {
        // Answers are written whole: nothing is gained by waiting for more.
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
            // What breaks a connection is the caller's matter.
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
    let request = request.map(|body| Body::new(Passing { body, progress: Arc::clone(&progress) }));
    let mut response = router.call(request).await?;
    if *stages.borrow() != Stage::Open {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Body::new(Passing { body, progress })))
}

/// One request: in progress from when all of it has arrived until its answer is on its way.
struct Progress {
    /// Those of its connection.
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

/// A request's body that arrives, or an answer's that leaves.
struct Passing {
    body: Body,
    progress: Arc<Progress>,
}

impl HttpBody for Passing {
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
