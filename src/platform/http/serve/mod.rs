//! Accepts connections, enforces their limits, and shuts down without losing a request.
//!
//! At most `limits.connections` are open. When the last place is taken, the connection that has kept the service waiting
//! longest is cut: first among those that never sent a request, then among those between requests, then among those that
//! send a body or take an answer slowly, more than a second behind 16 kB/s. New connections have a second as well, while they
//! take no more than half of the places. A connection that waits for the service is never cut: while all do, new ones wait in
//! the kernel's queue.
//!
//! Over HTTP/2 a caller may leave one answer and take others, and hyper neither asks such an answer for more nor ends it. So
//! the bytes of each answer are followed until they are written, and a connection is as slow as its slowest answer.
//!
//! Shutdown has three steps. First the service keeps accepting for a moment, and every answer says
//! `Connection: close`, so that callers leave by themselves. Then it takes the connections that the kernel has already
//! accepted, closes the listener, and gives the last callers a moment to send their requests. Finally it waits for the
//! requests that have arrived completely, and cuts all other connections.

mod body;
mod held;
mod traffic;
mod work;

use std::{
    cmp::Reverse, collections::HashMap, convert::Infallible, error::Error, future::Future, net::SocketAddr,
    pin::pin, sync::Arc, time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, StatusCode, Version, header},
    response::{IntoResponse, Response},
};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{self, AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout},
};
use tower::Service;

pub(crate) use self::work::{Amount, Work};
use self::{
    body::{AnswerBody, Bodies, track_request},
    held::{Held, MUCH_OF_ALL},
    traffic::Watched,
};
use super::{
    https::OverTls,
    peer::Peer,
    tls::{HTTP_2, Tls},
};
use crate::config::Limits;

/// How long the service keeps accepting after it was told to stop.
const FAREWELL: Duration = Duration::from_millis(400);
/// How long the last callers have to send their requests.
const LAST_CALL: Duration = Duration::from_millis(400);
/// How long an answer may take to be written before its connection is cut.
const FLUSH: Duration = Duration::from_secs(1);
/// How long the caller of something that is no request may go on sending.
const LINGER: Duration = Duration::from_secs(1);
/// How long to wait after the system ran out of sockets.
const NO_SOCKETS: Duration = Duration::from_millis(100);
/// How often slow callers are looked for.
const SWEEP: Duration = Duration::from_millis(250);
/// The most that `limits.transfer_ms` can be while the service stops.
const LAST_TRANSFER_MS: u32 = 5000;
/// The longest head of a request, which is buffered until it is complete.
const HEAD_BYTES: u32 = 64 << 10;
/// How many bytes the kernel takes for a caller that does not read, besides those on their way.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 64 << 10;
/// The most requests that a connection may have at once over HTTP/2.
const STREAMS: u32 = 128;

/// Where to accept connections, and whether they begin with TLS.
#[derive(Debug)]
pub struct Listener {
    pub tcp: TcpListener,
    pub tls: Option<Arc<Tls>>,
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self { tcp, tls: None }
    }
}

/// Serves until `shutdown` completes, then lets the requests in progress finish.
pub(crate) async fn serve(
    Listener { tcp: listener, tls }: Listener,
    router: Router,
    limits: Limits,
    work: Work,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ending, stages) = watch::channel(Stage::Open);
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().max_buf_size(HEAD_BYTES as usize);
    http.http2().max_header_list_size(HEAD_BYTES).max_concurrent_streams(STREAMS);
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let connection = Connection { http, router, work, tls, stages };
    let held = Arc::default();
    let mut open = Open { connection, limits, tasks: JoinSet::new(), bodies: HashMap::new(), held, sweep };
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.has_room() => open.accept(accepted).await,
            () = &mut shutdown => break,
            () = open.wait() => {}
        }
    }
    ending.send_replace(Stage::Farewell);
    let farewell = Instant::now() + FAREWELL;
    while !open.tasks.is_empty() {
        tokio::select! {
            accepted = listener.accept(), if open.has_room() => open.accept(accepted).await,
            () = sleep_until(farewell) => break,
            () = open.wait() => {}
        }
    }
    // Connections that the kernel has already accepted must not be lost. The kernel is asked itself: tokio may not have
    // heard of the latest ones yet.
    let listener = listener.into_std()?;
    while let Ok((stream, peer)) = listener.accept() {
        let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
        open.accept(stream.map(|stream| (stream, peer))).await;
    }
    drop(listener);
    let last_call = Instant::now() + LAST_CALL;
    while !open.tasks.is_empty() {
        tokio::select! {
            () = sleep_until(last_call) => break,
            () = open.wait() => {}
        }
    }
    ending.send_replace(Stage::End);
    open.limits.transfer_ms = open.limits.transfer_ms.min(LAST_TRANSFER_MS);
    while !open.tasks.is_empty() {
        open.wait().await;
    }
    Ok(())
}

