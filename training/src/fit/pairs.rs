//! Halves of outfits beside the masked articles: what a step learns from, and how the model stands on
//! those of the development split.

use super::RunConfig;
use crate::{
    data::Data,
    model::{Model, ModelConfig, PairBatch, PairExample},
    pair::{Halves, Pair, PairFigures},
};

/// Makes the pairs of a run.
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
            development: packed(data, &config.model, questions),
        }
    }

    /// One pair an outfit, where there is one.
    pub(super) fn batch(&self, epoch: u32, outfits: &[u32]) -> PairBatch {
        let seed = self.config.fit.seed;
        let pairs = outfits.iter().filter_map(|&outfit| self.training.lesson(seed, epoch, outfit));
        packed(self.data, &self.config.model, pairs)
    }

    /// Nothing where no outfit of the development split finds a stranger's half.
    pub(super) fn ask(&self, model: &Model) -> Option<PairFigures> {
        let scores: Vec<f64> =
            model.pair_probabilities(&self.development).into_iter().map(f64::from).collect();
        (!scores.is_empty()).then(|| PairFigures::new(&scores, self.development.same(), 0.5))
    }
}

fn packed(data: &Data, config: &ModelConfig, pairs: impl IntoIterator<Item = Pair>) -> PairBatch {
    let mut batch = PairBatch::new(config);
    let mut features = Vec::new();
    for Pair { outfit, first, second, same } in pairs {
        data.features_of(outfit, &mut features);
        batch.push(PairExample { first: &first, second: &second, features: &features, same });
    }
    batch
}
