//! The figures in sentences.

use std::cmp::Ordering;

use atelier_core::domain::{Method, list_methods};
use atelier_engine::evaluation::{Figures, MethodResult, Metric, PAPER};

use crate::platform::page::format;

/// A few short paragraphs about Table 1.
pub(super) fn paragraphs(figures: &Figures) -> Vec<String> {
    let results = &figures.comparison.methods;
    let by_entropy = ordered(results, Metric::CrossEntropy);
    let Some(best) = by_entropy.first() else { return Vec::new() };
    let next = by_entropy.get(1).and_then(|next| runner_up(best, next, figures));
    let first = [Some(lead(best, figures)), next, Some(first_places(results, figures))];
    let first: Vec<String> = first.into_iter().flatten().collect();
    [Some(first.join(" ")), order(results), note_on_type_baseline(best, figures)]
        .into_iter()
        .flatten()
        .collect()
}

/// Sorted, the best first.
fn ordered(results: &[MethodResult], metric: Metric) -> Vec<&MethodResult> {
    let mut ordered: Vec<&MethodResult> = results.iter().collect();
    let figure = |result: &MethodResult| result.scores.get(metric).mean;
    ordered.sort_by(|one, other| match () {
        () if metric.better(figure(one), figure(other)) => Ordering::Less,
        () if metric.better(figure(other), figure(one)) => Ordering::Greater,
        () => Ordering::Equal,
    });
    ordered
}

fn lead(best: &MethodResult, figures: &Figures) -> String {
    let entropy =
        |result: &MethodResult| format::figure(Metric::CrossEntropy, result.scores.cross_entropy.mean);
    let begin = format!("{} has the lowest cross-entropy, {}", best.name(), entropy(best));
    let none = figures.comparison.methods.iter().find(|result| result.method == Method::None);
    let difference = figures.comparison.difference(Metric::CrossEntropy, best.method, Method::None);
    match none.zip(difference) {
        Some((none, difference)) => format!(
            "{begin}; {}, which ignores the customer, has {}: a difference of {} (95 % interval over outfits: {}).",
            none.name(),
            entropy(none),
            format::signed(Metric::CrossEntropy, difference.difference),
            format::interval(Metric::CrossEntropy, difference.low, difference.high),
        ),
        None => format!("{begin}."),
    }
}

fn runner_up(best: &MethodResult, next: &MethodResult, figures: &Figures) -> Option<String> {
    let difference = figures.comparison.difference(Metric::CrossEntropy, next.method, best.method)?;
    let apart = format::figure(Metric::CrossEntropy, difference.difference.abs());
    let not = if difference.is_significant() { "" } else { "not " };
    let p = format::p(difference.p, figures.comparison.draws);
    Some(format!("The next, {}, is {apart} behind, {not}a significant difference ({p}).", next.name()))
}

fn first_places(results: &[MethodResult], figures: &Figures) -> String {
    let metric = Metric::RecallAt1;
    let ordered = ordered(results, metric);
    let (best, worst) = (ordered[0], ordered[ordered.len() - 1]);
    let share = |result: &MethodResult| format::with_unit(metric, result.scores.get(metric).mean);
    let baseline = figures.comparison.baselines.first().map_or_else(String::new, |baseline| {
        format!(
            "; {} reaches {}",
            baseline.name,
            format::with_unit(metric, baseline.answers.get(metric).mean)
        )
    });
    format!(
        "The missing article is first most often with {}, in {} of the slots, and least often with {}, in {}{baseline}.",
        best.name(),
        share(best),
        worst.name(),
        share(worst),
    )
}

/// The order of the paper's methods, in the paper and here. As in the paper, methods with attributes do not count.
fn order(results: &[MethodResult]) -> Option<String> {
    let ours: Vec<Method> = ordered(results, Metric::CrossEntropy)
        .into_iter()
        .filter(|result| !result.attributes)
        .map(|result| result.method)
        .filter(|method| PAPER.iter().any(|row| row.method == *method))
        .collect();
    let mut rows: Vec<_> = PAPER.iter().filter(|row| ours.contains(&row.method)).collect();
    rows.sort_by(|one, other| one.cross_entropy.0.total_cmp(&other.cross_entropy.0));
    let theirs: Vec<Method> = rows.into_iter().map(|row| row.method).collect();
    match ours.len() {
        0 | 1 => None,
        _ if ours == theirs => Some(format!(
            "From best to worst, the paper's methods rank as in the paper: {}.",
            list_methods(&ours)
        )),
        _ => Some(format!(
            "From best to worst, the paper's methods rank as {} here; as {} in the paper, on its data.",
            list_methods(&ours),
            list_methods(&theirs)
        )),
    }
}

/// A note on the baseline that knows the missing article's type, which no method does.
fn note_on_type_baseline(best: &MethodResult, figures: &Figures) -> Option<String> {
    let baseline =
        figures.comparison.baselines.iter().find(|baseline| baseline.name.contains("told the type"))?;
    let entropy = baseline.answers.cross_entropy.mean;
    (entropy < best.scores.cross_entropy.mean).then(|| {
        format!(
            "“{}” has {}, lower than any method: it knows the missing article's type, which no method does, so the \
             figures are not comparable.",
            baseline.name,
            format::figure(Metric::CrossEntropy, entropy)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_papers_order_is_of_its_own_methods() {
        let result = |method: &str, attributes: bool, entropy: f64| -> MethodResult {
            let figure = json!({"mean": entropy, "standard_error": null});
            serde_json::from_value(json!({
                "method": method, "attributes": attributes, "parameters": 1, "runs": 1, "cross_entropy": figure,
                "recall_at_1": figure, "recall_at_5": figure, "recall_at_250": figure, "mrr": figure,
                "coverage_at_5": figure, "calibration_error": figure,
            }))
            .unwrap()
        };
        let results = [result("none", false, 4.0), result("np", false, 3.0), result("gsu", true, 2.0)];
        assert_eq!(
            order(&results).unwrap(),
            "From best to worst, the paper's methods rank as in the paper: np, none."
        );
        assert_eq!(order(&results[1..]), None);
        assert_eq!(results[2].name(), "gsu + attributes");
    }
}
