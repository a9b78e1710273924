//! The bodies of requests and answers, as far as the connection needs to know of them.

use std::{
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
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
use futures_util::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio::{sync::Notify, time::timeout};

use super::traffic::Traffic;

/// How much of a body that no handler read to its end is read and discarded, and for how long: a caller that writes
/// everything before it reads gets its answer then, and not a broken connection.
const MAX_DISCARDED: usize = 32 << 20;
const MAX_DISCARDING: Duration = Duration::from_secs(10);

/// What the bodies of a connection's requests and answers report to.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) traffic: Traffic,
    /// The rest of a body that its handler dropped.
    rest: Mutex<Option<Body>>,
    dropped: Notify,
}

impl Bodies {
    pub(super) fn new() -> Self {
        Self { traffic: Traffic::new(), rest: Mutex::new(None), dropped: Notify::new() }
    }

    /// Follows a request and its answer.
    pub(super) fn begin(self: &Arc<Self>) -> Arc<Progress> {
        self.traffic.begin();
        Arc::new(Progress { bodies: Arc::clone(self), arrived: AtomicBool::new(false) })
    }

    /// Reads and discards what handlers leave of bodies; never completes. hyper keeps the connection meanwhile.
    pub(super) async fn discard_rests(&self) {
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
pub(super) struct Progress {
    bodies: Arc<Bodies>,
    arrived: AtomicBool,
}

impl Progress {
    fn arrive(&self) {
        if !self.arrived.swap(true, Ordering::Relaxed) {
            self.bodies.traffic.arrive();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bodies.traffic.end(*self.arrived.get_mut());
    }
}

/// The request with a body that reports when it has arrived, and leaves its rest to [`Bodies::discard_rests`].
pub(super) fn track_request(request: Request, progress: &Arc<Progress>) -> Request {
    if request.body().is_end_stream() {
        progress.arrive();
    }
    // Such a caller has sent nothing yet, and reading would ask it to.
    let rest_is_sent = !request.headers().contains_key(header::EXPECT);
    let progress = Arc::clone(progress);
    request.map(|body| Body::new(TrackedBody { body, progress, rest_is_sent }))
}

/// The answer, which ends the request when its body is dropped.
pub(super) fn track_answer(response: Response, progress: Arc<Progress>) -> Response {
    response.map(|body| Body::new(TrackedBody { body, progress, rest_is_sent: false }))
}

/// The body of a request or an answer, which reports when it ends.
struct TrackedBody {
    body: Body,
    progress: Arc<Progress>,
    /// Whether it is a request's body that the caller is sending.
    rest_is_sent: bool,
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

impl Drop for TrackedBody {
    fn drop(&mut self) {
        if self.rest_is_sent && !self.body.is_end_stream() {
            self.progress.bodies.leave(mem::take(&mut self.body));
        }
    }
}
