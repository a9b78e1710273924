//! Methods next to baselines on the same slots: which baseline is better, and how sure that is.

use atelier_engine::evaluation::Metric;

use super::{
    Cases,
    bootstrap::{Difference, Runs, differences},
};
use crate::{baselines::Asked, judge::Verdict};

/// A difference with a smaller p-value counts as shown.
const SHOWN: f64 = 0.05;

/// Begins the names of baselines where they stand next to methods' names.
const MARK: &str = "baseline ";

/// A baseline that was ahead of a method in some figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Rival {
    pub method: String,
    pub baseline: String,
    /// The baseline's figure less the method's, with the type known or not.
    ahead: Vec<(Difference, bool)>,
}

impl Rival {
    /// The baselines that were ahead of these methods in cross-entropy, recall@1 or recall@5, of any article or with its type
    /// known. One that is told the type counts only there, one that is a method nowhere.
    pub(crate) fn find(cases: &Cases, methods: &[Runs<'_>], baselines: &[Asked]) -> Vec<Self> {
        let mut rivals: Vec<Self> = Vec::new();
        for told_type in [false, true] {
            let is_method = |asked: &Asked| methods.iter().any(|(name, _)| *name == asked.baseline.name);
            let baselines = baselines
                .iter()
                .filter(|asked| (told_type || !asked.baseline.knows_type) && !is_method(asked))
                .map(|asked| (format!("{MARK}{}", asked.baseline.name), vec![asked.verdicts.as_slice()]));
            let runs: Vec<Runs<'_>> = baselines.chain(methods.iter().cloned()).collect();
            let judged: Vec<(String, Vec<Vec<Verdict>>)> = runs
                .into_iter()
                .map(|(name, runs)| (name, runs.into_iter().map(|run| judged(run, told_type)).collect()))
                .collect();
            let runs: Vec<Runs<'_>> = judged
                .iter()
                .map(|(name, runs)| (name.clone(), runs.iter().map(Vec::as_slice).collect()))
                .collect();
            for difference in differences(cases, &runs) {
                let is_ahead = match difference.metric {
                    Metric::CrossEntropy => difference.difference < 0.0,
                    Metric::RecallAt1 | Metric::RecallAt5 => difference.difference > 0.0,
                    Metric::RecallAt250 | Metric::Mrr => false,
                };
                let Some(baseline) = difference.first.strip_prefix(MARK).map(str::to_owned) else { continue };
                let method = difference.second.clone();
                if !is_ahead || method.starts_with(MARK) {
                    continue;
                }
                let found =
                    rivals.iter_mut().find(|rival| rival.method == method && rival.baseline == baseline);
                match found {
                    Some(rival) => rival.ahead.push((difference, told_type)),
                    None => rivals.push(Self { method, baseline, ahead: vec![(difference, told_type)] }),
                }
            }
        }
        rivals
    }

    /// Whether chance alone seldom makes such a difference.
    pub fn is_better(&self) -> bool {
        self.ahead.iter().any(|(difference, _)| difference.p < SHOWN)
    }

    /// A sentence.
    pub fn describe(&self) -> String {
        let Self { method, baseline, ahead } = self;
        let is_better = self.is_better();
        let figures = ahead.iter().filter(|(difference, _)| !is_better || difference.p < SHOWN);
        let figures: Vec<String> =
            figures.map(|(difference, told_type)| describe(difference, *told_type)).collect();
        if is_better {
            format!("{baseline} is better than {method}: {}.", figures.join("; "))
        } else {
            format!("{baseline} may be better than {method}, too few slots tell: {}.", figures.join("; "))
        }
    }
}

/// The answers as they are, or as if the type was known.
fn judged(run: &[Verdict], told_type: bool) -> Vec<Verdict> {
    let judged = |verdict: &Verdict| match verdict.within_type.filter(|_| told_type) {
        Some(within) => Verdict { cross_entropy: within.cross_entropy, rank: within.rank, ..*verdict },
        None => *verdict,
    };
    run.iter().map(judged).collect()
}

/// By how much the baseline is ahead.
fn describe(difference: &Difference, told_type: bool) -> String {
    let Difference { metric, difference, low, high, .. } = difference;
    let known = if told_type { " with the type known" } else { "" };
    if *metric == Metric::CrossEntropy {
        return format!(
            "cross-entropy{known} {:.3} lower (95 % interval {:.3} to {:.3})",
            -difference, -high, -low
        );
    }
    let name = if *metric == Metric::RecallAt1 { "recall@1" } else { "recall@5" };
    let [difference, low, high] = [difference, low, high].map(|number| 100.0 * number);
    format!("{name}{known} {difference:.2} points higher (95 % interval {low:.2} to {high:.2})")
}
