//! What the service waits for from the caller of a connection, so that silent and slow callers do not shut others out.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::Instant,
};

use crate::config::{Limits, TRANSFER_BYTES};

/// How long a body or an answer must pause before its connection may be cut in favour of another.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of one connection, which its task writes and the accepting task reads.
#[derive(Debug)]
pub(super) struct Line {
    state: Mutex<State>,
    leave: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether it has sent a request.
    used: bool,
    /// Requests whose answer is not complete, and those among them that have arrived completely.
    requests: usize,
    arrived: usize,
    /// When it was opened, or the last answer was complete.
    since: Instant,
    /// When the first bytes of the next request arrived.
    head: Option<Instant>,
    /// When the last bytes arrived.
    read: Instant,
    /// When writing first had to wait for the caller, and how many bytes it has taken since then.
    blocked: Option<(Instant, usize)>,
}

/// What the service waits for, in the order in which connections are cut to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    FirstRequest,
    NextRequest,
    /// The rest of a request, or that the caller takes its answer.
    Transfer,
}

impl Line {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let state =
            State { used: false, requests: 0, arrived: 0, since: now, head: None, read: now, blocked: None };
        Self { state: Mutex::new(state), leave: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request's head has arrived.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        state.used = true;
        state.head = None;
        state.requests += 1;
    }

    /// A request has arrived completely.
    pub(super) fn arrive(&self) {
        self.state().arrived += 1;
    }

    /// An answer is complete.
    pub(super) fn end(&self, arrived: bool) {
        let mut state = self.state();
        state.requests -= 1;
        state.arrived -= usize::from(arrived);
        state.since = Instant::now();
    }

    /// The rest of a body was read, so that the next bytes are a request's.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        state.head = None;
        state.since = Instant::now();
    }

    /// Whether a request is in progress: it has arrived completely, and its answer is not complete.
    pub(super) fn is_busy(&self) -> bool {
        self.state().arrived > 0
    }

    /// The greatest is the first to be cut. `None` if the service is what the caller waits for.
    pub(super) fn rank(&self, now: Instant) -> Option<impl Ord + use<>> {
        let (awaited, since) = self.state().awaited()?;
        let waited = now - since;
        (awaited != Awaited::Transfer || waited > PAUSE).then_some((std::cmp::Reverse(awaited), waited))
    }

    /// Whether the caller has exceeded a limit.
    pub(super) fn is_overdue(&self, now: Instant, limits: Limits) -> bool {
        let state = self.state();
        let patience = match state.awaited() {
            Some((Awaited::FirstRequest, since)) => Some((since, limits.head())),
            Some((Awaited::NextRequest, since)) => {
                Some(state.head.map_or((since, limits.idle()), |head| (head, limits.head())))
            }
            // The reader of a body has its own limits.
            Some((Awaited::Transfer, _)) => state.blocked.map(|(since, _)| (since, limits.transfer())),
            None => None,
        };
        patience.is_some_and(|(since, most)| now - since > most)
    }

    /// Tells the connection's task to cut it.
    pub(super) fn cut(&self) {
        self.leave.notify_one();
    }

    /// Completes when the connection is to be cut and no request would be lost.
    pub(super) async fn told_to_leave(&self) {
        loop {
            self.leave.notified().await;
            if self.state().awaited().is_some() {
                return;
            }
        }
    }
}

impl State {
    fn awaited(&self) -> Option<(Awaited, Instant)> {
        if let Some((since, _)) = self.blocked {
            return Some((Awaited::Transfer, since));
        }
        match (self.requests, self.used) {
            (0, false) => Some((Awaited::FirstRequest, self.since)),
            (0, true) => Some((Awaited::NextRequest, self.since)),
            _ => (self.arrived < self.requests).then_some((Awaited::Transfer, self.read)),
        }
    }

    fn wrote(&mut self, result: &Poll<io::Result<usize>>) {
        match (result, &mut self.blocked) {
            (Poll::Pending, blocked @ None) => *blocked = Some((Instant::now(), 0)),
            (Poll::Ready(Ok(bytes)), Some((_, taken))) => {
                *taken += bytes;
                if *taken >= TRANSFER_BYTES {
                    self.blocked = None;
                }
            }
            _ => {}
        }
    }
}

/// A connection's stream, which reports to its line.
#[derive(Debug)]
pub(super) struct Watched<'l, S> {
    pub(super) stream: S,
    pub(super) line: &'l Line,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            let now = Instant::now();
            let mut state = self.line.state();
            state.read = now;
            if state.requests == 0 {
                state.head.get_or_insert(now);
            }
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.line.state().wrote(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.line.state().wrote(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        let mut state = self.line.state();
        match result {
            Poll::Ready(_) => state.blocked = None,
            Poll::Pending => {
                state.blocked.get_or_insert((Instant::now(), 0));
            }
        }
        drop(state);
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