struct Open {
    connection: Connection,
    limits: Limits,
    tasks: JoinSet<()>,
    /// By their tasks.
    bodies: HashMap<Id, Arc<Bodies>>,
    /// Of all answers.
    held: Arc<Held>,
    sweep: Interval,
}

impl Open {
    fn has_room(&self) -> bool {
        self.bodies.len() < self.limits.connections as usize
    }

    async fn accept(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        match accepted {
            Ok((stream, peer)) => {
                let bodies = Arc::new(Bodies::new(Arc::clone(&self.held)));
                let serving = self.connection.clone().serve(stream, Peer(peer), Arc::clone(&bodies));
                let task = self.tasks.spawn(serving);
                self.bodies.insert(task.id(), bodies);
                self.make_room();
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

    /// Waits until a connection has ended, or until it is time to look for slow callers.
    async fn wait(&mut self) {
        tokio::select! {
            Some(ended) = self.tasks.join_next_with_id() => self.forget(ended),
            _ = self.sweep.tick() => self.cut_slow(),
        }
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        self.bodies.remove(&id);
    }

    /// Cuts a connection if no more can be accepted.
    fn make_room(&self) {
        if self.has_room() {
            return;
        }
        let now = Instant::now();
        let silent = self.bodies.values().filter(|bodies| bodies.traffic.is_silent()).count();
        let crowded = silent > self.limits.connections.div_ceil(2) as usize;
        let ranked =
            self.bodies.values().filter_map(|bodies| Some((bodies.traffic.rank(now, crowded)?, bodies)));
        if let Some((_, bodies)) = ranked.max_by(|(a, _), (b, _)| a.cmp(b)) {
            bodies.traffic.cut();
        }
    }

    fn cut_slow(&self) {
        let now = Instant::now();
        for bodies in self.bodies.values() {
            if bodies.traffic.is_overdue(now, self.limits) {
                bodies.traffic.cut();
            }
        }
        self.relieve(now);
        self.make_room();
    }

    /// Cuts connections whose callers do not take their answers, while these hold too much.
    fn relieve(&self, now: Instant) {
        let mut held = self.held.bytes();
        let late = self.bodies.values().filter_map(|bodies| Some((bodies.traffic.behind(now)?, bodies)));
        let mut late: Vec<_> = late.collect();
        late.sort_by_key(|(late, _)| Reverse(*late));
        for (_, bodies) in late {
            if held <= MUCH_OF_ALL {
                return;
            }
            held = held.saturating_sub(bodies.held());
            bodies.traffic.cut();
        }
    }
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

#[derive(Clone)]
struct Connection {
    http: auto::Builder<TokioExecutor>,
    router: Router,
    work: Work,
    tls: Option<Arc<Tls>>,
    stages: watch::Receiver<Stage>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, peer: Peer, bodies: Arc<Bodies>) {
        // Each answer is written at once, so waiting for more data would gain nothing.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        let Some(tls) = self.tls.clone() else { return self.converse(stream, peer, &bodies, false).await };
        let accepted = tokio::select! {
            accepted = tls.acceptor().accept(stream) => accepted,
            // A handshake counts towards the time for the head of the first request.
            () = bodies.traffic.wait_for_cut() => return,
            _ = self.stages.wait_for(|stage| *stage == Stage::End) => return,
        };
        // A failed handshake is the caller's concern: it may not trust the certificate.
        if let Ok(stream) = accepted {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
            self.converse(stream, peer, &bodies, is_http2).await;
        }
    }

    /// Answers requests until the caller leaves, is cut, or the service stops.
    async fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        bodies: &Arc<Bodies>,
        is_http2: bool,
    ) {
        let (stream, handed_back) = Watched::new(stream, Arc::clone(bodies));
        let is_refused = self.answer_all(stream, peer, bodies, is_http2).await;
        if is_refused && let Ok(stream) = handed_back.await {
            let _ = timeout(LINGER, linger(stream)).await;
        }
    }

    /// True if it ended with an answer to what is no request.
    async fn answer_all(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        bodies: &Arc<Bodies>,
        is_http2: bool,
    ) -> bool {
        if is_http2 {
            bodies.traffic.speak_http2();
        }
        let service = service_fn({
            let (router, work) = (self.router.clone(), self.work.clone());
            let (stages, has_tls) = (self.stages.clone(), self.tls.is_some());
            let bodies = Arc::clone(bodies);
            move |request: Request<hyper::body::Incoming>| {
                let mut request = request.map(Body::new);
                name_host(&mut request);
                request.extensions_mut().insert(peer);
                if has_tls {
                    request.extensions_mut().insert(OverTls);
                }
                answer(router.clone(), work.clone(), stages.clone(), Arc::clone(&bodies), request)
            }
        });
        let http = if is_http2 { self.http.http2_only() } else { self.http.http1_only() };
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            biased;
            // A broken connection is the caller's concern.
            ended = &mut connection => return ended.is_err_and(|error| is_no_request(&*error)),
            () = bodies.discard_rests() => {}
            // Over HTTP/2 the caller of an idle connection hears that it ends.
            () = bodies.traffic.wait_for_cut() => if !bodies.traffic.is_between_requests() { return false },
            // The stage's sender lives as long as the server does.
            _ = self.stages.wait_for(|stage| *stage == Stage::End) => {}
        }
        connection.as_mut().graceful_shutdown();
        let flushed = async {
            while timeout(FLUSH, connection.as_mut()).await.is_err() {
                if !bodies.traffic.is_busy() {
                    return;
                }
            }
        };
        tokio::select! {
            () = flushed => {}
            () = bodies.traffic.wait_for_cut() => {}
        }
        false
    }
}

fn is_no_request(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(hyper::Error::is_parse)
}

/// Reads and discards what the caller sends. If it were not read, the system would take back an answer that is on its way.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    stream.shutdown().await?;
    io::copy(&mut stream, &mut io::sink()).await?;
    Ok(())
}

