//! Answers that depend on the live release alone, kept while it is live.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use atelier_core::domain::Timestamp;

use super::conditions::Document;
use crate::service::live_release::LiveRelease;

/// The bytes of answers after which the older half is dropped.
const MOST_BYTES: usize = 32 << 20;

#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Of which release the answers are. The weak pointer keeps the address from another one.
    live: Weak<LiveRelease>,
    young: HashMap<String, Answer>,
    old: HashMap<String, Answer>,
    bytes: usize,
}

/// An answer, and until when it is right.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) document: Document,
    pub(crate) until: Timestamp,
}

impl Answers {
    pub(crate) fn get(&self, live: &Arc<LiveRelease>, key: &str, now: Timestamp) -> Option<Answer> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.live.as_ptr() != Arc::as_ptr(live) {
            return None;
        }
        if let Some(answer) = kept.old.remove(key) {
            kept.add(key.to_owned(), answer);
        }
        kept.young.get(key).filter(|answer| now < answer.until).cloned()
    }

    pub(crate) fn keep(&self, live: &Arc<LiveRelease>, key: String, answer: Answer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.live.as_ptr() != Arc::as_ptr(live) {
            *kept = Kept { live: Arc::downgrade(live), ..Kept::default() };
        }
        kept.add(key, answer);
    }
}

impl Kept {
    fn add(&mut self, key: String, answer: Answer) {
        self.bytes += key.len() + answer.document.len();
        self.young.insert(key, answer);
        if self.bytes > MOST_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}
