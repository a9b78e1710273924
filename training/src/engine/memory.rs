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
    /// By row: one more than the article that the row is about, such as a product that the customer had; 0 for none.
    pub(crate) itself: Param,
    /// How much the visible articles' rows say, then each remembered feature's; then the same of the articles that rows
    /// are about: one that is in the outfit already, one that is a feature's value.
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

/// An article's number in a table.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^24")]
fn as_article(number: f32) -> u32 {
    number as u32
}

impl Memory {
    /// The visible articles, and each remembered feature.
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
        let itself = weights.data(self.itself);
        let has_memory = |article: u32| kept.is_none_or(|kept| kept[article as usize]);
        let mut of_row = |row: usize, source: usize| {
            if itself[row] > 0.0 {
                let article = as_article(itself[row] - 1.0);
                take(Boost { article, source: self.sources() + source, strength: 1.0 });
            }
            if source == 0 && !has_memory(as_article(itself[row] - 1.0)) {
                return;
            }
            // What the last place of a full row has, others did not reach.
            let last = (row + 1) * width - 1;
            let cutoff = strength(counts[last], expected[last]);
            for place in row * width..(row + 1) * width {
                if counts[place] == 0.0 {
                    break;
                }
                let article = as_article(articles[place]);
                let count = if target == Some(article) { counts[place] - 1.0 } else { counts[place] };
                let strength = strength(count, expected[place]);
                let is_remembered = target != Some(article) || (count > expected[place] && strength > cutoff);
                if is_remembered && has_memory(article) {
                    take(Boost { article, source, strength });
                }
            }
        };
        for article in shard.visible(outfit) {
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
    }

    /// The number of rows.
    pub(crate) fn rows_count(&self, weights: &Weights) -> usize {
        weights.tensor(self.articles).shape[0]
    }

    /// By row, what it adds to the logits of which articles, in one column more than the table has. For export.
    pub(crate) fn rows(&self, weights: &Weights) -> (Vec<i32>, Vec<f32>) {
        let table = weights.tensor(self.articles);
        let width = table.shape[1];
        let factors = weights.data(self.weights);
        let (counts, expected) = (weights.data(self.counts), weights.data(self.expected));
        let itself = weights.data(self.itself);
        let starts: Vec<usize> = self.features.iter().flatten().copied().collect();
        let (mut articles, mut strengths) = (Vec::new(), Vec::new());
        let whole =
            |number: f32| i32::try_from(as_article(number)).expect("articles fit 32 bits; this is a bug");
        for (row, &about) in itself.iter().enumerate() {
            let source = starts.iter().filter(|start| **start <= row).count();
            articles.push(if about > 0.0 { whole(about - 1.0) } else { 0 });
            strengths.push(if about > 0.0 { GAIN * factors[self.sources() + source] } else { 0.0 });
            for place in row * width..(row + 1) * width {
                articles.push(whole(table.data[place]));
                strengths.push(GAIN * factors[source] * strength(counts[place], expected[place]));
            }
        }
        (articles, strengths)
    }
}
