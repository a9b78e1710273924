//! The holdout: customers who are answered without the shop's rules, so that what rules cost can be measured.
//!
//! Feedback counts for each rule that could change the suggestions for a blank: it concerns the request, and one of its articles passes
//! the blank's filters. That is known whether the rule applies or not, so customers with and without rules are compared on the same
//! questions. Must not know how suggestions are made.

use std::collections::HashMap;

use atelier_core::domain::{RuleDigest, Timestamp};

use crate::{
    outcomes::{
        RuleOutcomes,
        acceptance::{self, Share},
        day_of,
    },
    platform::db::{Store, StoreError},
};

/// Outcomes of suggestions that a rule could change: for customers with rules, and for those who are held out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleEffect {
    pub with: RuleOutcomes,
    pub without: RuleOutcomes,
}

impl RuleEffect {
    /// By how much the share of accepted suggestions is higher with the rule.
    pub fn of_acceptance(self) -> Option<Share> {
        let Self { with, without } = self;
        difference((with.accepted, with.shown), (without.accepted, without.shown))
    }

    /// The same of bought ones.
    pub fn of_purchases(self) -> Option<Share> {
        let Self { with, without } = self;
        difference((with.bought, with.shown), (without.bought, without.shown))
    }
}

/// Outcomes of suggestions that were shown on the last `days` days, including today, by rule.
pub async fn effects(
    store: &Store,
    days: u32,
    now: Timestamp,
) -> Result<HashMap<RuleDigest, RuleEffect>, StoreError> {
    let since = day_of(now) + 1 - i64::from(days);
    let mut effects: HashMap<RuleDigest, RuleEffect> = HashMap::new();
    for (rule, held_out, outcomes) in store.feedback().rule_outcomes(since).await? {
        let effect = effects.entry(rule).or_default();
        *if held_out { &mut effect.without } else { &mut effect.with } = outcomes;
    }
    Ok(effects)
}

/// The difference of two shares with its 95 % interval: Newcombe's, of Wilson's intervals of both. It takes suggestions as
/// independent of each other.
fn difference(one: (u64, u64), other: (u64, u64)) -> Option<Share> {
    let (one, other) = (acceptance::share(one.0, one.1)?, acceptance::share(other.0, other.1)?);
    let value = one.value - other.value;
    let low = (one.value - one.low).hypot(other.high - other.value);
    let high = (one.high - one.value).hypot(other.value - other.low);
    Some(Share { value, low: value - low, high: value + high })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example (a) of Newcombe's paper (1998), table II, method 10.
    #[test]
    fn the_interval_of_a_difference_is_newcombes() {
        let found = difference((56, 70), (48, 80)).unwrap();
        for (found, expected) in [(found.value, 0.2), (found.low, 0.0524), (found.high, 0.3339)] {
            assert!((found - expected).abs() < 5e-5, "{found} is not {expected}");
        }
        assert_eq!(difference((1, 2), (0, 0)), None);
    }
}
