//! The limits of requests, which `/openapi.json` and `/docs` publish.

use std::time::Duration;

use atelier_core::domain::ROW_BYTES;
use serde::{Deserialize, Serialize};

use super::memory::Memory;

/// The bytes that a caller must send or take within `transfer_ms`.
pub const TRANSFER_BYTES: usize = 64 << 10;

/// A row of 128 KiB with an embedding has less than 1 MiB in files of every format.
const MOST_ROW_BYTES: u32 = 128 << 10;

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a request's body, except streams.
    pub body_bytes: u64,
    /// Bytes of a stream of JSON Lines.
    pub bulk_bytes: u64,
    /// Lines of a stream of JSON Lines.
    pub bulk_rows: u32,
    /// Bytes of a packed release, and of its files.
    pub release_bytes: u64,
    /// Bytes of a row as JSON: an article's type and attributes without the embedding, or the features of a customer or outfit.
    pub row_bytes: u32,
    /// Bytes that the catalogue may take in memory; an eighth of that rules, looks and experiments each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogue_bytes: Option<u64>,
    /// Items of a page.
    pub page: u32,
    /// Items of a page if the request does not say.
    pub page_default: u32,
    /// Events of a request with feedback or events.
    pub feedback_events: u32,
    /// Outfits of a batch request.
    pub batch_items: u32,
    /// Suggestions of a batch request, for all blanks of all its outfits.
    pub batch_suggestions: u32,
    /// Columns of a comparison.
    pub columns: u32,
    /// Requests per second with an API key, and the size of a burst.
    pub key_rate: u32,
    /// Requests per second with publishable keys from one address, and the size of a burst.
    pub address_rate: u32,
    /// Milliseconds until a completion times out.
    pub deadline_ms: u32,
    /// Milliseconds until any request times out, except streams.
    pub request_ms: u32,
    /// Milliseconds in which a body must arrive, except streams.
    pub body_ms: u32,
    /// Milliseconds in which an open connection must send its next request.
    pub idle_ms: u32,
    /// Open connections. At one more, the one that has kept the service waiting longest is cut.
    pub connections: u32,
    /// Milliseconds in which a request's head must arrive: from its first byte, or from the opening of the connection.
    pub head_ms: u32,
    /// Milliseconds in which a caller must send 64 KiB of a stream, or take 64 KiB of an answer, or the rest of it.
    pub transfer_ms: u32,
    /// Streams (imports and exports of a table) at the same time.
    pub streams: u32,
    /// Milliseconds until a stream times out.
    pub stream_ms: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            bulk_bytes: 1 << 30,
            bulk_rows: 5_000_000,
            release_bytes: 4 << 30,
            row_bytes: ROW_BYTES,
            catalogue_bytes: None,
            page: 500,
            page_default: 50,
            feedback_events: 1000,
            batch_items: 256,
            batch_suggestions: 20_000,
            columns: 16,
            key_rate: 500,
            address_rate: 20,
            deadline_ms: 5000,
            request_ms: 30_000,
            body_ms: 10_000,
            idle_ms: 75_000,
            connections: 1000,
            head_ms: 10_000,
            transfer_ms: 30_000,
            streams: 4,
            stream_ms: 3_600_000,
        }
    }
}

impl Limits {
    /// A third of the memory that the process may use, if it is not set: while a large import is read, there are two catalogues.
    pub fn catalogue_bytes(self) -> u64 {
        self.catalogue_bytes.unwrap_or_else(|| Memory::now().map_or(u64::MAX, |memory| memory.limit) / 3)
    }

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

    /// How long a request's head may take to arrive.
    pub fn head(self) -> Duration {
        Duration::from_millis(self.head_ms.into())
    }

    /// How long [`TRANSFER_BYTES`] of a stream or an answer may take.
    pub fn transfer(self) -> Duration {
        Duration::from_millis(self.transfer_ms.into())
    }

    /// How long a stream may take.
    pub fn stream(self) -> Duration {
        Duration::from_millis(self.stream_ms.into())
    }

    /// # Errors
    /// Which limits are invalid or contradict each other.
    pub(super) fn check(self) -> Result<(), String> {
        let all = toml::Table::try_from(self).expect("limits are a table of numbers; this is a bug");
        if let Some((name, _)) = all.iter().find(|(_, limit)| limit.as_integer() == Some(0)) {
            return Err(format!("limits.{name} must be at least 1, found 0"));
        }
        let Self { body_bytes, bulk_bytes, page, page_default, batch_items, batch_suggestions, .. } = self;
        let Self { row_bytes, columns, deadline_ms, request_ms, body_ms, .. } = self;
        let Self { transfer_ms, stream_ms, head_ms, idle_ms, .. } = self;
        if columns < 2 {
            return Err(format!("limits.columns must be at least 2, found {columns}"));
        }
        if batch_suggestions < batch_items {
            return Err(format!(
                "limits.batch_suggestions ({batch_suggestions}) must be at least limits.batch_items ({batch_items}): \
                 each item has at least one suggestion"
            ));
        }
        if body_bytes < 1024 {
            return Err(format!("limits.body_bytes must be at least 1024, found {body_bytes}"));
        }
        if bulk_bytes < body_bytes {
            return Err(format!(
                "limits.bulk_bytes ({bulk_bytes}) must be at least limits.body_bytes ({body_bytes})"
            ));
        }
        if !(1024..=MOST_ROW_BYTES).contains(&row_bytes) {
            return Err(format!("limits.row_bytes is 1024 to {MOST_ROW_BYTES}, found {row_bytes}"));
        }
        if page_default > page {
            return Err(format!("limits.page_default ({page_default}) must be at most limits.page ({page})"));
        }
        // Otherwise no error would tell which of the two timed out.
        if request_ms <= deadline_ms || request_ms <= body_ms {
            return Err(format!(
                "limits.request_ms ({request_ms}) must be above limits.deadline_ms ({deadline_ms}) and \
                 limits.body_ms ({body_ms})"
            ));
        }
        if stream_ms < transfer_ms {
            return Err(format!(
                "limits.stream_ms ({stream_ms}) must be at least limits.transfer_ms ({transfer_ms}), which is for a \
                 part of a stream"
            ));
        }
        if idle_ms < head_ms {
            return Err(format!(
                "limits.idle_ms ({idle_ms}) must be at least limits.head_ms ({head_ms}): the first byte of a request \
                 would leave it less time"
            ));
        }
        Ok(())
    }
}
