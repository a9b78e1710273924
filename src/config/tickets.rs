//! How long feedback is accepted.

use std::time::Duration;

use serde::Deserialize;

const DAY: Duration = Duration::from_hours(24);
/// Ten years.
const MAX_DAYS: u32 = 3650;

/// The section `[tickets]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tickets {
    /// Days after a completion in which feedback on it is accepted.
    pub days: u32,
    /// Days after which another key signs completion ids.
    pub key_days: u32,
}

/// How long tickets and keys last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketTerms {
    /// How long a ticket is accepted.
    pub lifetime: Duration,
    /// How long a key signs.
    pub key_age: Duration,
}

impl Default for Tickets {
    fn default() -> Self {
        Self { days: 90, key_days: 30 }
    }
}

impl Tickets {
    pub fn terms(self) -> TicketTerms {
        TicketTerms { lifetime: DAY * self.days, key_age: DAY * self.key_days }
    }

    pub(super) fn check(self) -> Result<(), String> {
        for (name, days) in [("days", self.days), ("key_days", self.key_days)] {
            if !(1..=MAX_DAYS).contains(&days) {
                return Err(format!("tickets.{name} must be from 1 to {MAX_DAYS}, found {days}"));
            }
        }
        Ok(())
    }
}
