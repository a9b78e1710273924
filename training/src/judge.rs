//! One row of logits against the article that was there: rank, probability, and what was put first.
//!
//! Training judges the development split by it and evaluation the exported files, so both say the same
//! of the same numbers. It knows one row; averages are [`crate::metrics`]'.

use crate::engine::Head;

/// Articles put first that are told by name.
pub(crate) const FIRST: usize = 5;

/// What one answer was worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    /// In nats.
    pub(crate) cross_entropy: f64,
    /// From 1 up, over the whole catalogue; articles of equal logits share their mean rank.
    pub(crate) rank: f64,
    /// The articles with the highest logits, the highest first; `u32::MAX` past the end of a catalogue
    /// that has fewer.
    pub(crate) first: [u32; FIRST],
    /// The probability of the first of them.
    pub(crate) confidence: f64,
}

impl Verdict {
    /// Of the article that was there.
    pub(crate) fn probability(&self) -> f64 {
        (-self.cross_entropy).exp()
    }
}

/// Judges a row, and leaves something else in it.
pub(crate) fn judge(logits: &mut [f32], target: u32) -> Verdict {
    let own = logits[target as usize];
    let (above, equal) = compared(logits, own);
    let first = first(logits);
    let highest = logits[first[0] as usize];
    let cross_entropy = f64::from(Head::loss(logits, &[target], &[1.0])[0]);
    let confidence = (f64::from(highest) - f64::from(own) - cross_entropy).exp();
    let rank = 1.0 + f64::from(above) + f64::from(equal.saturating_sub(1)) / 2.0;
    Verdict { cross_entropy, rank, first, confidence }
}

/// How many are above, and how many equal. A plain loop, for the compiler to widen.
fn compared(logits: &[f32], own: f32) -> (u32, u32) {
    let (mut above, mut equal) = (0, 0);
    for logit in logits {
        above += u32::from(*logit > own);
        #[expect(clippy::float_cmp, reason = "ties are equal to the bit")]
        {
            equal += u32::from(*logit == own);
        }
    }
    (above, equal)
}

/// The highest few; of equals the one that comes first.
fn first(logits: &[f32]) -> [u32; FIRST] {
    let mut places = [u32::MAX; FIRST];
    let mut values = [f32::NEG_INFINITY; FIRST];
    for (place, &logit) in (0..).zip(logits) {
        if logit > values[FIRST - 1] {
            let at = values.partition_point(|value| *value >= logit);
            values[at..].rotate_right(1);
            places[at..].rotate_right(1);
            values[at] = logit;
            places[at] = place;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics;

    #[test]
    fn a_row_is_judged_as_the_metrics_say() {
        let logits = [0.5, 2.0, -1.0, 2.0, 0.5, 0.5, 3.0];
        let total: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
        let scores = logits.map(f64::from);
        for target in 0..7 {
            let verdict = judge(&mut logits.clone(), target);
            let probability = scores[target as usize].exp() / total;
            assert!((verdict.probability() - probability).abs() < 1e-6);
            assert!((verdict.rank - metrics::rank(&scores, target as usize)).abs() < 1e-12);
            assert_eq!(verdict.first, [6, 1, 3, 0, 4]);
            assert!((verdict.confidence - 3_f64.exp() / total).abs() < 1e-6);
        }
    }

    #[test]
    fn a_catalogue_may_be_smaller_than_the_list() {
        let verdict = judge(&mut [1.0, 2.0], 0);
        assert_eq!(verdict.first, [1, 0, u32::MAX, u32::MAX, u32::MAX]);
        assert!((verdict.rank - 2.0).abs() < 1e-12);
    }
}
