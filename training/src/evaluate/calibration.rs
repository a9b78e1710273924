//! Calibration: whether a model's confidence matches its accuracy.

use serde::{Deserialize, Serialize};

use crate::{judge::Verdict, number::real};

/// Answers of similar confidence. All bins have equally many, because with thousands of articles nearly all
/// confidences are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    pub slots: usize,
    /// The mean probability of the top article.
    pub confidence: f64,
    /// How often it was the true one.
    pub accuracy: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// In ascending order of confidence.
    pub bins: Vec<Bin>,
    /// The mean distance between confidence and accuracy.
    pub expected_error: f64,
}

const BINS: usize = 10;

impl Calibration {
    pub(super) fn new(verdicts: &[Verdict]) -> Self {
        let mut by_confidence: Vec<&Verdict> = verdicts.iter().collect();
        by_confidence.sort_by(|a, b| a.confidence.total_cmp(&b.confidence));
        let bins: Vec<Bin> =
            by_confidence.chunks(verdicts.len().div_ceil(BINS).max(1)).map(Bin::new).collect();
        let error =
            |bin: &Bin| real(bin.slots) / real(verdicts.len()) * (bin.confidence - bin.accuracy).abs();
        let expected_error = bins.iter().map(error).sum();
        Self { bins, expected_error }
    }
}

impl Bin {
    fn new(verdicts: &[&Verdict]) -> Self {
        let mean = |value: &dyn Fn(&Verdict) -> f64| {
            verdicts.iter().map(|verdict| value(verdict)).sum::<f64>() / real(verdicts.len())
        };
        Self {
            slots: verdicts.len(),
            confidence: mean(&|verdict| verdict.confidence),
            accuracy: mean(&|verdict| f64::from(u8::from(verdict.rank <= 1.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_compared_with_accuracy() {
        let verdict = |confidence: f64, right: bool| Verdict {
            cross_entropy: 1.0,
            rank: if right { 1.0 } else { 2.0 },
            first: [0; crate::judge::FIRST],
            confidence,
            within_type: None,
            new_articles: None,
        };
        // Ten bins of two, with one right answer each.
        let verdicts: Vec<Verdict> =
            (0..20_u8).map(|place| verdict(f64::from(place / 2) / 10.0, place % 2 == 0)).collect();
        let calibration = Calibration::new(&verdicts);
        assert_eq!(calibration.bins.len(), 10);
        assert!(calibration.bins.iter().all(|bin| bin.slots == 2 && (bin.accuracy - 0.5).abs() < 1e-12));
        assert!((calibration.bins[9].confidence - 0.9).abs() < 1e-12);
        let expected = (0..10_u8).map(|bin| (f64::from(bin) / 10.0 - 0.5).abs() / 10.0).sum::<f64>();
        assert!((calibration.expected_error - expected).abs() < 1e-12);
    }
}
