//! The rate limit of an API key: requests per second, with a burst of one second's worth.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::store::KeyId;

/// The time up to which each key has used its rate (the generic cell rate algorithm). For this process only: each
/// replica counts its own.
#[derive(Debug, Default)]
pub(super) struct Rates(HashMap<KeyId, Instant>);

impl Rates {
    /// Counts a request, or returns how long to wait before the next.
    pub(super) fn take(&mut self, key: KeyId, per_second: u32, now: Instant) -> Result<(), Duration> {
        /// How much may come at once, in seconds' worth of requests.
        const BURST: Duration = Duration::from_secs(1);
        let each = Duration::from_secs(1) / per_second.max(1);
        // A key without recent requests needs no entry.
        self.0.retain(|other, used| *other == key || *used > now);
        let used = self.0.get(&key).copied().filter(|used| *used > now).unwrap_or(now);
        let ahead = used + each - now;
        if ahead > BURST.max(each) {
            return Err(ahead.saturating_sub(BURST.max(each)));
        }
        self.0.insert(key, used + each);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_burst_and_then_its_rate() {
        let (mut rates, mut now) = (Rates::default(), Instant::now());
        let (one, other) = (KeyId(1), KeyId(2));
        for _ in 0..10 {
            rates.take(one, 10, now).unwrap();
        }
        assert_eq!(rates.take(one, 10, now), Err(Duration::from_millis(100)));
        rates.take(other, 10, now).unwrap();
        now += Duration::from_millis(100);
        rates.take(one, 10, now).unwrap();
        assert!(rates.take(one, 10, now).is_err());
        now += Duration::from_secs(5);
        assert_eq!(
            (0..20).filter(|_| rates.take(one, 10, now).is_ok()).count(),
            10,
            "the burst does not accumulate"
        );
        assert_eq!(rates.0.len(), 1, "idle keys have no entry");
        for _ in 0..3 {
            now += Duration::from_secs(1);
            rates.take(other, 1, now).unwrap();
        }
    }
}
