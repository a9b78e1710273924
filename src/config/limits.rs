//! What a request may ask for at most. `/openapi.json` and `/docs` publish these.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a request's body, streams aside.
    pub body_bytes: u64,
    /// Bytes of a stream of JSON Lines.
    pub bulk_bytes: u64,
    /// Items of a page.
    pub page: u32,
    /// Items of a page where the request does not say.
    pub page_default: u32,
    /// Events of one request for feedback.
    pub feedback_events: u32,
    /// Outfits of one batch of completions.
    pub batch_items: u32,
    /// Suggestions of one batch, over all blanks of all its outfits.
    pub batch_suggestions: u32,
    /// Columns of one comparison.
    pub columns: u32,
    /// Requests a second with one API key; as many again may come at once.
    pub key_rate: u32,
    /// Milliseconds after which a completion that has no answer yet is given up.
    pub deadline_ms: u32,
    /// Milliseconds that any request may take, streams aside.
    pub request_ms: u32,
    /// Milliseconds in which a body must have arrived, streams aside.
    pub body_ms: u32,
    /// Milliseconds in which an open connection must have sent the next request's head.
    pub idle_ms: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            bulk_bytes: 1 << 30,
            page: 500,
            page_default: 50,
            feedback_events: 1000,
            batch_items: 256,
            batch_suggestions: 20_000,
            columns: 16,
            key_rate: 500,
            deadline_ms: 5000,
            request_ms: 30_000,
            body_ms: 10_000,
            idle_ms: 75_000,
        }
    }
}

impl Limits {
    /// How long a completion may take.
    pub fn deadline(self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }

    /// How long any request may take.
    pub fn request(self) -> Duration {
        Duration::from_millis(self.request_ms.into())
    }

    /// How long a body may take to arrive.
    pub fn body(self) -> Duration {
        Duration::from_millis(self.body_ms.into())
    }

    /// How long a connection may wait for its next request.
    pub fn idle(self) -> Duration {
        Duration::from_millis(self.idle_ms.into())
    }

    /// # Errors
    /// What contradicts what, in words.
    pub(super) fn check(self) -> Result<(), String> {
        let Self {
            body_bytes,
            bulk_bytes,
            page,
            page_default,
            feedback_events,
            batch_items,
            batch_suggestions,
            columns,
            key_rate,
            deadline_ms,
            request_ms,
            body_ms,
            idle_ms,
        } = self;
        for (name, value) in [
            ("page", page),
            ("page_default", page_default),
            ("feedback_events", feedback_events),
            ("batch_items", batch_items),
            ("batch_suggestions", batch_suggestions),
            ("columns", columns),
            ("key_rate", key_rate),
            ("deadline_ms", deadline_ms),
            ("request_ms", request_ms),
            ("body_ms", body_ms),
            ("idle_ms", idle_ms),
        ] {
            if value == 0 {
                return Err(format!("limits.{name} must be at least 1, found 0"));
            }
        }
        if columns < 2 {
            return Err(format!(
                "limits.columns must be at least 2, found {columns}: one column compares nothing"
            ));
        }
        if batch_suggestions < batch_items {
            return Err(format!(
                "limits.batch_suggestions ({batch_suggestions}) must not be below limits.batch_items ({batch_items}): \
                 each item asks for one at least"
            ));
        }
        if body_bytes < 1024 {
            return Err(format!("limits.body_bytes must be at least 1024, found {body_bytes}"));
        }
        if bulk_bytes < body_bytes {
            return Err(format!(
                "limits.bulk_bytes ({bulk_bytes}) must not be below limits.body_bytes ({body_bytes})"
            ));
        }
        if page_default > page {
            return Err(format!(
                "limits.page_default ({page_default}) must not be above limits.page ({page})"
            ));
        }
        // Otherwise nobody would ever be told which of the two was the matter.
        if request_ms <= deadline_ms || request_ms <= body_ms {
            return Err(format!(
                "limits.request_ms ({request_ms}) must be above limits.deadline_ms ({deadline_ms}) and \
                 limits.body_ms ({body_ms})"
            ));
        }
        Ok(())
    }
}
