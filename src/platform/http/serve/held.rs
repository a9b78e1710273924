//! Memory that the service holds for answers that their callers have yet to take.
//!
//! hyper asks a body for its next bytes and keeps them until the caller takes them, as HTTP/2's windows allow. A caller
//! that takes nothing costs whatever its answers hold: up to 128 of them on a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{body::HttpBody, http::header, response::Response};

use crate::platform::http::compression::PlainLength;

/// While a connection's answers hold this much, its next requests wait.
pub(crate) const MOST_OF_ONE: usize = 32 << 20;
/// While all answers hold this much, only small answers are given, to connections that hold little.
const MOST_OF_ALL: usize = 256 << 20;
/// Above this much the callers that take nothing are cut at once, and not when `limits.transfer_ms` is over.
pub(crate) const MUCH_OF_ALL: usize = MOST_OF_ALL / 2;
/// Little for a connection or an answer.
const LITTLE: usize = 64 << 10;
/// A request's bytes, without its head and its answer's bytes.
const REQUEST: usize = 16 << 10;
/// The bytes of a compression's state.
const COMPRESSION: usize = 256 << 10;

/// A number of bytes that are held.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicUsize);

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How much was held before.
    pub(crate) fn remove(&self, bytes: usize) -> usize {
        self.0.fetch_sub(bytes, Ordering::Relaxed)
    }

    /// Whether all answers leave room for one more of this size, on a connection whose answers hold `own`.
    pub(crate) fn has_room(&self, size: usize, own: usize) -> bool {
        self.bytes() + size <= MOST_OF_ALL || size <= LITTLE && own <= LITTLE
    }
}

/// A request's bytes with a head of this length, without its answer's.
pub(crate) fn weigh_request(head: usize) -> usize {
    REQUEST + head
}

/// The bytes an answer holds besides those that hyper has, until all is taken.
pub(crate) fn weigh_answer(response: &Response) -> usize {
    let is_compressing = response.headers().contains_key(header::CONTENT_ENCODING)
        && response.body().size_hint().exact().is_none();
    let plain = response.extensions().get().map_or(0, |PlainLength(length)| *length);
    if is_compressing { COMPRESSION.saturating_add(plain) } else { 0 }
}
