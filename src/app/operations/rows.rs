//! Measurements by method and by route, for tables.

use std::cmp::Reverse;

use atelier_core::{
    domain::Method,
    util::histogram::{Distribution, Estimate},
};
use atelier_engine::inference::EngineMetrics;

use crate::{
    platform::{http::metrics::RequestLabels, page::figures},
    releases::LiveRelease,
};

/// The most frequent routes are shown.
const MOST_ROUTES: usize = 40;

pub(super) fn parameters(live: &LiveRelease, method: Method) -> String {
    let entry = live.serving.release().manifest().methods.iter().find(|entry| entry.method == method);
    figures::count(entry.expect("what is served is in the manifest").parameters)
}

/// Questions without an answer, by reason.
pub(super) fn refused(metrics: &EngineMetrics, method: Method) -> String {
    let counts = metrics.rejections(method).into_iter().filter(|(_, count)| *count > 0);
    let reasons = counts.map(|(reason, count)| format!("{} {reason}", figures::count(count)));
    reasons.collect::<Vec<_>>().join(", ")
}

/// The most frequent routes first, and the number of routes not shown.
pub(super) fn most_frequent(
    mut requests: Vec<(RequestLabels, Distribution)>,
) -> (Vec<(RequestLabels, Distribution)>, usize) {
    requests.sort_by_key(|(_, took)| Reverse(took.count()));
    let others = requests.len().saturating_sub(MOST_ROUTES);
    requests.truncate(MOST_ROUTES);
    (requests, others)
}

/// Milliseconds: the 50th, 95th and 99th percentiles.
pub(super) fn quantiles(took: &Distribution) -> [String; 3] {
    [0.5, 0.95, 0.99].map(|share| milliseconds(took.quantile(share)))
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
