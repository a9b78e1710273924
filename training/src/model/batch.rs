//! Outfits with one slot to predict in each.

use super::ModelConfig;
use crate::engine::Shard;

/// One encoded outfit, by the indices of the vocabulary and of the schema's encoder.
#[derive(Debug, Clone, Copy)]
pub struct Example<'a> {
    /// An article, the blank, or padding, which may be anywhere.
    pub slots: &'a [u32],
    /// Each feature's values; empty if it is not given.
    pub features: &'a [Vec<u32>],
    /// The slot to predict; it must hold the blank.
    pub blank: usize,
    /// The article that was there.
    pub target: u32,
    /// The factor of its loss: the weight of the article's type.
    pub weight: f32,
}

/// Outfits of any length, packed.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(super) packed: Shard,
    pub(super) targets: Vec<u32>,
    pub(super) weights: Vec<f32>,
    padding: u32,
    features: usize,
}

impl Batch {
    pub fn new(config: &ModelConfig) -> Self {
        Self {
            packed: Shard {
                slots: Vec::new(),
                starts: vec![0],
                blanks: Vec::new(),
                feature_rows: Vec::new(),
                feature_starts: vec![0],
                blank: config.blank(),
            },
            targets: Vec::new(),
            weights: Vec::new(),
            padding: config.padding(),
            features: config.features.len(),
        }
    }

    /// Adds an outfit.
    ///
    /// # Panics
    /// If an index is not in the vocabulary or the slot to predict is not blank.
    pub fn push(&mut self, example: Example<'_>) {
        let Example { slots, features, blank, target, weight } = example;
        assert!(target < self.packed.blank, "the target {target} is not an article");
        self.pack(slots, features, blank);
        self.targets.push(target);
        self.weights.push(weight);
    }

    /// Adds an outfit without its target.
    pub(super) fn pack(&mut self, slots: &[u32], features: &[Vec<u32>], blank: usize) {
        let packed = &mut self.packed;
        assert_eq!(slots[blank], packed.blank, "the slot to predict is blank");
        assert_eq!(features.len(), self.features, "one entry per feature of the schema");
        for (place, &slot) in slots.iter().enumerate() {
            if place == blank {
                packed.blanks.push(packed.slots.len());
            }
            if slot != self.padding {
                assert!(slot < self.padding, "slot {place} holds the invalid index {slot}");
                packed.slots.push(slot);
            }
        }
        packed.starts.push(packed.slots.len());
        for values in features {
            packed.feature_rows.extend(values.iter().filter(|&&value| value > 0));
            packed.feature_starts.push(packed.feature_rows.len());
        }
    }

    pub fn len(&self) -> usize {
        self.packed.outfits()
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Splits the batch into shards of this size.
    pub(super) fn shards(&self, size: usize) -> Vec<Shard> {
        (0..self.len()).step_by(size).map(|from| self.shard(from, (from + size).min(self.len()))).collect()
    }

    fn shard(&self, from: usize, to: usize) -> Shard {
        let packed = &self.packed;
        let first = packed.starts[from];
        let feature_starts = &packed.feature_starts[from * self.features..=to * self.features];
        let first_row = feature_starts[0];
        let last_row = feature_starts[feature_starts.len() - 1];
        Shard {
            slots: packed.slots[first..packed.starts[to]].to_vec(),
            starts: packed.starts[from..=to].iter().map(|start| start - first).collect(),
            blanks: packed.blanks[from..to].iter().map(|blank| blank - first).collect(),
            feature_rows: packed.feature_rows[first_row..last_row].to_vec(),
            feature_starts: feature_starts.iter().map(|start| start - first_row).collect(),
            blank: packed.blank,
        }
    }
}
