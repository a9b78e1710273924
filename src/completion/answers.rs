//! Answers that depend on the live release alone, kept while it is live.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use atelier_core::domain::Timestamp;
use axum::{
    http::{HeaderValue, header},
    response::Response,
};
use serde::Serialize;

use crate::{
    platform::{
        db::Version,
        http::{
            AppState, Kind, Problem,
            conditions::{Conditions, Document},
        },
    },
    releases::LiveRelease,
};

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

#[derive(Debug, Clone)]
struct Answer {
    document: Document,
    until: Timestamp,
}

/// How long an answer for everybody is kept.
const KEPT_MILLIS: i64 = 60_000;

impl Answers {
    /// Answers with the body of a version that `make` makes, or with a kept one if it is for everybody: then it has a key.
    pub(crate) async fn answer(
        &self,
        live: &Arc<LiveRelease>,
        key: Option<String>,
        now: Timestamp,
        conditions: &Conditions,
        make: impl Future<Output = Result<(impl Serialize, Version), Problem>>,
    ) -> Result<Response, Problem> {
        let make = async {
            let (body, version) = make.await?;
            Ok::<_, Problem>(Document::of_version("application/json", to_json(&body)?, version))
        };
        let Some(key) = key else {
            return make.await?.answer("private, no-cache", conditions);
        };
        let Answer { document, until } = if let Some(kept) = self.get(live, &key, now) {
            kept
        } else {
            let fresh = Answer { document: make.await?, until: valid_until(live, now) };
            self.keep(live, key, fresh.clone());
            fresh
        };
        let seconds = (until.millis() - now.millis()) / 1000;
        let mut response = document.answer(format!("public, max-age={seconds}"), conditions)?;
        // Pages see less than programs.
        response.headers_mut().append(header::VARY, HeaderValue::from_static("authorization, x-api-key"));
        Ok(response)
    }

    fn get(&self, live: &Arc<LiveRelease>, key: &str, now: Timestamp) -> Option<Answer> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.live.as_ptr() != Arc::as_ptr(live) {
            return None;
        }
        if let Some(answer) = kept.old.remove(key) {
            kept.add(key.to_owned(), answer);
        }
        kept.young.get(key).filter(|answer| now < answer.until).cloned()
    }

    fn keep(&self, live: &Arc<LiveRelease>, key: String, answer: Answer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.live.as_ptr() != Arc::as_ptr(live) {
            *kept = Kept { live: Arc::downgrade(live), ..Kept::default() };
        }
        kept.add(key, answer);
    }
}

pub(crate) fn to_json(body: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(body).map_err(|error| Problem::inside(Kind::Internal, error))
}

/// Looks and rules begin and end at their times.
fn valid_until(live: &LiveRelease, now: Timestamp) -> Timestamp {
    let latest = now.millis() + KEPT_MILLIS;
    Timestamp::from_millis(live.next_change(now).map_or(latest, |next| next.min(latest)))
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

impl AppState {
    pub(crate) fn answers(&self) -> &Answers {
        self.part::<Arc<Answers>>()
    }
}
