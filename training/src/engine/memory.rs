//! Pairs of articles, by counts: for each article those most often found with it, compared with chance. A few weights
//! say how much that counts, and how much it counts that an article is in the outfit already or is a value of a feature,
//! such as what the customer had.
//!
//! Two articles of ten thousand that go together have too few outfits to be learned as vectors; a count holds them. Whole
//! outfits like the one that is asked about say more than pairs.

use atelier_engine::outfit_memory::{Candidates, OutfitMemory, Own};

use super::{
    Rows,
    shard::Shard,
    weights::{Gradients, Param, Weights},
};

/// Where a model keeps its counts.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// By article: those found with it. The last two rows, of blanks and padding, are empty.
    pub(crate) articles: Param,
    /// How often, and how often by chance. An empty place was never.
    pub(crate) counts: Param,
    pub(crate) expected: Param,
    /// By row of the features whose values are articles: one more than the article, or 0.
    pub(crate) named: Param,
    /// How much it counts what was found with the visible articles, by damping; that an article is one of them; that it is a
    /// value of each of these features.
    pub(crate) weights: Param,
    /// How much it counts what remembered outfits say.
    pub(crate) outfits: Param,
    /// For each feature of the schema its first row in `named`, if its values are articles.
    pub(crate) features: Vec<Option<usize>>,
}

/// Added to the count by chance before a count is compared with it: with a small one a rare article that was
/// there once counts for much. The weights say how much of each helps.
const DAMPINGS: [f32; 3] = [1.0, 0.1, 0.01];
/// The places of weights: one for each of the dampings, that of an article that is in the outfit already; those of features
/// follow.
const BESIDE: usize = 0;
const OWN: usize = DAMPINGS.len();

/// The number of a memory's weights; `features` is the number of features whose values are articles.
pub(crate) const fn count_weights(features: usize) -> usize {
    OWN + 1 + features
}

/// A few numbers that weigh thousands of counts must move faster than a vector's, which the optimiser moves as far in a
/// step.
const GAIN: f32 = 10.0;

/// Sets the weights of what was found with the visible articles, of these themselves, and of the articles that each feature names;
/// those of smaller dampings are 0.
#[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
pub(crate) fn set_first_weights(weights: &mut [f32], beside: f64, own: f64, named: &[f64]) {
    weights[BESIDE..OWN].fill(0.0);
    weights[BESIDE] = beside as f32 / GAIN;
    for (weight, worth) in weights[OWN..].iter_mut().zip([&own].into_iter().chain(named)) {
        *weight = *worth as f32 / GAIN;
    }
}

/// How much a count says: how much more often than by chance, less if it is small.
pub(crate) fn strength(count: f32, expected: f32) -> f32 {
    strengths(count, expected)[0]
}

fn strengths(count: f32, expected: f32) -> [f32; DAMPINGS.len()] {
    DAMPINGS.map(|damping| (count / (expected + damping)).ln_1p())
}

/// An article's number in a table.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^24")]
fn as_article(number: f32) -> u32 {
    number as u32
}

