//! Pairs of halves: whether two sets of articles were one outfit, judged from what the trunk reads.
//!
//! Each half is read as an outfit whose next slot is blank, and so are both together: what is hidden at
//! the blank is what the last dense layer would have asked the catalogue with. Everything that reads is
//! the method's own; only the layers of the engine's `PairHead` are the pairs'.

use rayon::prelude::*;

use super::{Batch, Loss, Model, step::mixed};
use crate::engine::{
    Dropout, Gradients, Node, PairHead, READINGS, Readings, Shard, Tape, number, probability,
};

/// Pairs that one thread takes at a time. Fixed, so that results do not depend on the number of threads.
const SHARD: usize = 32;
/// Makes the pairs' dropout another than the outfits' of the same step.
const PAIRS: u64 = 0x7061_6972;

/// Two halves as models take them. Indices are the vocabulary's and the schema's encoder's.
#[derive(Debug, Clone, Copy)]
pub struct PairExample<'a> {
    /// Articles, blanks, or padding, which may stand anywhere.
    pub first: &'a [u32],
    pub second: &'a [u32],
    /// Each feature's values; empty where it is not given.
    pub features: &'a [Vec<u32>],
    /// Whether they were one outfit.
    pub same: bool,
}

/// Pairs of halves of any length, packed.
#[derive(Debug, Clone)]
pub struct PairBatch {
    /// Three a pair: the first half, the second, both; each with a blank asked for.
    pub(super) readings: Batch,
    pub(super) same: Vec<bool>,
    blank: u32,
}

impl PairBatch {
    pub fn new(config: &super::ModelConfig) -> Self {
        Self { readings: Batch::new(config), same: Vec::new(), blank: config.blank() }
    }

    /// Adds a pair. Panics where an index is none of the vocabulary's: whoever encoded it has a bug.
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
    /// Whether it judges pairs.
    pub fn has_pair(&self) -> bool {
        self.structure.pair.is_some()
    }

    /// How likely each pair was one outfit: what the exported pair file answers.
    pub fn pair_probabilities(&self, pairs: &PairBatch) -> Vec<f32> {
        let judge = |shard: &Shard| {
            let mut tape = self.tape(shard, None);
            let read = self.read(&mut tape);
            let judged = self.pair_head().forward(&self.weights, self.readings(&tape, read));
            judged.logits.into_iter().map(probability).collect::<Vec<f32>>()
        };
        pairs.readings.shards(READINGS * SHARD).par_iter().flat_map_iter(judge).collect()
    }

    /// The pairs' part of the loss, multiplied with `weight`, and what it means for each weight; with
    /// dropout from `key`, or without.
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
                let dropout = |key| mixed(key ^ PAIRS, place);
                let dropout = key.map(|key| Dropout { rate: self.config.dropout, key: dropout(key) });
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
        self.fold_personas(&mut gradients);
        let count = f64::from(number(pairs.len()));
        let cross_entropy = sums.cross_entropy / count;
        let ponder = f64::from(self.config.universal.ponder_weight) * sums.ponder / count;
        let total = f64::from(weight) * (cross_entropy + ponder);
        (Loss { cross_entropy: 0.0, total, steps: None, pair: Some(cross_entropy) }, gradients)
    }

    /// One shard, forwards and backwards; each pair's loss is multiplied with `each`.
    fn learn_pairs(
        &self,
        shard: &Shard,
        same: &[bool],
        each: f32,
        dropout: Option<Dropout>,
    ) -> (Sums, Gradients) {
        let mut gradients = Gradients::new(&self.weights);
        let mut tape = self.tape(shard, dropout);
        let read = self.read(&mut tape);
        let readings = self.readings(&tape, read);
        let mut judged = self.pair_head().forward(&self.weights, readings);
        let losses = PairHead::loss(&mut judged.logits, same, each);
        let back = self.pair_head().backward(&self.weights, readings, &judged, &mut gradients);
        let sums = Sums {
            cross_entropy: losses.iter().copied().map(f64::from).sum(),
            ponder: tape.ponder() / f64::from(number(READINGS)),
        };
        let mut seeds = vec![(read.hidden, back.hidden)];
        seeds.extend(read.personas.zip(back.personas));
        let ponder = self.config.universal.ponder_weight * each / number(READINGS);
        tape.backward(seeds, ponder, &mut gradients);
        (sums, gradients)
    }

    pub(super) fn read(&self, tape: &mut Tape<'_>) -> super::Output<Node> {
        self.structure.forward(tape)
    }

    pub(super) fn readings<'t>(&self, tape: &'t Tape<'_>, read: super::Output<Node>) -> Readings<'t> {
        Readings {
            hidden: tape.value(read.hidden),
            width: self.config.width,
            personas: read.personas.map(|shares| (tape.value(shares), self.config.personas)),
        }
    }

    pub(super) fn pair_head(&self) -> PairHead {
        self.structure.pair.expect("only a model made for pairs is asked about them; this is a bug")
    }
}

/// Sums over pairs.
#[derive(Debug, Default)]
struct Sums {
    cross_entropy: f64,
    /// Means over a pair's readings, added up.
    ponder: f64,
}
