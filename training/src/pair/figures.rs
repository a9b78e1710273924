//! Figures of answers about pairs.

use serde::{Deserialize, Serialize};

use crate::number::real;

/// How well scores tell pairs apart; a higher score means more likely one outfit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairFigures {
    /// Half of them were one outfit.
    pub pairs: usize,
    /// The share of pairs that a threshold on the score classifies correctly.
    pub accuracy: f64,
    /// How often a pair that was one outfit scores above one that was not; equal scores count half.
    pub auc: f64,
}

impl PairFigures {
    pub fn new(scores: &[f64], same: &[bool], threshold: f64) -> Self {
        assert_eq!(scores.len(), same.len(), "one score per pair");
        let right = scores.iter().zip(same).filter(|(score, same)| (**score > threshold) == **same).count();
        Self {
            pairs: scores.len(),
            accuracy: real(right) / real(scores.len().max(1)),
            auc: auc(scores, same),
        }
    }

    /// The threshold with the highest accuracy on these scores, half way between two of them.
    pub fn best_threshold(scores: &[f64], same: &[bool]) -> f64 {
        let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(same.iter().copied()).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Starts with no pair above the threshold; each step down changes the count of correct pairs.
        let (mut gain, mut most, mut best) = (0_i64, 0, f64::INFINITY);
        for (place, (score, same)) in order.iter().enumerate() {
            gain += if *same { 1 } else { -1 };
            let next = order.get(place + 1).map_or(f64::NEG_INFINITY, |(next, _)| *next);
            if gain > most && next < *score {
                most = gain;
                best = if next.is_finite() { f64::midpoint(*score, next) } else { next };
            }
        }
        best
    }
}

fn auc(scores: &[f64], same: &[bool]) -> f64 {
    let mut order: Vec<(f64, bool)> = scores.iter().copied().zip(same.iter().copied()).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut won) = (0.0, 0.0);
    for equal in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let ones = real(equal.iter().filter(|(_, same)| *same).count());
        let others = real(equal.len()) - ones;
        won += ones * (below + others / 2.0);
        below += others;
    }
    let ones = real(scores.len()) - below;
    if ones * below > 0.0 { won / (ones * below) } else { 0.5 }
}
