//! The cache of profiles.

use std::time::Duration;

use serde::Deserialize;

/// How much to cache, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The most that all entries weigh. The least recently used go first.
    pub most: usize,
    /// How long an entry is served without a query.
    pub fresh: Duration,
    /// The maximum age of an entry while the database cannot be reached.
    pub most_age: Duration,
}

settings! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub struct Profiles {
        bytes: usize = 64 << 20,
        fresh_ms: u32 = 1000,
        most_age_s: u32 = 3600,
    }
}

impl Profiles {
    pub fn keep(&self) -> Keep {
        Keep {
            most: self.bytes,
            fresh: Duration::from_millis(self.fresh_ms.into()),
            most_age: Duration::from_secs(self.most_age_s.into()),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Keep { fresh, most_age, .. } = self.keep();
        if most_age < fresh {
            return Err(format!(
                "profiles.most_age_s ({}) must be at least as long as profiles.fresh_ms ({})",
                self.most_age_s, self.fresh_ms
            ));
        }
        Ok(())
    }
}
