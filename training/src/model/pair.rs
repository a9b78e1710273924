//! Pairs of halves: whether two sets of articles were one outfit.
//!
//! The model reads each half, and both together, as an outfit whose next slot is blank; the reading is the hidden
//! vector at the blank, the usual input of the last dense layer. Only the engine's `PairHead` is added to the
//! method's own layers.

use rayon::prelude::*;

use super::{Batch, Loss, Model, step::shard_key};
use crate::engine::{Dropout, Gradients, Node, PairHead, READINGS, Readings, Shard, Tape, number, sigmoid};

/// Pairs per shard. Fixed, so that results do not depend on the number of threads.
const SHARD: usize = 32;
/// Separates the pairs' dropout from the outfits' in the same step.
const PAIRS: u64 = 0x7061_6972;

/// Two encoded halves, by the indices of the vocabulary and of the schema's encoder.
#[derive(Debug, Clone, Copy)]
pub struct PairExample<'a> {
    /// Articles, blanks, or padding, which may be anywhere.
    pub first: &'a [u32],
    pub second: &'a [u32],
    /// Each feature's values; empty if it is not given.
    pub features: &'a [Vec<u32>],
    /// Whether they were one outfit.
    pub same: bool,
}

/// Pairs of halves of any length, packed.
#[derive(Debug, Clone)]
pub struct PairBatch {
    /// Three per pair: the first half, the second, both; each with a blank to predict.
    pub(super) readings: Batch,
    pub(super) same: Vec<bool>,
    blank: u32,
}

impl PairBatch {
    pub fn new(config: &super::ModelConfig) -> Self {
        Self { readings: Batch::new(config), same: Vec::new(), blank: config.blank() }
    }

    /// Adds a pair.
    ///
    /// # Panics
    /// If an index is not in the vocabulary.
    pub fn push(&mut self, example: PairExample<'_>) {
        let PairExample { first, second, features, same } = example;
        for halves in [&[first][..], &[second], &[first, second]] {
            let mut slots = halves.concat();
            slots.push(self.blank);
            self.readings.pack(&slots, features, slots.len() - 1);
        }
        self.same.push(same);
    }

    pub fn len(&self) -> usize {
        self.same.len()
    }

    pub fn is_empty(&self) -> bool {
        self.same.is_empty()
    }

    /// Which pairs were one outfit.
    pub fn same(&self) -> &[bool] {
        &self.same
    }
}

impl Model {
    /// The probability of each pair to have been one outfit.
    pub fn pair_probabilities(&self, pairs: &PairBatch) -> Vec<f32> {
        let judge = |shard: &Shard| {
            let mut tape = self.tape(shard, None);
            let read = self.structure.forward(&mut tape);
            let judged = self.pair_head().forward(&self.weights, self.readings(&tape, read));
            judged.logits.into_iter().map(sigmoid).collect::<Vec<f32>>()
        };
        pairs.readings.shards(READINGS * SHARD).par_iter().flat_map_iter(judge).collect()
    }

    /// The pairs' part of the loss, times `weight`, and its gradients, with dropout if there is a `key`.
    pub(crate) fn pair_gradients(
        &self,
        pairs: &PairBatch,
        weight: f32,
        key: Option<u64>,
    ) -> (Loss, Gradients) {
        let learned: Vec<(Sums, Gradients)> = pairs
            .readings
            .shards(READINGS * SHARD)
            .par_iter()
            .zip(pairs.same.par_chunks(SHARD))
            .enumerate()
            .map(|(place, (shard, same))| {
                let dropout = |key| self.config.dropout(shard_key(key ^ PAIRS, place));
                let dropout = key.map(dropout);
                self.learn_pairs(shard, same, weight / number(pairs.len()), dropout)
            })
            .collect();
        let mut sums = Sums::default();
        let mut gradients = Gradients::new(&self.weights);
        let mut parts = Vec::new();
        for (of_shard, gradients) in learned {
            sums.cross_entropy += of_shard.cross_entropy;
            sums.ponder += of_shard.ponder;
            parts.push(gradients);
        }
        gradients.add(parts);
        self.fold(&mut gradients);
        let count = f64::from(number(pairs.len()));
        let cross_entropy = sums.cross_entropy / count;
        let ponder = f64::from(self.config.universal.ponder_weight) * sums.ponder / count;
        let total = f64::from(weight) * (cross_entropy + ponder);
        (Loss { cross_entropy: 0.0, total, steps: None, pair: Some(cross_entropy) }, gradients)
    }

    /// Runs one shard forwards and backwards; each pair's loss is multiplied by `factor`.
    fn learn_pairs(
        &self,
        shard: &Shard,
        same: &[bool],
        factor: f32,
        dropout: Option<Dropout>,
    ) -> (Sums, Gradients) {
        let mut gradients = Gradients::new(&self.weights);
        let mut tape = self.tape(shard, dropout);
        let read = self.structure.forward(&mut tape);
        let readings = self.readings(&tape, read);
        let mut judged = self.pair_head().forward(&self.weights, readings);
        let losses = PairHead::loss(&mut judged.logits, same, factor);
        let back = self.pair_head().backward(&self.weights, readings, &judged, &mut gradients);
        let sums = Sums {
            cross_entropy: losses.iter().copied().map(f64::from).sum(),
            ponder: tape.ponder() / f64::from(number(READINGS)),
        };
        let mut seeds = vec![(read.hidden, back.hidden)];
        seeds.extend(read.personas.zip(back.personas));
        let ponder = self.config.universal.ponder_weight * factor / number(READINGS);
        tape.backward(seeds, ponder, &mut gradients);
        (sums, gradients)
    }

    pub(super) fn readings<'t>(&self, tape: &'t Tape<'_>, read: super::Output<Node>) -> Readings<'t> {
        Readings {
            hidden: tape.value(read.hidden),
            width: self.config.hidden_width(),
            personas: read.personas.map(|shares| (tape.value(shares), self.config.personas)),
        }
    }

    pub(super) fn pair_head(&self) -> PairHead {
        self.structure.pair.expect("the model was made for pairs")
    }
}

/// Sums over pairs.
#[derive(Debug, Default)]
struct Sums {
    cross_entropy: f64,
    /// Means over each pair's readings.
    ponder: f64,
}
