//! The outfits of an epoch in their order, with slots masked: what each step learns from.
//!
//! Order and masks are drawn by seed, epoch and outfit alone, so that a resumed run sees what the
//! uninterrupted one would have seen, on any number of threads.

use crate::{
    data::Data,
    model::{Batch, Example, ModelConfig},
    random::{Stream, Table},
};

/// Makes batches.
#[derive(Debug)]
pub(super) struct Masks<'a> {
    pub(super) data: &'a Data,
    pub(super) seed: u64,
    pub(super) second_blank: f64,
    /// By article type.
    pub(super) weights: Vec<f32>,
}

impl Masks<'_> {
    /// The training outfits as this epoch sees them.
    pub(super) fn order(&self, epoch: u32) -> Vec<u32> {
        let mut order = self.data.training().to_vec();
        Stream::new(self.seed, Table::Order, epoch as usize).shuffle(&mut order);
        order
    }

    pub(super) fn batch(&self, config: &ModelConfig, epoch: u32, outfits: &[u32]) -> Batch {
        let mut batch = Batch::new(config);
        let mut features = Vec::new();
        let mut slots = Vec::new();
        for &outfit in outfits {
            slots.clear();
            slots.extend_from_slice(self.data.outfits().articles(outfit));
            let blank = self.mask(config.blank(), epoch, outfit, &mut slots);
            let target = self.data.outfits().articles(outfit)[blank];
            self.data.features_of(outfit, &mut features);
            let weight = self.weights[self.data.type_of(target)];
            batch.push(Example { slots: &slots, features: &features, blank, target, weight });
        }
        batch
    }

    /// Blanks one slot, sometimes another, and says which one is asked for.
    fn mask(&self, empty: u32, epoch: u32, outfit: u32, slots: &mut [u32]) -> usize {
        let place = (epoch as usize) << 32 | outfit as usize;
        let mut stream = Stream::new(self.seed, Table::Masks, place);
        let blank = stream.below(slots.len());
        slots[blank] = empty;
        if stream.chance(self.second_blank) {
            let other = (blank + 1 + stream.below(slots.len() - 1)) % slots.len();
            slots[other] = empty;
        }
        blank
    }
}
