//! Which customers' profiles are kept in memory, and for how long.

use std::time::Duration;

use serde::Deserialize;

use crate::service::profiles::Keep;

/// What is kept of customers beside the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiles {
    /// Most of them.
    pub most: usize,
    /// Milliseconds for which one is taken as it is: other replicas' changes are seen so much later at most.
    pub fresh_ms: u32,
    /// Seconds after which one is not served any more though the database cannot be reached.
    pub most_age_s: u32,
}

impl Default for Profiles {
    fn default() -> Self {
        Self { most: 20_000, fresh_ms: 1000, most_age_s: 3600 }
    }
}

impl Profiles {
    pub fn keep(&self) -> Keep {
        Keep {
            most: self.most,
            fresh: Duration::from_millis(self.fresh_ms.into()),
            most_age: Duration::from_secs(self.most_age_s.into()),
        }
    }

    /// # Errors
    /// What contradicts what, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let Keep { fresh, most_age, .. } = self.keep();
        if most_age < fresh {
            return Err(format!(
                "profiles.most_age_s ({}) must not be below profiles.fresh_ms ({})",
                self.most_age_s, self.fresh_ms
            ));
        }
        Ok(())
    }
}
