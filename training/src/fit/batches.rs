//! The input of each step: the epoch's outfits with slots masked, and pairs of halves.
//!
//! Order, masks and pairs depend on seed, epoch and outfit alone, so a resumed run sees the same batches as an
//! uninterrupted one, on any number of threads.

use super::{FitConfig, RunConfig};
use crate::{
    data::Data,
    model::{Batch, Example, Model, ModelConfig, PairBatch, PairExample},
    pair::{Halves, Pair, PairFigures},
    random::{Stream, Table},
};

/// Makes batches of masked outfits.
#[derive(Debug)]
pub(super) struct Masks<'a> {
    data: &'a Data,
    config: &'a RunConfig,
    /// The loss's weight of each article type.
    weights: Vec<f32>,
}

impl<'a> Masks<'a> {
    pub(super) fn new(data: &'a Data, config: &'a RunConfig) -> Self {
        Self { data, config, weights: config.weights(data) }
    }

    /// The training outfits in the epoch's order.
    pub(super) fn order(&self, epoch: u32) -> Vec<u32> {
        let mut order = self.data.training().to_vec();
        Stream::new(self.config.fit.seed, Table::Order, epoch as usize).shuffle(&mut order);
        order
    }

    pub(super) fn batch(&self, epoch: u32, outfits: &[u32]) -> Batch {
        let config = &self.config.model;
        let mut batch = Batch::new(config);
        let mut features = Vec::new();
        for &outfit in outfits {
            let articles = self.data.outfits().articles(outfit);
            let mut slots = articles.to_vec();
            let blank = self.mask(config.blank(), epoch, outfit, &mut slots);
            self.data.features_of(outfit, &mut features);
            self.drop_features(epoch, outfit, &mut features);
            let target = articles[blank];
            let weight = self.weights[self.data.type_of(target)];
            batch.push(Example { slots: &slots, features: &features, blank, target, weight });
        }
        batch
    }

    /// Blanks one slot and sometimes a second, and returns the first.
    fn mask(&self, empty: u32, epoch: u32, outfit: u32, slots: &mut [u32]) -> usize {
        let mut stream = self.stream(Table::Masks, epoch, outfit);
        let blank = stream.below(slots.len());
        slots[blank] = empty;
        if stream.chance(self.config.fit.second_blank) {
            let other = (blank + 1 + stream.below(slots.len() - 1)) % slots.len();
            slots[other] = empty;
        }
        blank
    }

    /// Leaves out single features, or all, so that the model learns to do without them.
    fn drop_features(&self, epoch: u32, outfit: u32, features: &mut [Vec<u32>]) {
        let FitConfig { drop_profile, drop_feature, .. } = self.config.fit;
        if drop_profile == 0.0 && drop_feature == 0.0 {
            return;
        }
        let mut stream = self.stream(Table::Dropped, epoch, outfit);
        let all = stream.chance(drop_profile);
        for values in features {
            if stream.chance(drop_feature) || all {
                values.clear();
            }
        }
    }

    fn stream(&self, table: Table, epoch: u32, outfit: u32) -> Stream {
        Stream::new(self.config.fit.seed, table, (epoch as usize) << 32 | outfit as usize)
    }
}

/// Makes batches of pairs, and judges those of the development split.
#[derive(Debug)]
pub(super) struct Pairs<'a> {
    data: &'a Data,
    config: &'a RunConfig,
    training: Halves<'a>,
    development: PairBatch,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(data: &'a Data, config: &'a RunConfig) -> Self {
        let questions = Halves::new(data, data.development()).questions();
        Self {
            data,
            config,
            training: Halves::new(data, data.training()),
            development: pack(data, &config.model, questions),
        }
    }

    /// One pair per outfit for which there is one.
    pub(super) fn batch(&self, epoch: u32, outfits: &[u32]) -> PairBatch {
        let seed = self.config.fit.seed;
        let pairs = outfits.iter().filter_map(|&outfit| self.training.training_pair(seed, epoch, outfit));
        pack(self.data, &self.config.model, pairs)
    }

    /// None if the development split has no pairs.
    pub(super) fn evaluate(&self, model: &Model) -> Option<PairFigures> {
        let scores: Vec<f64> =
            model.pair_probabilities(&self.development).into_iter().map(f64::from).collect();
        (!scores.is_empty()).then(|| PairFigures::new(&scores, self.development.same(), 0.5))
    }
}

fn pack(data: &Data, config: &ModelConfig, pairs: impl IntoIterator<Item = Pair>) -> PairBatch {
    let mut batch = PairBatch::new(config);
    let mut features = Vec::new();
    for Pair { outfit, first, second, same } in pairs {
        data.features_of(outfit, &mut features);
        batch.push(PairExample { first: &first, second: &second, features: &features, same });
    }
    batch
}
