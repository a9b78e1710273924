//! The notation of figures.

pub(crate) use super::figures::count;

use atelier_engine::evaluation::{Figure, Metric};

/// In the unit of the table's heading: shares are in percent.
pub(crate) fn figure(metric: Metric, number: f64) -> String {
    if metric.is_share() { format!("{:.2}", 100.0 * number) } else { format!("{number:.3}") }
}

/// With its unit.
pub(crate) fn with_unit(metric: Metric, number: f64) -> String {
    let unit = if metric.is_share() { " %" } else { "" };
    format!("{}{unit}", figure(metric, number))
}

/// `± 0.39`, or nothing without a standard error.
pub(crate) fn error(metric: Metric, figure_: Figure) -> String {
    figure_.standard_error.map_or_else(String::new, |error| format!("± {}", figure(metric, error)))
}

/// With its sign. A real minus is as wide as a plus.
pub(crate) fn signed(metric: Metric, number: f64) -> String {
    sign(number, &figure(metric, number.abs()))
}

/// A number with its sign, unless it rounds to zero.
pub(crate) fn sign(number: f64, written: &str) -> String {
    let is_zero = written.chars().all(|c| c == '0' || c == '.');
    match () {
        () if is_zero => written.to_owned(),
        () if number < 0.0 => format!("−{written}"),
        () => format!("+{written}"),
    }
}

/// `+0.12 to +0.34`
pub(crate) fn interval(metric: Metric, low: f64, high: f64) -> String {
    format!("{} to {}", signed(metric, low), signed(metric, high))
}

/// `p = 0.016`, or `p < 0.002` where a bootstrap of this many samples cannot tell smaller ones; never below 0.001.
pub(crate) fn p(p: f64, samples: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a number of samples")]
    let least = 2.0 / samples.max(1) as f64;
    match () {
        () if p > least && p >= 0.001 => format!("p = {p:.3}"),
        () if least <= 0.001 => "p < 0.001".to_owned(),
        () => format!("p < {least:.3}"),
    }
}

/// A share in percent, without `.0`.
pub(crate) fn percent(share: f64) -> String {
    let tenths = format!("{:.1}", 100.0 * share);
    format!("{} %", tenths.strip_suffix(".0").unwrap_or(&tenths))
}

/// A difference of shares on an axis, in percentage points.
pub(crate) fn points(share: f64) -> String {
    sign(share, &plain(100.0 * share.abs()))
}

/// A number on an axis.
pub(crate) fn plain(number: f64) -> String {
    let written = format!("{number:.3}");
    let short = written.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() { "0".to_owned() } else { short.to_owned() }
}

/// The notation of a metric's axis.
pub(crate) fn on_axis(metric: Metric) -> fn(f64) -> String {
    if metric.is_share() { percent } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!(figure(Metric::RecallAt1, 0.1648), "16.48");
        assert_eq!(with_unit(Metric::RecallAt1, 0.1648), "16.48 %");
        assert_eq!(with_unit(Metric::CrossEntropy, 3.757), "3.757");
        assert_eq!(signed(Metric::CrossEntropy, -0.3441), "−0.344");
        assert_eq!(signed(Metric::RecallAt5, 0.0123), "+1.23");
        assert_eq!(signed(Metric::Mrr, -0.0001), "0.000", "zero has no sign");
        assert_eq!(error(Metric::RecallAt1, Figure { mean: 0.2, standard_error: Some(0.004) }), "± 0.40");
        assert_eq!(error(Metric::Mrr, Figure { mean: 0.2, standard_error: None }), "");
        assert_eq!(
            [(0.016, 10_000), (0.0002, 10_000), (0.002, 1000), (0.01, 100)].map(|(found, n)| p(found, n)),
            ["p = 0.016", "p < 0.001", "p < 0.002", "p < 0.020"]
        );
        assert_eq!((percent(0.2), percent(0.125)), ("20 %".into(), "12.5 %".into()));
        assert_eq!((plain(3.5), plain(0.0), plain(10.0)), ("3.5".into(), "0".into(), "10".into()));
    }
}
