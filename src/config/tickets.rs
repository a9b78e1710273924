//! How long feedback is accepted.

use std::time::Duration;

use serde::Deserialize;

use super::{DAY, check_days};

settings! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Tickets {
        days: u32 = 90,
        key_days: u32 = 30,
    }
}

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
