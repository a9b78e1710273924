//! What the figures say, in sentences that are computed from them.

use std::cmp::Ordering;

use super::written;
use crate::{
    domain::Method,
    service::evaluation::{Figures, MethodResult, Metric, PAPER},
};

/// A few short paragraphs about Table 1.
pub(super) fn about(figures: &Figures) -> Vec<String> {
    let results = &figures.comparison.methods;
    let by_entropy = ordered(results, Metric::CrossEntropy);
    let Some(best) = by_entropy.first() else { return Vec::new() };
    let next = by_entropy.get(1).and_then(|next| runner_up(best, next, figures));
    let first = [Some(lead(best, figures)), next, Some(first_places(results, figures))];
    let first: Vec<String> = first.into_iter().flatten().collect();
    [Some(first.join(" ")), order(results), told_the_type(best, figures)].into_iter().flatten().collect()
}

/// The best first.
fn ordered(results: &[MethodResult], metric: Metric) -> Vec<&MethodResult> {
    let mut ordered: Vec<&MethodResult> = results.iter().collect();
    let figure = |result: &MethodResult| result.scores.of(metric).mean;
    ordered.sort_by(|one, other| match () {
        () if metric.better(figure(one), figure(other)) => Ordering::Less,
        () if metric.better(figure(other), figure(one)) => Ordering::Greater,
        () => Ordering::Equal,
    });
    ordered
}

fn lead(best: &MethodResult, figures: &Figures) -> String {
    let entropy =
        |result: &MethodResult| written::figure(Metric::CrossEntropy, result.scores.cross_entropy.mean);
    let begin = format!("The lowest cross-entropy is that of {}, {}", best.name(), entropy(best));
    let none = figures.comparison.methods.iter().find(|result| result.method == Method::None);
    let difference = figures.comparison.difference(Metric::CrossEntropy, best.method, Method::None);
    match none.zip(difference) {
        Some((none, difference)) => format!(
            "{begin}; {}, which sees no customer, has {}: a difference of {} (of {} in 95 of 100 draws of the outfits).",
            none.name(),
            entropy(none),
            written::signed(Metric::CrossEntropy, difference.difference),
            written::interval(&difference),
        ),
        None => format!("{begin}."),
    }
}

fn runner_up(best: &MethodResult, next: &MethodResult, figures: &Figures) -> Option<String> {
    let difference = figures.comparison.difference(Metric::CrossEntropy, next.method, best.method)?;
    let apart = written::figure(Metric::CrossEntropy, difference.difference.abs());
    let begin = format!("The next, {}, is {apart} behind", next.name());
    Some(if difference.is_sure() {
        format!("{begin}, which is more than the luck of the outfits (p = {:.3}).", difference.p)
    } else {
        format!("{begin}: on these outfits the two cannot be told apart (p = {:.2}).", difference.p)
    })
}

fn first_places(results: &[MethodResult], figures: &Figures) -> String {
    let metric = Metric::RecallAt1;
    let ordered = ordered(results, metric);
    let (best, worst) = (ordered[0], ordered[ordered.len() - 1]);
    let share = |result: &MethodResult| written::with_unit(metric, result.scores.of(metric).mean);
    let baseline = figures.comparison.baselines.first().map_or_else(String::new, |baseline| {
        format!(", and {} in {}", baseline.name, written::with_unit(metric, baseline.answers.of(metric).mean))
    });
    format!(
        "The missing article is put first most often by {}, in {} of the slots, least often by {}, in {}{baseline}.",
        best.name(),
        share(best),
        worst.name(),
        share(worst),
    )
}

/// The order of the paper's methods, there and here: as they are in the paper, where articles are known by number.
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
    let list =
        |methods: &[Method]| methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ");
    match ours.len() {
        0 | 1 => None,
        _ if ours == theirs => {
            Some(format!("From the best down, the paper's methods stand in its own order: {}.", list(&ours)))
        }
        _ => Some(format!(
            "From the best down, the paper's methods stand here as {}; in the paper, on its data, as {}.",
            list(&ours),
            list(&theirs)
        )),
    }
}

/// What is told the type knows something that no method does.
fn told_the_type(best: &MethodResult, figures: &Figures) -> Option<String> {
    let told =
        figures.comparison.baselines.iter().find(|baseline| baseline.name.contains("told the type"))?;
    let entropy = told.answers.cross_entropy.mean;
    (entropy < best.scores.cross_entropy.mean).then(|| {
        format!(
            "“{}” has {}, lower than any method: it is told the missing article's type, which no method is, so it \
             cannot be held against them.",
            told.name,
            written::figure(Metric::CrossEntropy, entropy)
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
            "From the best down, the paper's methods stand in its own order: np, none."
        );
        assert_eq!(order(&results[1..]), None);
        assert_eq!(results[2].name(), "gsu + attributes");
    }
}
