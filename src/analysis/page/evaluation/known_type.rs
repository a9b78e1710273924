//! The question that Studio and most shops ask: which article of a known type. Shows the default method, and those that do
//! better.

use atelier_core::domain::Method;
use atelier_engine::evaluation::{Figure, Figures, Interval, Metric, TypeScores};

use crate::platform::page::format;

#[derive(Debug)]
pub(super) struct KnownType {
    pub(super) words: Vec<String>,
    /// Methods, then baselines; the best first.
    pub(super) groups: [Vec<Scored>; 2],
    pub(super) default: Method,
}

/// The name of a method or a baseline, and its figures.
type Scored = (String, Option<Method>, TypeScores);

/// The columns, of which each figure has its standard error.
pub(super) const COLUMNS: [Metric; 4] =
    [Metric::RecallAt1, Metric::RecallAt5, Metric::Mrr, Metric::CrossEntropy];

pub(super) fn figures_of(scores: &TypeScores) -> [(Metric, Figure); 4] {
    let figures = [scores.recall_at_1, scores.recall_at_5, scores.mrr, scores.cross_entropy];
    std::array::from_fn(|column| (COLUMNS[column], figures[column]))
}

/// Methods and baselines with their figures, the errors over outfits; the best first.
pub(super) fn sorted(figures: &Figures) -> [Vec<Scored>; 2] {
    let methods = figures.evaluations.iter().filter_map(|evaluation| {
        let method = evaluation.about.method;
        let result = figures.comparison.methods.iter().find(|result| result.method == method)?;
        Some((result.name(), Some(method), evaluation.told_type?))
    });
    let baselines = figures.comparison.baselines.iter();
    let baselines = baselines.filter_map(|baseline| Some((baseline.name.clone(), None, baseline.told_type?)));
    let mut groups: [Vec<_>; 2] = [methods.collect(), baselines.collect()];
    for group in &mut groups {
        group.sort_by(|one, other| other.2.recall_at_1.mean.total_cmp(&one.2.recall_at_1.mean));
    }
    groups
}

impl KnownType {
    /// None if the release has no such figures of its default method.
    pub(super) fn new(figures: &Figures, default: Method) -> Option<Self> {
        let groups = sorted(figures);
        let own = groups[0].iter().find(|(_, method, _)| *method == Some(default))?.2;
        let words = words(&groups, default, &own, figures);
        Some(Self { words, groups, default })
    }
}

/// The difference of recall at 1, as if the two were measured on different outfits: the file has no interval of the same
/// ones, which would be narrower.
fn ahead(one: &TypeScores, other: &TypeScores) -> Interval {
    let error = |figure: Figure| figure.standard_error.unwrap_or(0.0).powi(2);
    let apart = error(one.recall_at_1) + error(other.recall_at_1);
    Interval::new(one.recall_at_1.mean - other.recall_at_1.mean, apart.sqrt())
}

fn words(groups: &[Vec<Scored>; 2], default: Method, own: &TypeScores, figures: &Figures) -> Vec<String> {
    let share = |figure: Figure| format::with_unit(Metric::RecallAt1, figure.mean);
    let first = format!(
        "{default} is the default method. It puts the missing article first in {} of the slots, and among the first five in {}.",
        share(own.recall_at_1),
        share(own.recall_at_5)
    );
    let others = || groups.iter().flatten().filter(|(_, method, _)| *method != Some(default));
    let named = |wanted: &dyn Fn(&Interval) -> bool| {
        let found = others().filter(|(.., scores)| wanted(&ahead(scores, own)));
        found.map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let better = named(&|ahead| ahead.low > 0.0);
    let even = named(&|ahead| !ahead.is_significant());
    let how = "By recall@1, as if each method’s results were independent.";
    let second = match (better.as_str(), even.as_str()) {
        ("", "") => "No other method or baseline comes close.".to_owned(),
        ("", even) => format!("Nothing beats it; not clearly apart: {even}. {how}"),
        (better, "") => format!("Beaten by: {better}. {how}"),
        (better, even) => format!("Beaten by: {better}. Not clearly apart: {even}. {how}"),
    };
    let beats = |method: &Method| {
        let difference = figures.comparison.difference(Metric::RecallAt1, *method, default);
        difference.is_some_and(|found| found.is_significant() && found.difference > 0.0)
    };
    let untyped: Vec<String> = figures.methods().filter(beats).map(String::from).collect();
    let third = match &untyped[..] {
        [] => {
            "When the type is not known, no other method beats it (recall@1, p of 0.05 or more).".to_owned()
        }
        methods => {
            format!("When the type is not known, these methods beat it (recall@1): {}.", methods.join(", "))
        }
    };
    vec![format!("{first} {second}"), third]
}
