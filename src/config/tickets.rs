//! How long feedback is accepted.

use std::time::Duration;

use serde::Deserialize;

use super::{DAY, check_days};

settings! {
    /// The section `[tickets]`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Tickets {
        /// Days after a completion in which feedback on it is accepted.
        days: u32 = 90,
        /// Days after which another key signs completion ids.
        key_days: u32 = 30,
    }
}

/// How long tickets and keys last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketTerms {
    /// How long a ticket is accepted.
    pub lifetime: Duration,
    /// How long a key signs.
    pub key_age: Duration,
}

impl Tickets {
    pub fn terms(self) -> TicketTerms {
        TicketTerms { lifetime: DAY * self.days, key_age: DAY * self.key_days }
    }

    pub(super) fn check(self) -> Result<(), String> {
        check_days("tickets", &[("days", self.days), ("key_days", self.key_days)])
    }
}
