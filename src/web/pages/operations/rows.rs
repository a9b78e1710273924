//! Measurements by method and by route, as rows of tables.

use crate::{
    domain::Method,
    models::engine::QueueState,
    service::live_release::LiveRelease,
    web::{
        http::metrics::{Estimate, Labels, Reading, Spread},
        pages::figures,
    },
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
pub(super) fn method_rows(reading: &Reading, live: &LiveRelease) -> Vec<MethodRow> {
    let measured = Measured {
        queued: by_method(reading, "atelier_queue_duration_seconds", |_| true),
        // A release that was swapped out may have been slower.
        inferred: by_method(reading, "atelier_inference_duration_seconds", |labels| {
            labels["release"] == live.name()
        }),
        batch: by_method(reading, "atelier_batch_size", |_| true),
    };
    let default = live.choose(None).method;
    live.serving
        .queues()
        .map(|(method, state)| measured.row(reading, live, method, state, method == default))
        .collect()
}

struct Measured {
    queued: Vec<(String, Spread)>,
    inferred: Vec<(String, Spread)>,
    batch: Vec<(String, Spread)>,
}

impl Measured {
    fn row(
        &self,
        reading: &Reading,
        live: &LiveRelease,
        method: Method,
        state: QueueState,
        is_default: bool,
    ) -> MethodRow {
        let batch = of(&self.batch, method);
        let entries = &live.serving.release().manifest().methods;
        let entry = entries.iter().find(|entry| entry.method == method);
        let entry = entry.expect("what is served is in the manifest; this is a bug");
        MethodRow {
            method,
            is_default,
            parameters: figures::count(entry.parameters),
            waiting: figures::count(state.waiting as u64),
            limit: figures::count(state.limit as u64),
            copies: state.workers,
            questions: figures::rounded(batch.sum),
            batch: batch.mean().map_or_else(|| "–".to_owned(), |mean| format!("{mean:.1}")),
            queued: quantiles(&of(&self.queued, method)),
            inferred: quantiles(&of(&self.inferred, method)),
            refused: refused(reading, method),
        }
    }
}

fn by_method(reading: &Reading, name: &str, wanted: impl Fn(&Labels) -> bool) -> Vec<(String, Spread)> {
    let spreads = reading.spreads(name).into_iter().filter(|(labels, _)| wanted(labels));
    spreads.map(|(labels, spread)| (labels["method"].clone(), spread)).collect()
}

fn of(spreads: &[(String, Spread)], method: Method) -> Spread {
    let mut all = Spread::default();
    for (_, spread) in spreads.iter().filter(|(name, _)| name == method.as_str()) {
        all.add(spread);
    }
    all
}

fn quantiles(spread: &Spread) -> [String; 3] {
    [0.5, 0.95, 0.99].map(|share| milliseconds(spread.quantile(share)))
}

fn refused(reading: &Reading, method: Method) -> Option<String> {
    let counts = reading.values("atelier_requests_rejected_total");
    let own = counts.filter(|(labels, count)| labels["method"] == method.as_str() && *count > 0.0);
    let reasons: Vec<String> =
        own.map(|(labels, count)| format!("{} {}", figures::rounded(count), labels["reason"])).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The most asked first, and how many are left out.
pub(super) fn route_rows(reading: &Reading) -> (Vec<RouteRow>, usize) {
    let mut spreads: Vec<(Labels, Spread)> =
        reading.spreads("atelier_http_request_duration_seconds").into_iter().collect();
    spreads.sort_by(|(_, one), (_, other)| other.count.total_cmp(&one.count));
    let others = spreads.len().saturating_sub(MOST_ROUTES);
    let rows = spreads.iter().take(MOST_ROUTES).map(|(labels, spread)| RouteRow {
        route: match labels["route"].as_str() {
            "none" => format!("{} unknown path", labels["method"]),
            route => format!("{} {route}", labels["method"]),
        },
        status: labels["status"].clone(),
        is_error: labels["status"].starts_with('5'),
        answers: figures::rounded(spread.count),
        half: milliseconds(spread.quantile(0.5)),
        most: milliseconds(spread.quantile(0.95)),
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
