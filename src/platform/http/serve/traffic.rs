//! The service's waits for the caller of a connection, so that silent and slow callers do not shut others out.

use std::{
    cmp::Reverse,
    collections::HashMap,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Notify, oneshot},
    time::Instant,
};

use super::body::Bodies;
use crate::config::{Limits, TRANSFER_BYTES};

/// How long a transfer may be behind its pace before its connection may be cut in favour of another, and how long a new
/// connection may take to send a request while there are few like it.
const PAUSE: Duration = Duration::from_secs(1);
/// The pace of a transfer, in bytes a millisecond.
const PACE: usize = 16;

/// The state of one connection, which its task writes and the accepting task reads.
#[derive(Debug)]
pub(crate) struct Traffic {
    state: Mutex<State>,
    leave: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether it has sent a request.
    used: bool,
    is_http2: bool,
    /// Requests whose answer is not complete, and those among them that have arrived completely.
    requests: usize,
    arrived: usize,
    /// When it was opened, or the last answer was complete.
    since: Instant,
    /// When the first bytes of the next request arrived. Over HTTP/2 bytes may also be about the connection.
    head: Option<Instant>,
    /// For the rest of a request.
    body: Wait,
    /// For the caller to take answers, by the numbers of their requests.
    answers: HashMap<usize, Taking>,
}

/// An answer that the caller takes.
#[derive(Debug, Default)]
struct Taking {
    wait: Wait,
    /// How many pieces of it wait.
    pieces: usize,
}

/// How long a transfer has waited for the caller since the last [`TRANSFER_BYTES`]. Time that the service takes does not
/// count.
#[derive(Debug, Default)]
struct Wait {
    before: Duration,
    /// If it waits now.
    since: Option<Instant>,
    passed: usize,
}

impl Wait {
    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    fn pass(&mut self, bytes: usize) {
        self.pause();
        self.passed += bytes;
        if self.passed >= TRANSFER_BYTES {
            *self = Self::default();
        }
    }

    fn pause(&mut self) {
        self.before += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    fn so_far(&self, now: Instant) -> Option<Duration> {
        Some(self.before + (now - self.since?))
    }
}

/// The service's waits, in the order in which connections are cut to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    FirstRequest,
    NextRequest,
    /// The rest of a request.
    Body,
    /// That the caller takes its answer.
    Taking,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let state = State {
            used: false,
            is_http2: false,
            requests: 0,
            arrived: 0,
            since: Instant::now(),
            head: None,
            body: Wait::default(),
            answers: HashMap::new(),
        };
        Self { state: Mutex::new(state), leave: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn speak_http2(&self) {
        self.state().is_http2 = true;
    }

    /// A request's head has arrived.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.used = true;
        state.head = None;
        state.body = Wait::default();
        state.requests += 1;
    }

    /// A request has arrived completely.
    pub(crate) fn arrive(&self) {
        self.state().arrived += 1;
    }

    /// A piece of an answer waits for the caller.
    pub(crate) fn offer(&self, number: usize) {
        let mut state = self.state();
        let taking = state.answers.entry(number).or_default();
        taking.pieces += 1;
        taking.wait.begin();
    }

    /// The caller took a part of a piece.
    pub(crate) fn take(&self, number: usize, bytes: usize) {
        if let Some(taking) = self.state().answers.get_mut(&number) {
            taking.wait.pass(bytes);
            taking.wait.begin();
        }
    }

    /// The caller took a piece. Until the next one the service is waited for.
    pub(crate) fn settle(&self, number: usize) {
        if let Some(taking) = self.state().answers.get_mut(&number) {
            taking.pieces -= 1;
            if taking.pieces == 0 {
                taking.wait.pause();
            }
        }
    }

    /// An answer is complete.
    pub(crate) fn end(&self, number: usize, arrived: bool) {
        let mut state = self.state();
        state.answers.remove(&number);
        state.requests -= 1;
        state.arrived -= usize::from(arrived);
        state.since = Instant::now();
    }

