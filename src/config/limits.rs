//! The limits of requests, which `/openapi.json` and `/docs` publish.

use std::time::Duration;

use atelier_core::domain::ROW_BYTES;
use serde::{Deserialize, Serialize};

use super::{at_least, memory::Memory};

/// The bytes that a caller must send or take within `transfer_ms`.
pub const TRANSFER_BYTES: usize = 64 << 10;

/// A row of 128 KiB with an embedding has less than 1 MiB in files of every format.
const MOST_ROW_BYTES: u32 = 128 << 10;

settings! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Limits {
        body_bytes: u64 = 1 << 20,
        bulk_bytes: u64 = 1 << 30,
        bulk_rows: u32 = 5_000_000,
        release_bytes: u64 = 4 << 30,
        row_bytes: u32 = ROW_BYTES,
        #[serde(skip_serializing_if = "Option::is_none")]
        catalogue_bytes: Option<u64> = None,
        page: u32 = 500,
        page_default: u32 = 50,
        feedback_events: u32 = 1000,
        batch_items: u32 = 256,
        batch_suggestions: u32 = 20_000,
        columns: u32 = 16,
        key_rate: u32 = 500,
        address_rate: u32 = 20,
        deadline_ms: u32 = 5000,
        request_ms: u32 = 30_000,
        body_ms: u32 = 10_000,
        idle_ms: u32 = 75_000,
        connections: u32 = 1000,
        head_ms: u32 = 10_000,
        transfer_ms: u32 = 30_000,
        streams: u32 = 4,
        stream_ms: u32 = 3_600_000,
    }
}

impl Limits {
    /// A third of the memory that the process may use, if it is not set: while a large import is read, there are two catalogues.
    pub fn catalogue_bytes(self) -> u64 {
        self.catalogue_bytes.unwrap_or_else(|| Memory::now().map_or(u64::MAX, |memory| memory.limit) / 3)
    }

    pub fn deadline(self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }

    pub fn request(self) -> Duration {
        Duration::from_millis(self.request_ms.into())
    }

    pub fn body(self) -> Duration {
        Duration::from_millis(self.body_ms.into())
    }

    pub fn idle(self) -> Duration {
        Duration::from_millis(self.idle_ms.into())
    }

    pub fn head(self) -> Duration {
        Duration::from_millis(self.head_ms.into())
    }

    /// How long [`TRANSFER_BYTES`] of a stream or an answer may take.
    pub fn transfer(self) -> Duration {
        Duration::from_millis(self.transfer_ms.into())
    }

    pub fn stream(self) -> Duration {
        Duration::from_millis(self.stream_ms.into())
    }

    pub(super) fn check(self) -> Result<(), String> {
        let all = toml::Table::try_from(self).expect("limits are a table of numbers");
        if let Some((name, _)) = all.iter().find(|(_, limit)| limit.as_integer() == Some(0)) {
            return Err(format!("limits.{name} must be at least 1, found 0"));
        }
        let Self { body_bytes, row_bytes, page, page_default, columns, .. } = self;
        let Self { deadline_ms, request_ms, body_ms, .. } = self;
        if columns < 2 {
            return Err(format!("limits.columns must be at least 2, found {columns}"));
        }
        if body_bytes < 1024 {
            return Err(format!("limits.body_bytes must be at least 1024, found {body_bytes}"));
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
        at_least("limits.bulk_bytes", self.bulk_bytes, "limits.body_bytes", body_bytes, "")?;
        let (most, items) = (self.batch_suggestions, self.batch_items);
        let each = ": each item has at least one suggestion";
        at_least("limits.batch_suggestions", most, "limits.batch_items", items, each)?;
        let part = ", which is for a part of a stream";
        at_least("limits.stream_ms", self.stream_ms, "limits.transfer_ms", self.transfer_ms, part)?;
        let head = ": the first byte of a request would leave it less time";
        at_least("limits.idle_ms", self.idle_ms, "limits.head_ms", self.head_ms, head)
    }
}
