//! Compares several methods, each with one or more seeds.

use std::collections::BTreeSet;

use atelier_core::domain::Method;
use serde::{Deserialize, Serialize};

use super::{Answers, Cases, Difference, Evaluation, NewArticleFigures, Shares, bootstrap};
use crate::{
    baselines::{Baseline, NewBaseline},
    data::Data,
    metrics::{Answered, Summary},
    number::real,
};

/// The figures of methods on the same questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub data: String,
    pub fingerprint: String,
    pub outfits: usize,
    pub slots: usize,
    pub methods: Vec<MethodResult>,
    pub baselines: Vec<Baseline>,
    /// Next to the methods' figures of new articles, if the data has such articles.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub new_article_baselines: Vec<NewBaseline>,
    pub differences: Vec<Difference>,
    /// The number of bootstrap samples behind the differences.
    pub draws: usize,
}

/// One method's figures over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodResult {
    pub method: Method,
    /// Whether its runs learned shared weights for article attributes.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub attributes: bool,
    pub parameters: u64,
    pub runs: usize,
    pub cross_entropy: Spread,
    pub recall_at_1: Spread,
    pub recall_at_5: Spread,
    pub recall_at_250: Spread,
    pub mrr: Spread,
    pub ndcg_at_10: Spread,
    pub coverage_at_5: Spread,
    pub calibration_error: Spread,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steps: Option<Spread>,
    /// With the missing article's type known.
    pub told_type: ToldType,
    /// Of articles that no training outfit has, if there are any and the method can suggest them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_articles: Option<NewArticleFigures<Scores, Spread>>,
}

/// Figures of some slots over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    pub slots: u64,
    pub cross_entropy: Spread,
    pub recall_at_1: Spread,
    pub recall_at_5: Spread,
    pub recall_at_250: Spread,
    pub mean_rank: Spread,
}

/// One method's figures with the missing article's type known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldType {
    /// Within the type.
    pub cross_entropy: Spread,
    pub recall_at_1: Spread,
    pub recall_at_5: Spread,
}

/// A figure over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub mean: f64,
    /// Over seeds; `None` for a single seed.
    pub standard_error: Option<f64>,
}

/// Compares runs by their evaluations and answers, in any order.
pub fn compare(
    data: &Data,
    cases: &Cases,
    runs: &[(Evaluation, Answers)],
    baselines: Vec<Baseline>,
) -> Comparison {
    let evaluations: Vec<&Evaluation> = runs.iter().map(|(evaluation, _)| evaluation).collect();
    let methods = MethodResult::from_evaluations(&evaluations);
    let answers: Vec<bootstrap::Runs<'_>> = methods
        .iter()
        .map(|result| {
            let kind = (result.method, result.attributes);
            let its = runs.iter().filter(|(evaluation, _)| evaluation.kind() == kind);
            (result.name(), its.map(|(_, answers)| answers.verdicts.as_slice()).collect())
        })
        .collect();
    Comparison {
        data: data.name().to_owned(),
        fingerprint: data.fingerprint().to_owned(),
        outfits: data.validation().len(),
        slots: cases.as_slice().len(),
        differences: bootstrap::differences(cases, &answers),
        draws: bootstrap::DRAWS,
        methods,
        baselines,
        new_article_baselines: Vec::new(),
    }
}

impl Comparison {
    /// Names the differences by method only, without attributes.
    pub fn name_methods_alone(&mut self) {
        for Difference { first, second, .. } in &mut self.differences {
            for name in [first, second] {
                name.truncate(name.strip_suffix(ATTRIBUTES).map_or(name.len(), str::len));
            }
        }
    }
}

impl MethodResult {
    /// One result per method, in the methods' order; those with attributes come last.
    pub fn from_evaluations(evaluations: &[&Evaluation]) -> Vec<Self> {
        let kinds = evaluations.iter().map(|evaluation| (evaluation.attributes, evaluation.about.method));
        let kinds: BTreeSet<(bool, Method)> = kinds.collect();
        kinds
            .into_iter()
            .filter_map(|(attributes, method)| Self::for_method(method, attributes, evaluations))
            .collect()
    }

    /// The name in tables.
    pub fn name(&self) -> String {
        name(self.method, self.attributes)
    }

