//! Significance of the differences between methods, by a paired bootstrap.
//!
//! Each sample draws whole outfits, since the slots of an outfit are dependent, and the seeds of each
//! method. All methods are compared on the same samples.

use atelier_engine::evaluation::Metric;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Cases;
use crate::{
    judge::Verdict,
    number::real,
    random::{Stream, Table},
};

/// The first method's figure minus the second's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub metric: Metric,
    pub first: String,
    pub second: String,
    pub difference: f64,
    /// The bounds of the 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Two-sided: twice the share of samples with the opposite sign.
    pub p: f64,
}

/// The number of samples.
pub(super) const DRAWS: usize = 10_000;
/// Fixed, so that every comparison uses the same samples.
const SEED: u64 = 1;

/// A method's name, and its answers for each seed.
pub(crate) type Runs<'a> = (String, Vec<&'a [Verdict]>);

/// Compares every pair of methods by every metric.
pub(crate) fn differences(cases: &Cases, methods: &[Runs<'_>]) -> Vec<Difference> {
    let sizes: Vec<f64> = cases.by_outfit().map(|outfit| real(outfit.len())).collect();
    let sums: Vec<Vec<Sums>> = methods
        .iter()
        .map(|(_, runs)| runs.iter().map(|verdicts| Sums::new(cases, verdicts)).collect())
        .collect();
    let once = vec![1.0; sizes.len()];
    let observed: Vec<Figures> =
        sums.iter().map(|runs| mean(runs.iter().map(|run| run.means(&once, &sizes)))).collect();
    let draws: Vec<Vec<Figures>> = (0..DRAWS)
        .into_par_iter()
        .map(|draw| {
            let mut stream = Stream::new(SEED, Table::Bootstrap, draw);
            let mut times = vec![0.0; sizes.len()];
            for _ in 0..sizes.len() {
                times[stream.below(sizes.len())] += 1.0;
            }
            let resample = |runs: &Vec<Sums>| {
                let means: Vec<Figures> = runs.iter().map(|run| run.means(&times, &sizes)).collect();
                mean((0..runs.len()).map(|_| means[stream.below(means.len())]))
            };
            sums.iter().map(resample).collect()
        })
        .collect();
    let mut differences = Vec::new();
    for (index, metric) in Metric::ALL.into_iter().enumerate() {
        for first in 0..methods.len() {
            for second in first + 1..methods.len() {
                let difference = |figures: &[Figures]| figures[first][index] - figures[second][index];
                let mut found: Vec<f64> = draws.iter().map(|figures| difference(figures)).collect();
                found.sort_by(f64::total_cmp);
                let (low, high, p) = interval(&found);
                differences.push(Difference {
                    metric,
                    first: methods[first].0.clone(),
                    second: methods[second].0.clone(),
                    difference: difference(&observed),
                    low,
                    high,
                    p,
                });
            }
        }
    }
    differences
}

/// One number per metric.
type Figures = [f64; Metric::ALL.len()];

/// One run's scores, summed per outfit.
struct Sums(Vec<Figures>);

impl Sums {
    fn new(cases: &Cases, verdicts: &[Verdict]) -> Self {
        let sum = |verdicts: &[Verdict]| {
            Metric::ALL.map(|metric| verdicts.iter().map(|verdict| score(metric, verdict)).sum())
        };
        Self(cases.with(verdicts).map(|(_, verdicts)| sum(verdicts)).collect())
    }

    /// The means over slots, with each outfit repeated `times`.
    fn means(&self, times: &[f64], sizes: &[f64]) -> Figures {
        let mut total = Figures::default();
        let mut slots = 0.0;
        for ((sums, times), size) in self.0.iter().zip(times).zip(sizes) {
            slots += times * size;
            for (total, sum) in total.iter_mut().zip(sums) {
                *total += times * sum;
            }
        }
        total.map(|sum| sum / slots)
    }
}

fn score(metric: Metric, verdict: &Verdict) -> f64 {
    let hit = |k: f64| f64::from(u8::from(verdict.rank <= k));
    match metric {
        Metric::CrossEntropy => verdict.cross_entropy,
        Metric::RecallAt1 => hit(1.0),
        Metric::RecallAt5 => hit(5.0),
        Metric::RecallAt250 => hit(250.0),
        Metric::Mrr => 1.0 / verdict.rank,
    }
}

fn mean(figures: impl ExactSizeIterator<Item = Figures>) -> Figures {
    let count = real(figures.len());
    let mut total = Figures::default();
    for figures in figures {
        for (total, figure) in total.iter_mut().zip(figures) {
            *total += figure / count;
        }
    }
    total
}

/// The bounds of the middle 95 % of ascending numbers, and the p-value of a difference of zero.
fn interval(drawn: &[f64]) -> (f64, f64, f64) {
    let tail = drawn.len() / 40;
    let below = drawn.iter().filter(|value| **value <= 0.0).count();
    let above = drawn.iter().filter(|value| **value >= 0.0).count();
    // One is added because a finite sample never proves that something is impossible.
    let p = (2.0 * real(below.min(above) + 1) / real(drawn.len() + 1)).min(1.0);
    (drawn[tail], drawn[drawn.len() - 1 - tail], p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_middle_of_the_samples() {
        let drawn: Vec<f64> = (0..1000).map(|place| f64::from(place) - 100.5).collect();
        let (low, high, p) = interval(&drawn);
        assert!((low - (25.0 - 100.5)).abs() < 1e-12 && (high - (974.0 - 100.5)).abs() < 1e-12);
        assert!((p - 2.0 * 102.0 / 1001.0).abs() < 1e-12);
        assert!((interval(&[1.0; 1000]).2 - 2.0 / 1001.0).abs() < 1e-12);
        assert!((interval(&[0.0; 1000]).2 - 1.0).abs() < 1e-12);
    }
}
