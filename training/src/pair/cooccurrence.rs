//! The baseline: how often the halves' articles were in one training outfit.

use super::Pair;
use crate::{baselines::Pairs, data::Data, number::real};

/// Counts of articles and of pairs of articles in the training outfits, without the development split.
#[derive(Debug)]
pub struct Cooccurrence {
    alone: Vec<f64>,
    together: Pairs,
    outfits: usize,
}

impl Cooccurrence {
    pub fn count(data: &Data) -> Self {
        let training = data.training();
        Self { alone: data.count_articles(training), together: Pairs::count(data), outfits: training.len() }
    }

    /// The mean of ln((times together + 1) / (times expected + 1)) over all pairs of an article of each half; the
    /// expectation is that of independent articles.
    pub fn score(&self, pair: &Pair) -> f64 {
        let all = pair.first.iter().flat_map(|&a| pair.second.iter().map(move |&b| (a, b)));
        let score = |(a, b): (u32, u32)| {
            let expected = self.alone[a as usize] * self.alone[b as usize] / real(self.outfits.max(1));
            let beside = self.together.beside(a);
            let found =
                beside.binary_search_by_key(&b, |(other, _)| *other).map_or(0.0, |place| beside[place].1);
            ((found + 1.0) / (expected + 1.0)).ln()
        };
        all.map(score).sum::<f64>() / real(pair.first.len() * pair.second.len())
    }
}