    /// The rest of a body was read, so that the next bytes are a request's.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.head = None;
        state.since = Instant::now();
    }

    /// Whether a request is in progress: it has arrived completely, and its answer is not complete.
    pub(crate) fn is_busy(&self) -> bool {
        self.state().arrived > 0
    }

    /// Whether the next request is waited for.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(self.state().awaited(Instant::now()), Some((Awaited::NextRequest, _)))
    }

    /// How far the caller is behind with taking an answer, if that is too far.
    pub(crate) fn behind(&self, now: Instant) -> Option<Duration> {
        let state = self.state();
        let (waited, passed) = state.longest(now)?;
        Some(late(waited, passed)).filter(|late| *late > PAUSE)
    }

    /// Whether no request has come yet.
    pub(crate) fn is_silent(&self) -> bool {
        !self.state().used
    }

    /// The greatest is the first to be cut. `None` if the service is what the caller waits for, or the caller has a moment
    /// left; with `crowded`, silent callers have none.
    pub(crate) fn rank(&self, now: Instant, crowded: bool) -> Option<impl Ord + use<>> {
        let state = self.state();
        let (awaited, waited) = state.awaited(now)?;
        let (at_once, passed) = match awaited {
            Awaited::FirstRequest => (crowded, 0),
            Awaited::NextRequest => (true, 0),
            Awaited::Body => (false, state.body.passed),
            Awaited::Taking => (false, state.longest(now)?.1),
        };
        let late = late(waited, passed);
        // Both kinds of transfers are equal.
        let order = awaited.min(Awaited::Body);
        (at_once || late > PAUSE).then_some((Reverse(order), late))
    }

    pub(crate) fn is_overdue(&self, now: Instant, limits: Limits) -> bool {
        let state = self.state();
        match state.awaited(now) {
            Some((Awaited::FirstRequest, waited)) => waited > limits.head(),
            Some((Awaited::NextRequest, waited)) => {
                state.head.map_or(waited > limits.idle(), |head| now - head > limits.head())
            }
            Some((Awaited::Taking, waited)) => waited > limits.transfer(),
            // The reader of a body has its own limits, and answers.
            Some((Awaited::Body, _)) | None => false,
        }
    }

    /// Tells the connection's task to cut it.
    pub(crate) fn cut(&self) {
        self.leave.notify_one();
    }

    /// Completes when the connection is to be cut and no request would be lost.
    pub(crate) async fn wait_for_cut(&self) {
        loop {
            self.leave.notified().await;
            if self.state().awaited(Instant::now()).is_some() {
                return;
            }
        }
    }
}

impl State {
    /// The service's current wait, and its length.
    fn awaited(&self, now: Instant) -> Option<(Awaited, Duration)> {
        if let Some((waited, _)) = self.longest(now) {
            return Some((Awaited::Taking, waited));
        }
        match (self.requests, self.used) {
            (0, false) => Some((Awaited::FirstRequest, now - self.since)),
            (0, true) => Some((Awaited::NextRequest, now - self.since)),
            _ if self.arrived < self.requests => Some((Awaited::Body, self.body.so_far(now)?)),
            _ => None,
        }
    }

    /// How long the caller has waited longest with taking an answer, and what it has taken of it since.
    fn longest(&self, now: Instant) -> Option<(Duration, usize)> {
        let waits = self.answers.values().map(|taking| &taking.wait);
        waits.filter_map(|wait| Some((wait.so_far(now)?, wait.passed))).max()
    }

    fn received(&mut self, bytes: usize) {
        if self.requests > 0 {
            self.body.pass(bytes);
        } else if !self.is_http2 {
            self.head.get_or_insert_with(Instant::now);
        }
    }
}

/// How far a transfer is behind its pace.
fn late(waited: Duration, passed: usize) -> Duration {
    waited.saturating_sub(Duration::from_millis((passed / PACE) as u64))
}

/// A connection's stream, which reports what it receives. hyper drops it, and it is handed back then.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: Option<S>,
    bodies: Arc<Bodies>,
    back: Option<oneshot::Sender<S>>,
}

impl<S: Unpin> Watched<S> {
    pub(crate) fn new(stream: S, bodies: Arc<Bodies>) -> (Self, oneshot::Receiver<S>) {
        let (back, handed_back) = oneshot::channel();
        (Self { stream: Some(stream), bodies, back: Some(back) }, handed_back)
    }

    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(self.stream.as_mut().expect("it is there until this is dropped"))
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // The connection may be gone.
            let _ = back.send(stream);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = self.stream().poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        let mut state = self.bodies.traffic.state();
        if result.is_pending() {
            state.body.begin();
        } else if bytes > 0 {
            state.received(bytes);
        }
        drop(state);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