    fn for_method(method: Method, attributes: bool, evaluations: &[&Evaluation]) -> Option<Self> {
        let runs: Vec<&Evaluation> =
            evaluations.iter().copied().filter(|run| run.kind() == (method, attributes)).collect();
        let parameters = runs.first()?.about.parameters;
        let spread = |figure: &dyn Fn(&Evaluation) -> f64| {
            Spread::over(&runs.iter().map(|run| figure(run)).collect::<Vec<_>>())
        };
        let steps: Option<Vec<f64>> = runs.iter().map(|run| run.steps).collect();
        Some(Self {
            method,
            attributes,
            parameters,
            runs: runs.len(),
            cross_entropy: spread(&|run| run.summary.cross_entropy.mean),
            recall_at_1: spread(&|run| run.summary.recall_at_1.mean),
            recall_at_5: spread(&|run| run.summary.recall_at_5.mean),
            recall_at_250: spread(&|run| run.summary.recall_at_250.mean),
            mrr: spread(&|run| run.summary.mrr.mean),
            ndcg_at_10: spread(&|run| run.summary.ndcg_at_10.mean),
            coverage_at_5: spread(&|run| run.coverage_at_5),
            calibration_error: spread(&|run| run.calibration.expected_error),
            steps: steps.map(|steps| Spread::over(&steps)),
            told_type: ToldType {
                cross_entropy: spread(&|run| run.told_type.cross_entropy.mean),
                recall_at_1: spread(&|run| run.told_type.recall_at_1.mean),
                recall_at_5: spread(&|run| run.told_type.recall_at_5.mean),
            },
            new_articles: NewArticleFigures::over(&runs),
        })
    }
}

impl NewArticleFigures<Scores, Spread> {
    /// The figures of several runs, if all have some.
    fn over(runs: &[&Evaluation]) -> Option<Self> {
        let runs: Option<Vec<_>> = runs.iter().map(|run| run.new_articles.as_ref()).collect();
        let runs = runs?;
        let scores = |summary: &dyn Fn(&NewArticleFigures<Summary, f64>) -> &Summary| {
            let summaries: Vec<&Summary> = runs.iter().map(|run| summary(run)).collect();
            Scores::over(&summaries)
        };
        let share = |share: fn(&Shares<f64>) -> f64| {
            Spread::over(&runs.iter().map(|run| share(&run.shares)).collect::<Vec<_>>())
        };
        Some(Self {
            new: Answered { any: scores(&|run| &run.new.any), told_type: scores(&|run| &run.new.told_type) },
            known: Answered {
                any: scores(&|run| &run.known.any),
                told_type: scores(&|run| &run.known.told_type),
            },
            shares: Shares {
                of_articles: share(|shares| shares.of_articles),
                of_answers: share(|shares| shares.of_answers),
                of_probability: share(|shares| shares.of_probability),
                of_probability_within_type: share(|shares| shares.of_probability_within_type),
                of_first_five: share(|shares| shares.of_first_five),
            },
        })
    }
}

impl Scores {
    /// The figures of one run.
    pub fn from_summary(summary: &Summary) -> Self {
        Self::over(&[summary])
    }

    fn over(summaries: &[&Summary]) -> Self {
        let spread = |figure: &dyn Fn(&Summary) -> f64| {
            Spread::over(&summaries.iter().map(|summary| figure(summary)).collect::<Vec<_>>())
        };
        Self {
            slots: summaries[0].slots,
            cross_entropy: spread(&|summary| summary.cross_entropy.mean),
            recall_at_1: spread(&|summary| summary.recall_at_1.mean),
            recall_at_5: spread(&|summary| summary.recall_at_5.mean),
            recall_at_250: spread(&|summary| summary.recall_at_250.mean),
            mean_rank: spread(&|summary| summary.mean_rank.mean),
        }
    }
}

/// The name of a method's runs, with or without attributes. A match always has them.
pub fn name(method: Method, attributes: bool) -> String {
    format!("{method}{}", if attributes && method != Method::Match { ATTRIBUTES } else { "" })
}

const ATTRIBUTES: &str = " + attributes";

impl Spread {
    fn over(figures: &[f64]) -> Self {
        let count = real(figures.len());
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let standard_error = (figures.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt());
        Self { mean, standard_error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_error_over_seeds() {
        let three = Spread::over(&[1.0, 2.0, 3.0]);
        assert!((three.mean - 2.0).abs() < 1e-12);
        assert!((three.standard_error.unwrap() - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::over(&[4.0]).standard_error, None);
    }
}
