//! The limit of sign-in attempts for a name: five are free, then each waits twice as long as the one before.

use std::{collections::HashMap, time::Duration};

use crate::domain::Timestamp;

const FREE_ATTEMPTS: u32 = 5;
const MAX_WAIT: Duration = Duration::from_mins(15);
/// The most names with an entry, so that made-up names cannot fill the memory.
const MAX_NAMES: usize = 10_000;

/// Failed attempts by name. For this process only: each replica counts its own.
#[derive(Debug, Default)]
pub(super) struct Throttle(HashMap<String, Attempts>);

#[derive(Debug)]
struct Attempts {
    count: u32,
    next: Timestamp,
    /// After this the attempts no longer count.
    over: Timestamp,
}

impl Throttle {
    /// Counts an attempt, or returns how long to wait before the next.
    pub(super) fn attempt(&mut self, name: &str, now: Timestamp) -> Result<(), Duration> {
        if self.0.len() >= MAX_NAMES {
            self.0.retain(|_, attempts| attempts.over > now);
            if self.0.len() >= MAX_NAMES {
                self.0.clear();
            }
        }
        // A wait above the maximum means that the clock was set back: such an entry does not count.
        let counts = |attempts: &Attempts| attempts.over > now && attempts.next <= now + MAX_WAIT;
        self.0.retain(|key, attempts| key != name || counts(attempts));
        let attempts =
            self.0.entry(name.to_owned()).or_insert(Attempts { count: 0, next: now, over: now + MAX_WAIT });
        if attempts.next > now {
            let wait = attempts.next.millis().saturating_sub(now.millis());
            return Err(Duration::from_millis(wait.unsigned_abs()));
        }
        attempts.count += 1;
        let wait = match attempts.count.checked_sub(FREE_ATTEMPTS) {
            None => Duration::ZERO,
            Some(beyond) => Duration::from_secs(1 << beyond.min(10)).min(MAX_WAIT),
        };
        attempts.next = now + wait;
        attempts.over = attempts.next + MAX_WAIT;
        Ok(())
    }

    /// Drops a name's attempts after a successful sign-in.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_does_not_lock_out() {
        let mut throttle = Throttle::default();
        let now = Timestamp::from_millis(100_000_000);
        throttle.attempt("ada", now).unwrap();
        throttle.attempt("ada", Timestamp::from_millis(10_000_000)).unwrap();
    }

    #[test]
    fn attempts_slow_down_and_are_forgotten_in_time() {
        let mut throttle = Throttle::default();
        let mut now = Timestamp::from_millis(0);
        for _ in 0..FREE_ATTEMPTS {
            throttle.attempt("ada", now).unwrap();
        }
        assert_eq!(throttle.attempt("ada", now), Err(Duration::from_secs(1)));
        throttle.attempt("bo", now).unwrap();
        now = now + Duration::from_secs(1);
        throttle.attempt("ada", now).unwrap();
        assert_eq!(throttle.attempt("ada", now), Err(Duration::from_secs(2)));
        throttle.forget("ada");
        throttle.attempt("ada", now).unwrap();
        for _ in 0..20 {
            while let Err(wait) = throttle.attempt("ada", now) {
                assert!(wait <= MAX_WAIT);
                now = now + wait;
            }
        }
        now = now + MAX_WAIT + MAX_WAIT;
        for _ in 0..FREE_ATTEMPTS {
            throttle.attempt("ada", now).unwrap();
        }
    }

    #[test]
    fn made_up_names_do_not_fill_the_memory() {
        let mut throttle = Throttle::default();
        for name in 0..3 * MAX_NAMES {
            throttle.attempt(&name.to_string(), Timestamp::from_millis(0)).unwrap();
        }
        assert!(throttle.0.len() <= MAX_NAMES);
    }
}
