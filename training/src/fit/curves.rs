//! A run's curves as one small SVG: cross-entropy and recall@5 by epoch.
//!
//! Drawn by hand, because two line charts need no library. Colours follow the reader's light or dark.

use std::fmt::Write;

use super::{EpochRecord, RunConfig};

/// A panel's inner size, and what is around it.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 44.0;
const GAP: f64 = 84.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#333}.title{font-weight:600}\
.grid{stroke:#ddd}.line{fill:none;stroke-width:2}.a{stroke:#1f6feb}.b{stroke:#bf5700}\
.ta{fill:#1f6feb}.tb{fill:#bf5700}.best{fill:none;stroke:#888;stroke-dasharray:3 3}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}.a{stroke:#79b8ff}.b{stroke:#ffa657}\
.ta{fill:#79b8ff}.tb{fill:#ffa657}}";

struct Curve {
    name: &'static str,
    class: &'static str,
    values: Vec<f64>,
}

/// The whole picture.
pub(super) fn draw(config: &RunConfig, epochs: &[EpochRecord]) -> String {
    let column = |value: fn(&EpochRecord) -> f64| epochs.iter().map(value).collect();
    let loss = [
        Curve { name: "training", class: "a", values: column(|epoch| epoch.training.cross_entropy) },
        Curve { name: "development", class: "b", values: column(|epoch| epoch.development.cross_entropy) },
    ];
    let recall = [Curve {
        name: "development",
        class: "b",
        values: column(|epoch| 100.0 * epoch.development.recall_at_5),
    }];
    let best = epochs.iter().rposition(|epoch| epoch.best);
    let (width, height) = (2.0 * WIDTH + LEFT + GAP + 24.0, HEIGHT + TOP + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Method {method}, seed {seed}: cross-entropy and recall@5 by epoch\"><style>{STYLE}</style>",
        method = config.model.method,
        seed = config.fit.seed,
    );
    panel(&mut svg, LEFT, "cross-entropy (nats) by epoch", &loss, best);
    panel(&mut svg, LEFT + WIDTH + GAP, "recall@5 (%) by epoch", &recall, best);
    svg + "</svg>\n"
}

fn panel(svg: &mut String, left: f64, title: &str, curves: &[Curve], best: Option<usize>) {
    let all =
        || curves.iter().flat_map(|curve| curve.values.iter().copied()).filter(|value| value.is_finite());
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let step = tick((high - low).max(1e-3) / 4.0);
    let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
    let count = curves.first().map_or(0, |curve| curve.values.len());
    let across = |epoch: usize| left + WIDTH * real(epoch) / real(count.saturating_sub(1).max(1));
    let down = |value: f64| TOP + HEIGHT * (high - value) / (high - low).max(step);
    put(svg, format_args!("<text class=\"title\" x=\"{left}\" y=\"18\">{title}</text>"));
    let mut mark = low;
    while mark <= high + step / 2.0 {
        let (y, right) = (down(mark), left + WIDTH);
        let digits = usize::from(step < 1.0) + usize::from(step < 0.1) + usize::from(step < 0.01);
        put(svg, format_args!("<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>"));
        let x = left - 8.0;
        put(
            svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" dy=\".35em\" text-anchor=\"end\">{mark:.digits$}</text>"
            ),
        );
        mark += step;
    }
    let every = (count / 8).max(1);
    for epoch in (0..count).step_by(every) {
        let (x, y) = (across(epoch), TOP + HEIGHT + 18.0);
        put(svg, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", epoch + 1));
    }
    if let Some(best) = best {
        let (x, bottom) = (across(best), TOP + HEIGHT);
        put(svg, format_args!("<path class=\"best\" d=\"M{x:.1} {TOP:.1}V{bottom:.1}\"/>"));
    }
    for (place, Curve { name, class, values }) in curves.iter().enumerate() {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(epoch, value)| format!("{:.1},{:.1}", across(epoch), down(*value)))
            .collect();
        put(svg, format_args!("<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" ")));
        if let [one] = points.as_slice() {
            let (x, y) = one.split_once(',').expect("a point has two numbers; this is a bug");
            put(svg, format_args!("<circle class=\"line {class}\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>"));
        }
        let (x, y) = (left + 90.0 * real(place), TOP - 8.0);
        put(svg, format_args!("<text class=\"t{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>"));
    }
}

/// 1, 2 or 5 times a power of ten, at least so much.
fn tick(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|tick| *tick >= least * 0.999)
        .unwrap_or(least)
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a String takes everything; this is a bug");
}

fn real(count: usize) -> f64 {
    crate::number::real(count)
}
