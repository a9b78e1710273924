//! Which outfits are learned from, tuned by, and read at the end.

use atelier::domain::Split;

use super::Outfits;
use crate::random::{Table, choose};

/// The three splits, each by rising numbers.
#[derive(Debug, Default)]
pub(super) struct Splits {
    pub(super) training: Vec<u32>,
    pub(super) development: Vec<u32>,
    pub(super) validation: Vec<u32>,
    /// By customer: whether an outfit outside validation is theirs.
    pub(super) seen: Vec<bool>,
}

/// One training outfit in this many is kept for development.
const DEVELOPMENT: usize = 50;
/// Not a run's seed: the runs of all seeds and methods are to be stopped by the same outfits.
const SEED: u64 = 1;

impl Splits {
    pub(super) fn new(outfits: &Outfits, named: &[Split], customers: usize) -> Self {
        let mut splits = Self { seen: vec![false; customers], ..Self::default() };
        let mut learnable = Vec::new();
        for (outfit, split) in (0..).zip(named) {
            match split {
                Split::Validation => splits.validation.push(outfit),
                Split::Train => {
                    learnable.push(outfit);
                    splits.seen[outfits.customer(outfit) as usize] = true;
                }
            }
        }
        let kept = learnable.len().div_ceil(DEVELOPMENT);
        splits.development = choose(SEED, Table::Development, &learnable, kept);
        splits.training = learnable;
        splits.training.retain(|outfit| splits.development.binary_search(outfit).is_err());
        splits
    }
}
