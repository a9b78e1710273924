//! Random streams: every row of the world, and every outfit of every epoch, has its own stream, derived
//! from the seed, the table and the row's number, so that results do not depend on the number of threads.
//!
//! The distributions are implemented here because a library's next release may draw them differently,
//! and a world must not change without a new version.

use rand_pcg::{
    Pcg64,
    rand_core::{Rng, SeedableRng},
};

use crate::number::real;

/// The use of a stream. The numbers determine the world's version and every run's figures.
#[derive(Debug, Clone, Copy)]
pub enum Table {
    Article = 1,
    Customer = 2,
    Outfit = 3,
    Split = 4,
    Slots = 5,
    Contexts = 6,
    Development = 7,
    /// A model's initial weights, by tensor.
    Weights = 8,
    /// The order of an epoch's outfits, by epoch.
    Order = 9,
    /// The slots to mask, by epoch and outfit.
    Masks = 10,
    /// Bootstrap samples of outfits, by sample.
    Bootstrap = 11,
    /// Customers that a release shows, by customer.
    Shown = 12,
    /// How outfits are split into halves, by epoch and outfit.
    Pairs = 13,
    /// The features that a step does not see, by epoch and outfit.
    Dropped = 14,
    /// The slots and candidates that the conditional logit is fitted to, by outfit.
    Logit = 15,
    /// The articles that a step makes of their values alone, by step.
    Own = 16,
    /// Where the match begins.
    Match = 17,
    /// Where the mixture of the personas begins.
    Personas = 18,
    /// The articles that no training outfit has.
    New = 19,
    /// Where the search for an embedding's components begins.
    Embedding = 20,
    /// A new article's values where it says nothing, by article.
    Unsaid = 21,
    /// The articles of an order or an outfit that has too many, by its number.
    Sampled = 22,
    /// The parts of a cross-validation, by row of parts.
    Folds = 23,
    /// When an article is sold, by article.
    Seasons = 24,
    /// The steps of fashions, by week.
    Fashions = 25,
    /// The outfits of a week, by week and outfit.
    InWeek = 26,
}

/// One row's stream of random numbers.
#[derive(Debug)]
pub struct Stream(Pcg64);

impl Stream {
    pub fn new(seed: u64, table: Table, index: usize) -> Self {
        let mut state = splitmix(seed) ^ splitmix(table as u64).rotate_left(17);
        state ^= splitmix(index as u64 ^ 0x5851_F42D_4C95_7F2D).rotate_left(31);
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            state = splitmix(state);
            chunk.copy_from_slice(&state.to_le_bytes());
        }
        Self(Pcg64::from_seed(bytes))
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        /// 2⁻⁵³, the distance of neighbouring draws.
        const STEP: f64 = f64::EPSILON / 2.0;
        let bits = self.0.next_u64() >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds")]
        let steps = bits as f64;
        steps * STEP
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A uniform integer below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the product is at least 0 and below n"
        )]
        let drawn = (self.uniform() * real(n)) as usize;
        drawn.min(n - 1)
    }

    /// A draw from the normal distribution (Box–Muller).
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        mean + deviation * radius * angle.cos()
    }

    /// `count` draws from the normal distribution around 0.
    #[expect(clippy::cast_possible_truncation, reason = "a weight has a float32's precision")]
    pub(crate) fn normals(&mut self, count: usize, deviation: f64) -> Vec<f32> {
        (0..count).map(|_| self.normal(0.0, deviation) as f32).collect()
    }

    /// An index, drawn in proportion to the weights, which are not negative and not all zero.
    pub(crate) fn weighted(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let mut left = self.uniform() * total;
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding can leave a remainder, which belongs to the last index with a weight.
        weights.iter().rposition(|weight| *weight > 0.0).expect("weights are not all zero")
    }

    /// Up to `count` distinct indices, drawn one after the other in proportion to the weights.
    pub(crate) fn weighted_without_replacement(&mut self, mut weights: Vec<f64>, count: usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count && weights.iter().any(|weight| *weight > 0.0) {
            let index = self.weighted(&weights);
            weights[index] = 0.0;
            drawn.push(index);
        }
        drawn
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Draws all of these numbers. Each has its own stream, so the order of `from` does not matter.
pub(crate) fn in_drawn_order(seed: u64, table: Table, from: &[u32]) -> Vec<u32> {
    let mut drawn = from.to_vec();
    drawn.sort_by_cached_key(|number| {
        (Stream::new(seed, table, *number as usize).uniform().to_bits(), *number)
    });
    drawn
}

/// Chooses `count` of these numbers and returns them in ascending order.
pub(crate) fn choose(seed: u64, table: Table, from: &[u32], count: usize) -> Vec<u32> {
    let mut drawn = in_drawn_order(seed, table, from);
    drawn.truncate(count);
    drawn.sort_unstable();
    drawn
}

/// Vigna's `SplitMix64`: spreads neighbouring numbers over all 64 bits.
pub(crate) fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
