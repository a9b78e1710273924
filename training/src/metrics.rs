//! Metrics of answers to blanks: ranks and averages.
//!
//! Ranks are over all articles that a method may suggest, never sampled. Articles already in the outfit are ranked, too, for every
//! method. Articles with equal scores share their mean rank.

use serde::{Deserialize, Serialize};

use crate::engine::vectorised;

/// Sums over the answers to many blanks.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    slots: u64,
    outfits: Sizes,
    /// In the order of [`Summary`]'s estimates.
    scores: [Moments; 7],
}

/// A mean over slots, with its standard error. Outfits count as independent, slots of one outfit do not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    pub standard_error: f64,
}

impl Estimate {
    /// The mean of independent values.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut moments = Moments::default();
        let mut sizes = Sizes::default();
        for value in values {
            moments.add(value, 1.0);
            sizes.add(1.0);
        }
        moments.estimate(sizes)
    }
}

/// The averages of a [`Tally`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub slots: u64,
    /// In nats.
    pub cross_entropy: Estimate,
    pub recall_at_1: Estimate,
    pub recall_at_5: Estimate,
    pub recall_at_250: Estimate,
    pub mrr: Estimate,
    pub ndcg_at_10: Estimate,
    pub mean_rank: Estimate,
}

/// Figures of the same answers twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered<T> {
    /// Among all articles.
    pub any: T,
    /// With the missing article's type known, among the articles of that type that are not in the outfit.
    pub told_type: T,
}

impl Tally {
    /// Adds an outfit with one blank: the true article's probability, and its rank from 1.
    pub fn add(&mut self, probability: f64, rank: f64) {
        self.add_outfit([(probability, rank)]);
    }

    /// Adds the blanks of one outfit: for each, the true article's probability and rank.
    pub fn add_outfit(&mut self, answers: impl IntoIterator<Item = (f64, f64)>) {
        let hit = |rank: f64, k: f64| f64::from(u8::from(rank <= k));
        let mut sums = [0.0; 7];
        let mut slots = 0;
        for (probability, rank) in answers {
            slots += 1;
            let scores = [
                -probability.ln(),
                hit(rank, 1.0),
                hit(rank, 5.0),
                hit(rank, 250.0),
                1.0 / rank,
                hit(rank, 10.0) / (rank + 1.0).log2(),
                rank,
            ];
            for (sum, score) in sums.iter_mut().zip(scores) {
                *sum += score;
            }
        }
        self.slots += slots;
        self.outfits.add(real(slots));
        for (moments, sum) in self.scores.iter_mut().zip(sums) {
            moments.add(sum, real(slots));
        }
    }

    /// The sums of both.
    #[must_use]
    pub fn merge(mut self, other: &Tally) -> Self {
        self.slots += other.slots;
        self.outfits.merge(other.outfits);
        for (moments, other) in self.scores.iter_mut().zip(other.scores) {
            moments.merge(other);
        }
        self
    }

    pub fn summary(&self) -> Summary {
        let estimates = self.scores.map(|moments| moments.estimate(self.outfits));
        let [cross_entropy, recall_at_1, recall_at_5, recall_at_250, mrr, ndcg_at_10, mean_rank] = estimates;
        Summary {
            slots: self.slots,
            cross_entropy,
            recall_at_1,
            recall_at_5,
            recall_at_250,
            mrr,
            ndcg_at_10,
            mean_rank,
        }
    }
}

/// The rank of an article among all scores, from 1; equal scores share their mean rank.
pub fn rank(scores: &[f64], target: usize) -> f64 {
    let (above, equal) = count_above_and_equal(scores, scores[target]);
    1.0 + real(above) + real(equal - 1) / 2.0
}

vectorised! {
    /// Counts scores above and equal to `own`. Counts may be added in any order, so the compiler vectorises this.
    #[expect(clippy::float_cmp, reason = "ties are equal to the bit")]
    fn count_above_and_equal<'a>(scores: &'a [f64], own: f64) -> (u64, u64) {
        let counted = scores.iter().map(|score| (u64::from(*score > own), u64::from(*score == own)));
        counted.fold((0, 0), |(above, equal), (more, same)| (above + more, equal + same))
    }
}

