//! How late events may come, how long they are kept, and what belongs to a suggestion.

use std::time::Duration;

use serde::Deserialize;

use super::{DAY, check_days};

settings! {
    /// The section `[events]`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Events {
        /// Days after which an event comes too late.
        late_days: u32 = 90,
        /// Days for which events are kept.
        keep_days: u32 = 400,
        /// Days after a suggestion was shown in which a purchase without a ticket belongs to it.
        window_days: u32 = 7,
    }
}

/// For how long events matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTerms {
    /// How late they may come. Their ids are known for at least as long.
    pub late: Duration,
    /// How long they are kept.
    pub kept: Duration,
    /// How long after a suggestion a purchase without a ticket belongs to it.
    pub window: Duration,
}

impl Events {
    pub fn terms(self) -> EventTerms {
        EventTerms { late: DAY * self.late_days, kept: DAY * self.keep_days, window: DAY * self.window_days }
    }

    pub(super) fn check(self) -> Result<(), String> {
        let Self { late_days, keep_days, window_days } = self;
        let all = [("late_days", late_days), ("keep_days", keep_days), ("window_days", window_days)];
        check_days("events", &all)?;
        if keep_days < late_days {
            return Err(format!(
                "events.keep_days ({keep_days}) must be at least events.late_days ({late_days}): an event that is sent again \
                 is recognised only while it is kept"
            ));
        }
        Ok(())
    }
}
