//! How often a name may be tried: five times, then each further attempt waits twice as long as the one before.

use std::{collections::HashMap, time::Duration};

use crate::domain::Timestamp;

/// Free attempts.
const FREE: u32 = 5;
const LONGEST: Duration = Duration::from_mins(15);
/// Names that are remembered; nobody fills the memory by making names up.
const MOST: usize = 10_000;

/// Failed attempts by name. Of this process alone: each replica counts its own.
#[derive(Debug, Default)]
pub(super) struct Throttle(HashMap<String, Attempts>);

#[derive(Debug)]
struct Attempts {
    count: u32,
    next: Timestamp,
    /// After that it is as if nothing had been.
    over: Timestamp,
}

impl Throttle {
    /// Counts an attempt, or says how long to wait before the next.
    pub(super) fn attempt(&mut self, name: &str, now: Timestamp) -> Result<(), Duration> {
        if self.0.len() >= MOST {
            self.0.retain(|_, attempts| attempts.over > now);
            if self.0.len() >= MOST {
                self.0.clear();
            }
        }
        // Nobody is ever told to wait longer than the longest: where it says so, the clock was set back.
        let stands = |attempts: &Attempts| attempts.over > now && attempts.next <= now + LONGEST;
        self.0.retain(|key, attempts| key != name || stands(attempts));
        let attempts =
            self.0.entry(name.to_owned()).or_insert(Attempts { count: 0, next: now, over: now + LONGEST });
        if attempts.next > now {
            let wait = attempts.next.millis().saturating_sub(now.millis());
            return Err(Duration::from_millis(wait.unsigned_abs()));
        }
        attempts.count += 1;
        let wait = match attempts.count.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(beyond) => Duration::from_secs(1 << beyond.min(10)).min(LONGEST),
        };
        attempts.next = now + wait;
        attempts.over = attempts.next + LONGEST;
        Ok(())
    }

    /// The attempt went well.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_locks_nobody_out() {
        let mut throttle = Throttle::default();
        let now = Timestamp::from_millis(100_000_000);
        throttle.attempt("ada", now).unwrap();
        throttle.attempt("ada", Timestamp::from_millis(10_000_000)).unwrap();
    }

    #[test]
    fn attempts_get_slower_and_time_heals() {
        let mut throttle = Throttle::default();
        let mut now = Timestamp::from_millis(0);
        for _ in 0..FREE {
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
                assert!(wait <= LONGEST);
                now = now + wait;
            }
        }
        now = now + LONGEST + LONGEST;
        for _ in 0..FREE {
            throttle.attempt("ada", now).unwrap();
        }
    }

    #[test]
    fn made_up_names_fill_nothing() {
        let mut throttle = Throttle::default();
        for name in 0..3 * MOST {
            throttle.attempt(&name.to_string(), Timestamp::from_millis(0)).unwrap();
        }
        assert!(throttle.0.len() <= MOST);
    }
}
