//! How late events may come, how long they are kept, and what belongs to a suggestion.

use std::time::Duration;

use serde::Deserialize;

use super::{DAY, at_least, check_days};

settings! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Events {
        late_days: u32 = 90,
        keep_days: u32 = 400,
        window_days: u32 = 7,
    }
}

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
        let known = ": an event that is sent again is recognised only while it is kept";
        at_least("events.keep_days", keep_days, "events.late_days", late_days, known)
    }
}
