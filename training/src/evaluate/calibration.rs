//! Whether a model is as sure as it may be: of the answers of which it was this sure, how many were
//! right.

use serde::{Deserialize, Serialize};

use crate::{judge::Verdict, number::real};

/// Answers of about the same confidence. Equally many stand in each bin, because over thousands of
/// articles nearly all confidences are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    pub slots: usize,
    /// Mean probability of the article put first.
    pub confidence: f64,
    /// How often it was the right one.
    pub accuracy: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// From the least to the most confident.
    pub bins: Vec<Bin>,
    /// Mean distance between confidence and accuracy over the bins.
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
        let mean = |of: &dyn Fn(&Verdict) -> f64| {
            verdicts.iter().map(|verdict| of(verdict)).sum::<f64>() / real(verdicts.len())
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
    fn confidence_is_held_against_what_was_right() {
        let verdict = |confidence: f64, right: bool| Verdict {
            cross_entropy: 1.0,
            rank: if right { 1.0 } else { 2.0 },
            first: [0; crate::judge::FIRST],
            confidence,
        };
        // Ten bins of two: sure ones are right half of the time.
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
