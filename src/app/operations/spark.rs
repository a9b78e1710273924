//! The last 15 minutes as small curves.

use std::fmt::Write;

use atelier_core::util::histogram::Estimate;

use super::rows::milliseconds;
use crate::platform::{http::metrics::Moment, page::figures};

/// The drawing's own size; it is stretched to its place.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 56.0;
/// One every five seconds for 15 minutes.
const MOMENTS: usize = 180;

/// One curve with its figures.
pub(super) struct Spark {
    /// The id of the drawing's title.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) now: String,
    pub(super) most: String,
    pub(super) path: String,
}

/// Empty until there is a first moment.
pub(super) fn sparks(moments: &[Moment]) -> Vec<Spark> {
    let Some(last) = moments.last() else { return Vec::new() };
    let seconds = |estimate: Estimate| match estimate {
        Estimate::About(seconds) | Estimate::Above(seconds) => seconds,
    };
    let rates: Vec<Option<f64>> = moments.iter().map(|moment| Some(moment.rate)).collect();
    let slow: Vec<Option<f64>> = moments.iter().map(|moment| moment.slow.map(seconds)).collect();
    #[expect(clippy::cast_precision_loss, reason = "a queue is short")]
    let waiting: Vec<Option<f64>> = moments.iter().map(|moment| Some(moment.waiting as f64)).collect();
    let slowest = moments.iter().filter_map(|moment| moment.slow);
    let slowest = slowest.max_by(|one, other| seconds(*one).total_cmp(&seconds(*other)));
    vec![
        Spark {
            id: "spark-rate",
            title: "Answers a second",
            now: format!("{:.1}", last.rate),
            most: format!("{:.1}", most(&rates)),
            path: path(&rates),
        },
        Spark {
            id: "spark-slow",
            title: "p95 latency (ms)",
            now: milliseconds(last.slow),
            most: milliseconds(slowest),
            path: path(&slow),
        },
        Spark {
            id: "spark-waiting",
            title: "Waiting for a model",
            now: figures::count(last.waiting as u64),
            most: figures::rounded(most(&waiting)),
            path: path(&waiting),
        },
    ]
}

fn most(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

/// The newest moment is at the right edge; a moment without a value leaves a gap.
fn path(values: &[Option<f64>]) -> String {
    let top = most(values);
    let mut path = String::new();
    let mut drawing = false;
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else {
            drawing = false;
            continue;
        };
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let x = WIDTH - (values.len() - 1 - index) as f64 * WIDTH / (MOMENTS - 1) as f64;
        let y = if top > 0.0 { HEIGHT - 2.0 - value / top * (HEIGHT - 4.0) } else { HEIGHT - 2.0 };
        // A single moment is a dot.
        let step = if drawing { "L" } else { "M" };
        let dot = if drawing { "" } else { "h.1" };
        write!(path, "{step}{x:.1} {y:.1}{dot}").expect("writing to a String never fails");
        drawing = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_at_the_right_and_has_gaps() {
        assert_eq!(path(&[Some(0.0), Some(2.0)]), "M358.0 54.0h.1L360.0 2.0");
        assert_eq!(path(&[Some(1.0), None, Some(1.0)]), "M356.0 2.0h.1M360.0 2.0h.1");
        assert_eq!(path(&[Some(0.0)]), "M360.0 54.0h.1", "zero is at the bottom");
    }
}
