//! The holdout: customers who are answered without the shop's rules, so that what rules cost can be measured.
//!
//! Feedback counts for each rule that could change the suggestions for a blank: it concerns the request, and one of its articles passes
//! the blank's filters. That is known whether the rule applies or not, so customers with and without rules are compared on the same
//! questions. Must not know how suggestions are made.

use std::collections::HashMap;

use atelier_core::domain::{CustomerId, RuleDigest, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    outcomes::{
        Outcomes,
        acceptance::{self, Share},
        day_of,
    },
    platform::{
        db::{Author, Entry, Store, StoreError},
        fault::Fault,
    },
};

/// The largest share.
const MOST: f64 = 0.5;
const SETTING: &str = "holdout";

/// The share of the customers who are answered without rules.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Holdout(f64);

impl Holdout {
    pub fn new(share: f64) -> Result<Self, Fault> {
        let is_share = (0.0..=MOST).contains(&share);
        is_share
            .then_some(Self(share))
            .ok_or_else(|| Fault::new("share", format!("from 0 to {MOST}, found {share}")))
    }

    pub fn share(self) -> f64 {
        self.0
    }

    pub fn is_active(self) -> bool {
        self.0 > 0.0
    }

    /// By a digest of the customer's id: the same on every replica, and still so if the share grows.
    pub fn has(self, customer: &CustomerId) -> bool {
        let digest = Sha256::new().chain_update("holdout\0").chain_update(customer.as_str()).finalize();
        let point = u32::from_be_bytes(*digest.first_chunk().expect("a digest is longer; this is a bug"));
        f64::from(point) < self.0 * 2.0_f64.powi(32)
    }

    /// As it is stored.
    pub async fn read(store: &Store) -> Result<Self, StoreError> {
        let text = store.settings().get(SETTING).await?;
        Ok(text.and_then(|text| Self::new(text.parse().ok()?).ok()).unwrap_or_default())
    }

    pub(crate) async fn set(self, store: &Store, author: Author, now: Timestamp) -> Result<(), StoreError> {
        let before = Self::read(store).await?.0;
        let entry = Entry::new("holdout.set", SETTING, json!({"before": before, "after": self.0}));
        store.by(author).settings().set(SETTING, &self.0.to_string(), &entry, now).await
    }
}

/// Outcomes of suggestions that a rule could change: for customers with rules, and for those who are held out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleEffect {
    pub with: Outcomes,
    pub without: Outcomes,
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
        difference((with.sold.bought, with.shown), (without.sold.bought, without.shown))
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

    #[test]
    fn a_holdout_has_its_share_of_customers_and_keeps_them_as_it_grows() {
        let [tenth, half] = [0.1, 0.5].map(|share| Holdout::new(share).unwrap());
        let customers: Vec<CustomerId> =
            (0..10_000).map(|number| CustomerId::new(format!("c-{number}")).unwrap()).collect();
        let held_out: Vec<&CustomerId> = customers.iter().filter(|customer| tenth.has(customer)).collect();
        // 1,000 with a standard deviation of 30.
        assert!((880..1120).contains(&held_out.len()), "{}", held_out.len());
        assert!(held_out.iter().all(|customer| half.has(customer)));
        assert!(!customers.iter().any(|customer| Holdout::default().has(customer)));
        for wrong in [-0.1, 0.51, f64::NAN] {
            assert!(Holdout::new(wrong).is_err());
        }
    }

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
