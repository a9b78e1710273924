//! Measurements by method and by route, as rows of tables.

use std::cmp::Reverse;

use atelier_core::{
    domain::Method,
    util::histogram::{Distribution, Estimate},
};
use atelier_engine::inference::{EngineMetrics, QueueState};

use crate::{
    platform::{http::metrics::RequestLabels, page::figures},
    releases::LiveRelease,
};

/// The most frequent routes are shown.
const MOST_ROUTES: usize = 40;

/// A method of the live release.
pub(super) struct MethodRow {
    pub(super) method: Method,
    pub(super) is_default: bool,
    pub(super) parameters: String,
    pub(super) waiting: String,
    pub(super) limit: String,
    pub(super) copies: usize,
    pub(super) questions: String,
    pub(super) batch: String,
    /// Milliseconds: the 50th, 95th and 99th percentiles.
    pub(super) queued: [String; 3],
    pub(super) inferred: [String; 3],
    /// Questions without an answer, by reason.
    pub(super) refused: Option<String>,
}

/// The answers of one route with one status.
pub(super) struct RouteRow {
    pub(super) route: String,
    pub(super) status: String,
    pub(super) is_error: bool,
    pub(super) answers: String,
    pub(super) half: String,
    pub(super) most: String,
}

/// In the methods' own order.
pub(super) fn method_rows(metrics: &EngineMetrics, live: &LiveRelease) -> Vec<MethodRow> {
    let default = live.default_method();
    live.serving
        .queues()
        .map(|(method, queue)| method_row(metrics, live, method, queue, method == default))
        .collect()
}

fn method_row(
    metrics: &EngineMetrics,
    live: &LiveRelease,
    method: Method,
    queue: QueueState,
    is_default: bool,
) -> MethodRow {
    let batches = metrics.batches(method);
    let entries = &live.serving.release().manifest().methods;
    let entry = entries.iter().find(|entry| entry.method == method);
    let entry = entry.expect("what is served is in the manifest; this is a bug");
    MethodRow {
        method,
        is_default,
        parameters: figures::count(entry.parameters),
        waiting: figures::count(queue.waiting as u64),
        limit: figures::count(queue.limit as u64),
        copies: queue.workers,
        questions: figures::rounded(batches.sum),
        batch: batches.mean().map_or_else(|| "–".to_owned(), |mean| format!("{mean:.1}")),
        queued: quantiles(&metrics.queued(method)),
        // A release that was swapped out may have been slower.
        inferred: quantiles(&metrics.ran(method, live.name())),
        refused: refused(metrics, method),
    }
}

fn quantiles(took: &Distribution) -> [String; 3] {
    [0.5, 0.95, 0.99].map(|share| milliseconds(took.quantile(share)))
}

fn refused(metrics: &EngineMetrics, method: Method) -> Option<String> {
    let counts = metrics.rejections(method).into_iter().filter(|(_, count)| *count > 0);
    let reasons: Vec<String> =
        counts.map(|(reason, count)| format!("{} {reason}", figures::count(count))).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The most frequent first, and the number of routes not shown.
pub(super) fn route_rows(requests: &[(RequestLabels, Distribution)]) -> (Vec<RouteRow>, usize) {
    let mut requests: Vec<_> = requests.iter().collect();
    requests.sort_by_key(|(_, took)| Reverse(took.count()));
    let others = requests.len().saturating_sub(MOST_ROUTES);
    let rows = requests.into_iter().take(MOST_ROUTES).map(|(answered, took)| RouteRow {
        route: match answered.route.as_str() {
            "none" => format!("{} unknown path", answered.method),
            route => format!("{} {route}", answered.method),
        },
        status: answered.status.to_string(),
        is_error: answered.status >= 500,
        answers: figures::count(took.count()),
        half: milliseconds(took.quantile(0.5)),
        most: milliseconds(took.quantile(0.95)),
    });
    (rows.collect(), others)
}

/// Seconds as milliseconds, with two digits: more would exceed the precision of the histogram.
pub(super) fn milliseconds(seconds: Option<Estimate>) -> String {
    match seconds {
        None => "–".to_owned(),
        Some(Estimate::About(seconds)) => {
            let ms = seconds * 1000.0;
            match ms {
                ..1.0 => format!("{ms:.2}"),
                1.0..10.0 => format!("{ms:.1}"),
                10.0..100.0 => figures::rounded(ms),
                _ => figures::rounded((ms / 10.0).round() * 10.0),
            }
        }
        Some(Estimate::Above(seconds)) => format!("> {}", figures::rounded(seconds * 1000.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_two_digits() {
        for (seconds, written) in
            [(0.000_42, "0.42"), (0.001_26, "1.3"), (0.012_6, "13"), (0.256, "260"), (1.234, "1,230")]
        {
            assert_eq!(milliseconds(Some(Estimate::About(seconds))), written);
        }
        assert_eq!(milliseconds(Some(Estimate::Above(5.0))), "> 5,000");
        assert_eq!(milliseconds(None), "–");
    }
}
