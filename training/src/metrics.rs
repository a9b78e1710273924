//! How good an answer to a blank is: the one place where ranks and their averages are taken.
//!
//! Ranks are over the whole catalogue, never sampled, and nothing is left out of it: an article that
//! stands in the outfit already keeps its rank, for every method alike. Articles of equal score share
//! their mean rank.

use serde::Serialize;

/// The answers to many blanks, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    slots: u64,
    loss: Moments,
    recall_at_1: Moments,
    recall_at_5: Moments,
    recall_at_250: Moments,
    reciprocal_rank: Moments,
    gain_at_10: Moments,
}

/// A mean, and its standard error if the slots were drawn independently.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    pub standard_error: f64,
}

impl Estimate {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut moments = Moments::default();
        let mut count = 0;
        for value in values {
            moments.add(value);
            count += 1;
        }
        moments.estimate(count)
    }
}

/// The averages of a [`Tally`].
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub slots: u64,
    /// In nats.
    pub cross_entropy: Estimate,
    pub recall_at_1: Estimate,
    pub recall_at_5: Estimate,
    pub recall_at_250: Estimate,
    pub mrr: Estimate,
    pub ndcg_at_10: Estimate,
}

impl Tally {
    /// One blank: the probability that the true article was given, and its rank from 1 up.
    pub fn add(&mut self, probability: f64, rank: f64) {
        let hit = |k: f64| f64::from(u8::from(rank <= k));
        self.slots += 1;
        self.loss.add(-probability.ln());
        self.recall_at_1.add(hit(1.0));
        self.recall_at_5.add(hit(5.0));
        self.recall_at_250.add(hit(250.0));
        self.reciprocal_rank.add(1.0 / rank);
        self.gain_at_10.add(hit(10.0) / (rank + 1.0).log2());
    }

    /// Both tallies together.
    #[must_use]
    pub fn merge(mut self, other: &Tally) -> Self {
        self.slots += other.slots;
        self.loss.merge(other.loss);
        self.recall_at_1.merge(other.recall_at_1);
        self.recall_at_5.merge(other.recall_at_5);
        self.recall_at_250.merge(other.recall_at_250);
        self.reciprocal_rank.merge(other.reciprocal_rank);
        self.gain_at_10.merge(other.gain_at_10);
        self
    }

    pub fn summary(&self) -> Summary {
        Summary {
            slots: self.slots,
            cross_entropy: self.loss.estimate(self.slots),
            recall_at_1: self.recall_at_1.estimate(self.slots),
            recall_at_5: self.recall_at_5.estimate(self.slots),
            recall_at_250: self.recall_at_250.estimate(self.slots),
            mrr: self.reciprocal_rank.estimate(self.slots),
            ndcg_at_10: self.gain_at_10.estimate(self.slots),
        }
    }
}

/// The rank of one article among all scores, from 1 up; equals share their mean rank.
pub fn rank(scores: &[f64], target: usize) -> f64 {
    let own = scores[target];
    let (mut above, mut equal) = (0_u32, 0_u32);
    for score in scores {
        above += u32::from(*score > own);
        equal += u32::from(score.total_cmp(&own).is_eq());
    }
    1.0 + f64::from(above) + f64::from(equal - 1) / 2.0
}

#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: Moments) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn estimate(self, count: u64) -> Estimate {
        #[expect(clippy::cast_precision_loss, reason = "slots are counted in millions at most")]
        let n = count.max(1) as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        Estimate { mean, standard_error: (variance / (n - 1.0).max(1.0)).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_share_their_mean_rank() {
        let scores = [0.1, 0.4, 0.1, 0.3, 0.1];
        assert_eq!(rank(&scores, 1).to_bits(), 1.0_f64.to_bits());
        assert_eq!(rank(&scores, 3).to_bits(), 2.0_f64.to_bits());
        // Ranks 3, 4 and 5 are shared.
        assert_eq!(rank(&scores, 0).to_bits(), 4.0_f64.to_bits());
    }

    #[test]
    fn the_standard_error_is_the_means() {
        let estimate = Estimate::of([1.0, 2.0, 3.0, 6.0]);
        assert!((estimate.mean - 3.0).abs() < 1e-12);
        // Squared distances 4 + 1 + 0 + 9 = 14: variance 14/3, over four values.
        assert!((estimate.standard_error - (14.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn averages_by_hand() {
        let mut first = Tally::default();
        first.add(0.5, 1.0);
        let mut second = Tally::default();
        second.add(0.25, 3.0);
        second.add(0.125, 300.0);
        let summary = first.merge(&second).summary();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        let ln2 = std::f64::consts::LN_2;
        assert_eq!(summary.slots, 3);
        near(summary.cross_entropy.mean, (1.0 + 2.0 + 3.0) * ln2 / 3.0);
        // Variance of 1, 2, 3 is 1; over three slots, 1/3.
        near(summary.cross_entropy.standard_error, ln2 * (1.0_f64 / 3.0).sqrt());
        near(summary.recall_at_1.mean, 1.0 / 3.0);
        near(summary.recall_at_5.mean, 2.0 / 3.0);
        near(summary.recall_at_250.mean, 2.0 / 3.0);
        near(summary.mrr.mean, (1.0 + 1.0 / 3.0 + 1.0 / 300.0) / 3.0);
        near(summary.ndcg_at_10.mean, (1.0 + 0.5) / 3.0);
    }
}
