//! Figures of few slots, with intervals.

use std::fmt::Write;

use super::Cases;
use crate::{
    baselines::Tallies,
    judge::Verdict,
    metrics::{Estimate, Summary},
    number::real,
};

/// Figures of fewer slots say little.
pub const FEW: usize = 200;
/// The normal distribution's 97.5 % quantile.
const WIDTH: f64 = 1.96;

/// A table of the answers to these cases, with 95 % intervals.
pub(crate) fn table_of_answers(cases: &Cases, answers: &[(String, &[Verdict])]) -> String {
    let summary = |verdicts: &[Verdict]| {
        let by_outfit: Vec<Vec<Verdict>> =
            cases.with(verdicts).map(|(_, verdicts)| verdicts.to_vec()).collect();
        Tallies::of(&by_outfit).any.summary()
    };
    let summaries: Vec<(String, Summary)> =
        answers.iter().map(|(name, verdicts)| (name.clone(), summary(verdicts))).collect();
    let lines: Vec<(String, &Summary)> =
        summaries.iter().map(|(name, summary)| (name.clone(), summary)).collect();
    interval_table(&lines, cases.by_outfit().count())
}

/// A table of figures with 95 % intervals.
pub fn interval_table(lines: &[(String, &Summary)], outfits: usize) -> String {
    let mut text = "| method | cross-entropy | recall@1 % | recall@5 % |\n|---|---|---|---|\n".to_owned();
    for (name, summary) in lines {
        let nats = match spread(summary.cross_entropy, outfits) {
            Some((low, high)) => format!("{:.4} ({low:.4} to {high:.4})", summary.cross_entropy.mean),
            None => format!("{:.4}", summary.cross_entropy.mean),
        };
        #[expect(clippy::cast_precision_loss, reason = "slots are counted in millions at most")]
        let slots = summary.slots as f64;
        let percent = |recall: Estimate| {
            let (low, high) = wilson(recall, real(outfits), slots);
            format!("{:.2} ({:.2} to {:.2})", 100.0 * recall.mean, 100.0 * low, 100.0 * high)
        };
        let _ = writeln!(
            text,
            "| {name} | {nats} | {} | {} |",
            percent(summary.recall_at_1),
            percent(summary.recall_at_5)
        );
    }
    text
}

/// Student's interval of a mean over outfits; none of fewer than three.
fn spread(Estimate { mean, standard_error }: Estimate, outfits: usize) -> Option<(f64, f64)> {
    let freedom = real(outfits.checked_sub(3)? + 2);
    // The first terms of Cornish and Fisher's series.
    let width = WIDTH
        + (WIDTH.powi(3) + WIDTH) / (4.0 * freedom)
        + (5.0 * WIDTH.powi(5) + 16.0 * WIDTH.powi(3) + 3.0 * WIDTH) / (96.0 * freedom * freedom);
    Some((mean - width * standard_error, mean + width * standard_error))
}

/// Wilson's interval of a share. It counts as many slots as are independent, judged by the standard error: at least one of each
/// outfit, at most all.
fn wilson(Estimate { mean, standard_error }: Estimate, outfits: f64, slots: f64) -> (f64, f64) {
    let independent = mean * (1.0 - mean) / standard_error.powi(2);
    let count = if independent.is_finite() { independent.clamp(outfits, slots) } else { outfits };
    let square = WIDTH * WIDTH / count;
    let middle = (mean + square / 2.0) / (1.0 + square);
    let half = WIDTH / (1.0 + square) * (mean * (1.0 - mean) / count + square / (4.0 * count)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hit_among_few_slots_may_still_be_many() {
        let near = |(low, high): (f64, f64), expected: (f64, f64)| {
            assert!((low - expected.0).abs() < 1e-3 && (high - expected.1).abs() < 1e-3, "{low} to {high}");
        };
        let none = Estimate { mean: 0.0, standard_error: 0.0 };
        near(wilson(none, 1.0, 1.0), (0.0, 0.793));
        near(wilson(none, 10.0, 40.0), (0.0, 0.278));
        // 20 of 100 independent slots.
        near(wilson(Estimate { mean: 0.2, standard_error: 0.04 }, 25.0, 100.0), (0.133, 0.289));
        // The slots of an outfit agree, so there are as many as outfits.
        near(wilson(Estimate { mean: 0.2, standard_error: 0.08 }, 25.0, 100.0), (0.089, 0.391));
    }

    #[test]
    fn few_outfits_widen_the_interval_of_a_mean() {
        let one = Estimate { mean: 3.0, standard_error: 1.0 };
        assert_eq!(spread(one, 2), None);
        let (low, high) = spread(one, 6).unwrap();
        assert!((high - 3.0 - 2.571).abs() < 0.03 && (3.0 - low - 2.571).abs() < 0.03, "{low} to {high}");
        assert!((spread(one, 1000).unwrap().1 - 4.96).abs() < 0.01);
    }
}
