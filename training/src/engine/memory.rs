//! What goes with what, by counts: for each article, and for each value of some features, the articles that were
//! beside it more often than by chance. A few weights say how much that counts.
//!
//! Two articles of ten thousand that go together have too few outfits to be learned as vectors; a count holds them.

use super::{
    shard::Shard,
    weights::{Gradients, Param, Weights},
};

/// Where a model keeps its counts.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// By row: the articles that were beside it. Rows of articles, two empty rows for blanks and padding, then the rows
    /// of each remembered feature.
    pub(crate) articles: Param,
    /// How often, and how often by chance. An empty place was never.
    pub(crate) counts: Param,
    pub(crate) expected: Param,
    /// How much a visible article says, then each remembered feature, then that an article is in the outfit already.
    pub(crate) weights: Param,
    /// For each feature of the schema its first row, if it is remembered.
    pub(crate) features: Vec<Option<usize>>,
}

/// Something that boosts an article.
struct Boost {
    article: u32,
    /// The place of its weight.
    source: usize,
    strength: f32,
}

/// A few numbers that weigh thousands of counts must move faster than a vector's, which the optimiser moves as far in a
/// step.
const GAIN: f32 = 10.0;

/// How much a count says: how much more often than by chance, less if it is small.
pub(crate) fn strength(count: f32, expected: f32) -> f32 {
    (count / (expected + 1.0)).ln_1p()
}

impl Memory {
    /// The number of sources with a weight of their own, besides the outfit's own articles.
    fn sources(&self) -> usize {
        1 + self.features.iter().flatten().count()
    }

    /// Adds what an outfit's articles and features boost. An outfit that is learned from must not count itself: a
    /// target's own appearance is taken off, and with it the place that it may owe to that. Articles that are not `kept`
    /// have no memory.
    pub(crate) fn add(
        &self,
        weights: &Weights,
        shard: &Shard,
        targets: Option<&[u32]>,
        kept: Option<&[bool]>,
        logits: &mut [f32],
    ) {
        let factors = weights.data(self.weights);
        let articles = logits.len() / shard.outfits();
        for (outfit, logits) in logits.chunks_exact_mut(articles).enumerate() {
            self.each(weights, shard, outfit, targets.map(|targets| targets[outfit]), kept, |boost| {
                logits[boost.article as usize] += GAIN * factors[boost.source] * boost.strength;
            });
        }
    }

    /// Adds the gradient of the weights; `logits` are the logits' gradients.
    pub(crate) fn backward(
        &self,
        weights: &Weights,
        shard: &Shard,
        targets: &[u32],
        kept: Option<&[bool]>,
        logits: &[f32],
        gradients: &mut Gradients,
    ) {
        let articles = logits.len() / shard.outfits();
        let into = gradients.dense_mut(self.weights, weights);
        for ((outfit, logits), &target) in logits.chunks_exact(articles).enumerate().zip(targets) {
            self.each(weights, shard, outfit, Some(target), kept, |boost| {
                into[boost.source] += GAIN * logits[boost.article as usize] * boost.strength;
            });
        }
    }

    fn each(
        &self,
        weights: &Weights,
        shard: &Shard,
        outfit: usize,
        target: Option<u32>,
        kept: Option<&[bool]>,
        mut take: impl FnMut(Boost),
    ) {
        let table = weights.tensor(self.articles);
        let (width, articles) = (table.shape[1], &table.data);
        let (counts, expected) = (weights.data(self.counts), weights.data(self.expected));
        let has_memory = |article: u32| kept.is_none_or(|kept| kept[article as usize]);
        let mut of_row = |row: usize, source: usize| {
            // What the last place of a full row has, others did not reach.
            let last = (row + 1) * width - 1;
            let cutoff = strength(counts[last], expected[last]);
            for place in row * width..(row + 1) * width {
                if counts[place] == 0.0 {
                    break;
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an article's number"
                )]
                let article = articles[place] as u32;
                let count = if target == Some(article) { counts[place] - 1.0 } else { counts[place] };
                let strength = strength(count, expected[place]);
                let is_remembered = target != Some(article) || (count > expected[place] && strength > cutoff);
                if is_remembered && has_memory(article) {
                    take(Boost { article, source, strength });
                }
            }
        };
        for article in shard.visible(outfit).filter(|&article| has_memory(article)) {
            of_row(article as usize, 0);
        }
        let mut source = 0;
        for (feature, first) in self.features.iter().enumerate() {
            let Some(first) = first else { continue };
            source += 1;
            for &value in shard.given_values(outfit * self.features.len() + feature) {
                of_row(first + value as usize, source);
            }
        }
        for article in shard.visible(outfit) {
            take(Boost { article, source: self.sources(), strength: 1.0 });
        }
    }

    /// The number of rows.
    pub(crate) fn rows_count(&self, weights: &Weights) -> usize {
        weights.tensor(self.articles).shape[0]
    }

    /// By row, what it adds to the logits of which articles; the first place of an article's row is itself. For export.
    pub(crate) fn rows(&self, weights: &Weights) -> (Vec<i32>, Vec<f32>) {
        let table = weights.tensor(self.articles);
        let (rows, width) = (table.shape[0], table.shape[1]);
        let factors = weights.data(self.weights);
        let (counts, expected) = (weights.data(self.counts), weights.data(self.expected));
        let first_of_features = self.features.iter().flatten().copied().min().unwrap_or(rows);
        let starts: Vec<usize> = self.features.iter().flatten().copied().collect();
        let (mut articles, mut strengths) = (Vec::new(), Vec::new());
        for row in 0..rows {
            // Two rows are the blank's and padding's.
            let is_article = row + 2 < first_of_features;
            let source = starts.iter().filter(|start| **start <= row).count();
            articles.push(if is_article {
                i32::try_from(row).expect("articles fit 32 bits; this is a bug")
            } else {
                0
            });
            strengths.push(if is_article { GAIN * factors[self.sources()] } else { 0.0 });
            for place in row * width..(row + 1) * width {
                #[expect(clippy::cast_possible_truncation, reason = "an article's number")]
                articles.push(table.data[place] as i32);
                strengths.push(GAIN * factors[source] * strength(counts[place], expected[place]));
            }
        }
        (articles, strengths)
    }
}
