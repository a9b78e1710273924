//! The arms of experiments: which customers are answered by another method, without some rules, or by another release.
//! `experiments` says which arms there are.

use std::{collections::HashSet, sync::Arc};

use atelier_core::domain::{CustomerId, ExperimentName, Method, RuleName};
use sha2::{Digest, Sha256};

/// Into how many parts the customers are divided, of which each experiment has some.
pub const PARTS: u8 = 100;

/// The arms of the experiments that run.
#[derive(Debug, Default)]
pub struct Arms(Vec<Split>);

/// How an experiment splits its customers.
#[derive(Debug, Clone)]
pub struct Split {
    experiment: ExperimentName,
    /// Whether a release or a method of an arm is not loaded.
    lacks: bool,
    parts: HashSet<u64>,
    /// With their shares.
    arms: Vec<(Chosen, u32)>,
    has_rules: bool,
}

/// An arm, as its customers' requests take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub label: String,
    /// The live one if it is not given.
    pub release: Option<Arc<str>>,
    pub method: Option<Method>,
    pub without_rules: Arc<[RuleName]>,
}

impl Split {
    /// `parts` are those of its customers.
    pub fn new(experiment: ExperimentName, parts: Vec<u8>, arms: Vec<(Chosen, u32)>) -> Self {
        Self {
            experiment,
            lacks: false,
            parts: parts.into_iter().map(u64::from).collect(),
            has_rules: arms.iter().any(|(arm, _)| !arm.without_rules.is_empty()),
            arms,
        }
    }
}

impl Arms {
    /// The first one that has a customer counts.
    pub fn new(splits: Vec<Split>) -> Self {
        Self(splits)
    }

    fn all(&self) -> impl Iterator<Item = &Chosen> {
        self.0.iter().flat_map(|split| &split.arms).map(|(arm, _)| arm)
    }

    /// The methods of all arms that the live release answers, whichever it is.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.all().filter(|arm| arm.release.is_none()).filter_map(|arm| arm.method)
    }

    /// The first release besides the live one that an arm names, with its experiment.
    pub(super) fn second_release(&self, live: &str) -> Option<(&str, &ExperimentName)> {
        self.0.iter().find_map(|split| {
            let mut releases = split.arms.iter().filter_map(|(arm, _)| arm.release.as_deref());
            Some((releases.find(|release| *release != live)?, &split.experiment))
        })
    }

    /// The same for loaded releases. `has` says whether a release, or else the live one, is loaded with a method.
    pub(crate) fn with_releases(&self, has: impl Fn(Option<&str>, Option<Method>) -> bool) -> Self {
        let check = |split: &Split| {
            let lacks = |(arm, _): &(Chosen, u32)| !has(arm.release.as_deref(), arm.method);
            Split { lacks: split.arms.iter().any(lacks), ..split.clone() }
        };
        Self(self.0.iter().map(check).collect())
    }

    /// The arm of a customer. None if no experiment has the customer, or if a release or a method of one of its arms is not loaded.
    /// Who is held out from all rules is in no experiment on rules.
    pub fn choose(&self, customer: &CustomerId, held_out: impl Fn() -> bool) -> Option<&Chosen> {
        if self.0.is_empty() {
            return None;
        }
        let part = place("experiments", customer, PARTS.into());
        let split = self.0.iter().find(|split| split.parts.contains(&part))?;
        if split.lacks || split.has_rules && held_out() {
            return None;
        }
        let total = split.arms.iter().map(|(_, share)| u64::from(*share)).sum();
        // No experiment's name has a line break: that of an arm is independent of the part.
        let mut place = place(&format!("arm\n{}", split.experiment), customer, total);
        for (arm, share) in &split.arms {
            let share = u64::from(*share);
            if place < share {
                return Some(arm);
            }
            place -= share;
        }
        unreachable!("the place is less than the sum of the shares")
    }
}

/// The place of a customer below `total`: the same on every replica, and for each text another one.
fn place(text: &str, customer: &CustomerId, total: u64) -> u64 {
    let digest =
        Sha256::new().chain_update(text).chain_update([0]).chain_update(customer.as_str()).finalize();
    let point = u64::from_be_bytes(*digest.first_chunk().expect("a digest is longer"));
    u64::try_from((u128::from(point) * u128::from(total)) >> 64).expect("it is below the total")
}
