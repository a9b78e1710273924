//! A connection's view of the bodies of requests and answers.

use std::{
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::header,
    response::Response,
};
use bytes::Buf;
use futures_util::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio::{sync::Notify, time::timeout};

use super::{
    held::{Held, MOST_OF_ONE, weigh_answer, weigh_request},
    traffic::Traffic,
};

/// How much of a body that no handler read to its end is read and discarded, and for how long: a caller that writes
/// everything before it reads gets its answer then, and not a broken connection.
const MAX_DISCARDED: usize = 32 << 20;
const MAX_DISCARDING: Duration = Duration::from_secs(10);

/// The bodies of a connection's requests and answers report here.
#[derive(Debug)]
pub(crate) struct Bodies {
    pub(crate) traffic: Traffic,
    /// The bytes its answers hold, and those of all connections.
    held: Held,
    held_by_all: Arc<Held>,
    /// Its answers hold less than the most.
    drained: Notify,
    /// The next request's number.
    next: AtomicUsize,
    /// The rest of a body that its handler dropped.
    rest: Mutex<Option<Body>>,
    dropped: Notify,
}

impl Bodies {
    pub(crate) fn new(held_by_all: Arc<Held>) -> Self {
        Self {
            traffic: Traffic::new(),
            held: Held::default(),
            held_by_all,
            drained: Notify::new(),
            next: AtomicUsize::new(0),
            rest: Mutex::new(None),
            dropped: Notify::new(),
        }
    }

    /// Follows a request with a head of this length, and its answer.
    pub(crate) fn begin(self: &Arc<Self>, head: usize) -> Arc<Progress> {
        self.traffic.begin();
        let progress = Progress {
            bodies: Arc::clone(self),
            number: self.next.fetch_add(1, Ordering::Relaxed),
            arrived: AtomicBool::new(false),
            weight: AtomicUsize::new(0),
        };
        progress.weigh(weigh_request(head));
        Arc::new(progress)
    }

    /// The bytes its answers hold.
    pub(crate) fn held(&self) -> usize {
        self.held.bytes()
    }

    fn hold(&self, bytes: usize) {
        self.held.add(bytes);
        self.held_by_all.add(bytes);
    }

    fn release(&self, bytes: usize) {
        self.held_by_all.remove(bytes);
        let before = self.held.remove(bytes);
        if before >= MOST_OF_ONE && before - bytes < MOST_OF_ONE {
            self.drained.notify_waiters();
        }
    }

    /// Waits while the answers before hold too much.
    async fn drain(&self) {
        loop {
            let drained = self.drained.notified();
            if self.held() < MOST_OF_ONE {
                return;
            }
            drained.await;
        }
    }

    /// Reads and discards what handlers leave of bodies; never completes. hyper keeps the connection.
    pub(crate) async fn discard_rests(&self) {
        loop {
            self.dropped.notified().await;
            let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(rest) = rest else { continue };
            let _ = timeout(MAX_DISCARDING, discard(rest)).await;
            self.traffic.clear();
        }
    }

    fn leave(&self, body: Body) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        self.dropped.notify_one();
    }
}

async fn discard(body: Body) {
    let (mut chunks, mut read) = (body.into_data_stream(), 0);
    while let Some(Ok(chunk)) = chunks.next().await {
        read += chunk.len();
        if read > MAX_DISCARDED {
            return;
        }
    }
}

/// One request. It is in progress from when it has arrived completely until its answer is sent.
pub(crate) struct Progress {
    bodies: Arc<Bodies>,
    number: usize,
    arrived: AtomicBool,
    /// The bytes it holds besides its answer's own.
    weight: AtomicUsize,
}

impl Progress {
    fn weigh(&self, bytes: usize) {
        self.weight.fetch_add(bytes, Ordering::Relaxed);
        self.bodies.hold(bytes);
    }

    /// Waits until the connection's answers leave room for another. False if those of all connections leave none.
    pub(crate) async fn may_begin(&self) -> bool {
        self.bodies.drain().await;
        self.bodies.held_by_all.has_room(0, self.bodies.held())
    }

    /// Whether all answers leave room for this one, which is then followed until its caller has taken it.
    pub(crate) fn has_room(&self, response: &Response) -> bool {
        let weight = weigh_answer(response);
        self.weigh(weight);
        let length = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
        self.bodies.held_by_all.has_room(weight.saturating_add(length), self.bodies.held())
    }

    fn arrive(&self) {
        if !self.arrived.swap(true, Ordering::Relaxed) {
            self.bodies.traffic.arrive();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bodies.release(*self.weight.get_mut());
        self.bodies.traffic.end(self.number, *self.arrived.get_mut());
    }
}

/// The request with a body that reports when it has arrived, and leaves its rest to [`Bodies::discard_rests`].
pub(crate) fn track_request(request: Request, progress: &Arc<Progress>) -> Request {
    if request.body().is_end_stream() {
        progress.arrive();
    }
    // Such a caller has sent nothing yet, and reading would ask it to.
    let rest_is_sent = !request.headers().contains_key(header::EXPECT);
    let progress = Arc::clone(progress);
    request.map(|body| Body::new(RequestBody { body, progress, rest_is_sent }))
}

struct RequestBody {
    body: Body,
    progress: Arc<Progress>,
    /// Whether the caller is sending it.
    rest_is_sent: bool,
}

impl HttpBody for RequestBody {
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
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.rest_is_sent = false;
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.rest_is_sent && !self.body.is_end_stream() {
            self.progress.bodies.leave(mem::take(&mut self.body));
        }
    }
}

/// An answer's body, whose request ends when it is dropped and its caller has taken all its bytes.
pub(crate) struct AnswerBody {
    pub(crate) body: Body,
    pub(crate) progress: Arc<Progress>,
}

impl HttpBody for AnswerBody {
    type Data = AnswerBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<AnswerBytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None)) {
            self.progress.arrive();
        }
        frame.map_ok(|frame| frame.map_data(|bytes| AnswerBytes::new(bytes, &self.progress)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer that wait until the caller takes them.
pub(crate) struct AnswerBytes {
    bytes: Bytes,
    length: usize,
    progress: Arc<Progress>,
}

impl AnswerBytes {
    fn new(bytes: Bytes, progress: &Arc<Progress>) -> Self {
        progress.bodies.hold(bytes.len());
        progress.bodies.traffic.offer(progress.number);
        Self { length: bytes.len(), bytes, progress: Arc::clone(progress) }
    }
}

impl Buf for AnswerBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.progress.bodies.traffic.take(self.progress.number, count);
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        self.progress.bodies.release(self.length);
        self.progress.bodies.traffic.settle(self.progress.number);
    }
}