/// Over the shorter one's length.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Memory {
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
            let target = targets.map(|targets| targets[outfit]);
            self.each(weights, shard, outfit, target, kept, |article, source, strengths| {
                logits[article as usize] += GAIN * dot(&factors[source..], strengths);
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
            self.each(weights, shard, outfit, Some(target), kept, |article, source, strengths| {
                for (to, strength) in into[source..].iter_mut().zip(strengths) {
                    *to += GAIN * logits[article as usize] * strength;
                }
            });
        }
    }

    /// The remembered outfits' say on each outfit, as `add` takes it.
    pub(crate) fn describe(
        outfits: &OutfitMemory,
        shard: &Shard,
        targets: Option<&[u32]>,
        kept: Option<&[bool]>,
    ) -> Vec<Candidates> {
        let has_memory = |article: u32| kept.is_none_or(|kept| kept[article as usize]);
        let describe = |outfit: usize| {
            let visible: Vec<u32> = shard.visible(outfit).filter(|article| has_memory(*article)).collect();
            let size = shard.range(Rows::Slots, outfit).len();
            let own = targets.map(|targets| Own { target: targets[outfit], size });
            outfits.describe(&visible, own, has_memory)
        };
        (0..shard.outfits()).map(describe).collect()
    }

    /// Adds what remembered outfits say of each outfit.
    pub(crate) fn add_outfits(&self, weights: &Weights, said: &[Candidates], logits: &mut [f32]) {
        for (logits, candidates) in logits.chunks_exact_mut(logits.len() / said.len().max(1)).zip(said) {
            for (article, features) in candidates {
                logits[*article as usize] += dot(weights.data(self.outfits), features);
            }
        }
    }

    /// Adds the gradient of these weights; `logits` are the logits' gradients.
    pub(crate) fn backward_outfits(
        &self,
        weights: &Weights,
        said: &[Candidates],
        logits: &[f32],
        gradients: &mut Gradients,
    ) {
        if said.is_empty() {
            return;
        }
        let into = gradients.dense_mut(self.outfits, weights);
        for (logits, candidates) in logits.chunks_exact(logits.len() / said.len()).zip(said) {
            for (article, features) in candidates {
                into.iter_mut()
                    .zip(features)
                    .for_each(|(to, feature)| *to += logits[*article as usize] * feature);
            }
        }
    }

    /// Calls `take` with an article, the place of its first weight, and what its weights are multiplied by.
    fn each(
        &self,
        weights: &Weights,
        shard: &Shard,
        outfit: usize,
        target: Option<u32>,
        kept: Option<&[bool]>,
        mut take: impl FnMut(u32, usize, &[f32]),
    ) {
        let table = weights.tensor(self.articles);
        let (width, articles) = (table.shape[1], &table.data);
        let (counts, expected) = (weights.data(self.counts), weights.data(self.expected));
        let has_memory = |article: u32| kept.is_none_or(|kept| kept[article as usize]);
        for visible in shard.visible(outfit) {
            take(visible, OWN, &[1.0]);
            if !has_memory(visible) {
                continue;
            }
            let places = visible as usize * width..(visible as usize + 1) * width;
            // Articles outside a full row did not reach its last place.
            let cutoff = strength(counts[places.end - 1], expected[places.end - 1]);
            for place in places.take_while(|&place| counts[place] > 0.0) {
                let article = as_article(articles[place]);
                let count = if target == Some(article) { counts[place] - 1.0 } else { counts[place] };
                let strengths = strengths(count, expected[place]);
                let is_remembered = target != Some(article) || strengths[0] > cutoff;
                if is_remembered && has_memory(article) {
                    take(article, BESIDE, &strengths);
                }
            }
        }
        let named = weights.data(self.named);
        let of_articles =
            self.features.iter().enumerate().filter_map(|(place, first)| Some((place, (*first)?)));
        for (source, (feature, first)) in (OWN + 1..).zip(of_articles) {
            for &value in shard.given_values(outfit * self.features.len() + feature) {
                let article = named[first + value as usize];
                if article > 0.0 {
                    take(as_article(article - 1.0), source, &[1.0]);
                }
            }
        }
    }

    /// For export: by article's row, the articles that it boosts, first itself, and by how much, in one column more than
    /// the table has; then the same by row of the features whose values are articles.
    pub(crate) fn rows(&self, weights: &Weights) -> [(Vec<i32>, Vec<f32>); 2] {
        let whole = |number: f32| i32::try_from(as_article(number)).expect("articles fit 32 bits");
        let (table, factors) = (weights.tensor(self.articles), weights.data(self.weights));
        let (counts, expected) = (weights.data(self.counts), weights.data(self.expected));
        let (width, count) = (table.shape[1], table.shape[0] - 2);
        let (mut articles, mut strengths) = (Vec::new(), Vec::new());
        for row in 0..table.shape[0] {
            let is_article = row < count;
            articles.push(if is_article { i32::try_from(row).expect("articles fit 32 bits") } else { 0 });
            strengths.push(if is_article { GAIN * factors[OWN] } else { 0.0 });
            for place in row * width..(row + 1) * width {
                articles.push(whole(table.data[place]));
                strengths.push(GAIN * dot(factors, &self::strengths(counts[place], expected[place])));
            }
        }
        let named = weights.data(self.named);
        let starts: Vec<usize> = self.features.iter().flatten().copied().collect();
        let source = |row: usize| OWN + starts.iter().filter(|start| **start <= row).count();
        let by =
            |(row, &article): (usize, &f32)| if article > 0.0 { GAIN * factors[source(row)] } else { 0.0 };
        let boosted = named.iter().map(|article| whole((article - 1.0).max(0.0))).collect();
        [(articles, strengths), (boosted, named.iter().enumerate().map(by).collect())]
    }
}