async fn answer(
    mut router: Router,
    work: Work,
    stages: watch::Receiver<Stage>,
    bodies: Arc<Bodies>,
    request: Request,
) -> Result<Response<AnswerBody>, Infallible> {
    let head = measure_head(&request);
    let progress = bodies.begin(head);
    // HTTP/2 says in a frame of its own that a connection ends.
    let has_header = request.version() < Version::HTTP_2;
    // Before the wait, because a request that has arrived is not lost when the service stops.
    let request = track_request(request, &progress);
    // hyper refuses it only if it does not come at once.
    let is_too_long = head > HEAD_BYTES as usize;
    let mut response = if is_too_long {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response()
    } else if progress.may_begin().await {
        router.call(request).await?
    } else {
        refuse()
    };
    if !progress.has_room(&response) {
        response = refuse();
    }
    let mut response = response.map(|body| work.produce(body));
    if has_header && (is_too_long || *stages.borrow() != Stage::Open) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| AnswerBody { body, progress }))
}

/// The bytes of a request's head, as HTTP/1.1 writes it.
fn measure_head(request: &Request) -> usize {
    let uri = request.uri();
    let host = uri.authority().map_or(0, |authority| "https://".len() + authority.as_str().len());
    let target = host + uri.path_and_query().map_or(0, |target| target.as_str().len());
    let line = request.method().as_str().len() + target + " HTTP/1.1\r\n ".len();
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + fields.sum::<usize>() + "\r\n".len()
}

/// Callers that do not take their answers are cut within about a second. It has no body, so nothing of it waits.
fn refuse() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, HeaderValue::from(1))]).into_response()
}

/// HTTP/2 has the host in the address of the request, and everything here looks for it in `Host`.
fn name_host(request: &mut Request) {
    let named = request.uri().authority().map(|authority| HeaderValue::try_from(authority.as_str()));
    if request.version() == Version::HTTP_2
        && let Some(Ok(host)) = named
    {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
}
