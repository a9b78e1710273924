//! The limit of password attempts for a name: five are free, then each waits twice as long as the one before.

use std::{collections::HashMap, time::Duration};

use atelier_core::domain::Timestamp;

const FREE_ATTEMPTS: u32 = 5;
const MAX_WAIT: Duration = Duration::from_mins(15);
/// The most names with an entry, so that made-up names cannot fill the memory.
const MAX_NAMES: usize = 10_000;

/// Attempts by name. For this process only: each replica counts its own.
#[derive(Debug, Default)]
pub(super) struct Throttle(HashMap<String, Attempts>);

#[derive(Debug)]
struct Attempts {
    count: u32,
    next: Timestamp,
    /// After this the attempts no longer count.
    over: Timestamp,
}

impl Attempts {
    /// A wait above the maximum means that the clock was set back: such attempts do not count.
    fn are_current(&self, now: Timestamp) -> bool {
        self.over > now && self.next <= now + MAX_WAIT
    }
}

impl Throttle {
    /// How long to wait before the next attempt, if it must wait.
    pub(super) fn check(&self, name: &str, now: Timestamp) -> Result<(), Duration> {
        match self.0.get(name) {
            Some(attempts) if attempts.are_current(now) && attempts.next > now => {
                let wait = attempts.next.millis().saturating_sub(now.millis());
                Err(Duration::from_millis(wait.unsigned_abs()))
            }
            _ => Ok(()),
        }
    }

    /// Counts an attempt, or returns how long to wait before the next.
    pub(super) fn attempt(&mut self, name: &str, now: Timestamp) -> Result<(), Duration> {
        self.check(name, now)?;
        let before =
            self.0.get(name).filter(|attempts| attempts.are_current(now)).map_or(0, |before| before.count);
        if self.0.len() >= MAX_NAMES && !self.0.contains_key(name) {
            self.make_room(now);
        }
        let count = before + 1;
        let wait = match count.checked_sub(FREE_ATTEMPTS) {
            None => Duration::ZERO,
            Some(beyond) => Duration::from_secs(1 << beyond.min(10)).min(MAX_WAIT),
        };
        let next = now + wait;
        self.0.insert(name.to_owned(), Attempts { count, next, over: next + MAX_WAIT });
        Ok(())
    }

    /// Drops the attempts that no longer count, or else the name that is delayed least. Made-up names push out each
    /// other, not a name under attack: each attempt costs a computed hash, so that giving ten thousand names
    /// more attempts than that name takes longer than its wait.
    fn make_room(&mut self, now: Timestamp) {
        self.0.retain(|_, attempts| attempts.are_current(now));
        if self.0.len() < MAX_NAMES {
            return;
        }
        let delay = |attempts: &Attempts| (attempts.next.max(now), attempts.count, attempts.over);
        let least = self.0.iter().min_by_key(|(_, attempts)| delay(attempts));
        if let Some(name) = least.map(|(name, _)| name.clone()) {
            self.0.remove(&name);
        }
    }

    /// Drops a name's attempts after a correct password.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(0);

    fn attempt_all_free(throttle: &mut Throttle, now: Timestamp) {
        (0..FREE_ATTEMPTS).for_each(|_| throttle.attempt("ada", now).unwrap());
    }

    #[test]
    fn attempts_slow_down_and_are_forgotten_in_time() {
        let (mut throttle, mut now) = (Throttle::default(), START);
        attempt_all_free(&mut throttle, now);
        assert_eq!(throttle.attempt("ada", now), Err(Duration::from_secs(1)));
        assert_eq!(throttle.check("ada", now), Err(Duration::from_secs(1)));
        throttle.attempt("bo", now).unwrap();
        now = now + Duration::from_secs(1);
        throttle.check("ada", now).unwrap();
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
        attempt_all_free(&mut throttle, now + MAX_WAIT + MAX_WAIT);
        // A clock that is set back locks nobody out.
        throttle.attempt("cy", now).unwrap();
        throttle.attempt("cy", START).unwrap();
    }

    #[test]
    fn made_up_names_push_out_each_other_only() {
        let (mut throttle, now) = (Throttle::default(), START);
        while throttle.attempt("guessed", now).is_ok() {}
        (1..FREE_ATTEMPTS).for_each(|_| throttle.attempt("almost", now).unwrap());
        for name in 0..MAX_NAMES + 500 {
            throttle.attempt(&name.to_string(), now).unwrap();
        }
        assert_eq!(throttle.0.len(), MAX_NAMES);
        assert_eq!(throttle.attempt("guessed", now), Err(Duration::from_secs(1)));
        throttle.attempt("almost", now).unwrap();
        assert!(throttle.attempt("almost", now).is_err(), "its attempts still count");
        // Later the made-up names no longer count, and all go at once.
        throttle.attempt("another", now + MAX_WAIT).unwrap();
        assert!(throttle.0.len() <= 3, "{}", throttle.0.len());
    }
}