/// Sums over the outfits' numbers of slots.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    outfits: f64,
    slots: f64,
    squares: f64,
}

impl Sizes {
    fn add(&mut self, slots: f64) {
        self.merge(Sizes { outfits: 1.0, slots, squares: slots * slots });
    }

    fn merge(&mut self, other: Sizes) {
        self.outfits += other.outfits;
        self.slots += other.slots;
        self.squares += other.squares;
    }
}

/// Sums over the outfits' sums of one score.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
    /// Sum times slots.
    products: f64,
}

impl Moments {
    fn add(&mut self, sum: f64, slots: f64) {
        self.merge(Moments { sum, squares: sum * sum, products: sum * slots });
    }

    fn merge(&mut self, other: Moments) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.products += other.products;
    }

    /// The mean over slots, with the standard error of a ratio of two sums over outfits.
    fn estimate(self, sizes: Sizes) -> Estimate {
        let slots = sizes.slots.max(1.0);
        let mean = self.sum / slots;
        let apart = self.squares - 2.0 * mean * self.products + mean * mean * sizes.squares;
        let correction = sizes.outfits / (sizes.outfits - 1.0).max(1.0);
        Estimate { mean, standard_error: (apart.max(0.0) * correction).sqrt() / slots }
    }
}

#[expect(clippy::cast_precision_loss, reason = "slots are counted in millions at most")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;
    use crate::testing::near;

    #[test]
    fn equal_scores_share_their_mean_rank() {
        let scores = [0.1, 0.4, 0.1, 0.3, 0.1];
        // Ranks 3, 4 and 5 are shared.
        let ranks: Vec<f64> = (0..5).map(|target| rank(&scores, target)).collect();
        assert_eq!(ranks, [4.0, 1.0, 4.0, 2.0, 4.0]);
    }

    #[test]
    fn averages_match_values_by_hand() {
        let mut first = Tally::default();
        first.add(0.5, 1.0);
        let mut second = Tally::default();
        second.add(0.25, 3.0);
        second.add(0.125, 300.0);
        let summary = first.merge(&second).summary();
        assert_eq!(summary.slots, 3);
        near(summary.cross_entropy.mean, (1.0 + 2.0 + 3.0) * LN_2 / 3.0, 1e-12);
        // Variance of 1, 2, 3 is 1; over three slots, 1/3.
        near(summary.cross_entropy.standard_error, LN_2 * (1.0_f64 / 3.0).sqrt(), 1e-12);
        near(summary.recall_at_1.mean, 1.0 / 3.0, 1e-12);
        near(summary.recall_at_5.mean, 2.0 / 3.0, 1e-12);
        near(summary.recall_at_250.mean, 2.0 / 3.0, 1e-12);
        near(summary.mrr.mean, (1.0 + 1.0 / 3.0 + 1.0 / 300.0) / 3.0, 1e-12);
        near(summary.ndcg_at_10.mean, (1.0 + 0.5) / 3.0, 1e-12);
        // Squared distances 4 + 1 + 0 + 9 = 14: variance 14/3, over four values.
        let estimate = Estimate::from_values([1.0, 2.0, 3.0, 6.0]);
        near(estimate.mean, 3.0, 1e-12);
        near(estimate.standard_error, (14.0_f64 / 3.0 / 4.0).sqrt(), 1e-12);
    }

    #[test]
    fn slots_of_one_outfit_are_not_independent() {
        // Two outfits whose slots all agree count as two slots.
        let mut tally = Tally::default();
        tally.add_outfit([(0.5, 1.0); 4]);
        tally.add_outfit([(0.25, 9.0); 4]);
        let summary = tally.summary();
        assert_eq!(summary.slots, 8);
        near(summary.cross_entropy.mean, 1.5 * LN_2, 1e-12);
        near(summary.cross_entropy.standard_error, 0.5 * LN_2, 1e-12);
        near(summary.recall_at_1.mean, 0.5, 1e-12);
        // All slots are equal, so nothing is uncertain.
        let mut tally = Tally::default();
        tally.add_outfit([(0.5, 2.0)]);
        tally.add_outfit([(0.5, 2.0); 3]);
        assert!(tally.summary().cross_entropy.standard_error < 1e-7);
    }
}
