//! A reliability diagram: how sure a method was against how often it was right.

use super::svg::{Anchor, Svg};

/// One method's bins.
#[derive(Debug)]
pub struct Reliability<'a> {
    pub title: &'a str,
    pub about: &'a str,
    /// The number of its colour and mark, from 0.
    pub kind: usize,
    /// Confidence and accuracy of each bin, from 0 to 1.
    pub bins: Vec<(f64, f64)>,
    /// Each bin's words when it is pointed at.
    pub says: Vec<String>,
    /// The end of both axes.
    pub most: f64,
}

const SIZE: f64 = 236.0;
const LEFT: f64 = 30.0;
const RIGHT: f64 = 228.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 192.0;

pub fn reliability(chart: &Reliability<'_>) -> String {
    let mut svg = Svg::new("reliability", SIZE, SIZE, chart.title, chart.about);
    let scale = super::Scale::Linear { from: 0.0, to: chart.most };
    let position = |(x, y): (f64, f64)| {
        (LEFT + scale.position(x) * (RIGHT - LEFT), BOTTOM - scale.position(y) * (BOTTOM - TOP))
    };
    for tick in scale.ticks() {
        let (x, y) = position((tick, tick));
        let written = format!("{:.0}", 100.0 * tick);
        svg.line("grid", (LEFT, y), (RIGHT, y));
        svg.line("grid", (x, TOP), (x, BOTTOM));
        svg.text("", (LEFT - 6.0, y + 4.0), Anchor::End, &written);
        svg.text("", (x, BOTTOM + 19.0), Anchor::Middle, &written);
    }
    svg.line("even", position((0.0, 0.0)), position((chart.most, chart.most)));
    svg.text("name", (f64::midpoint(LEFT, RIGHT), SIZE - 4.0), Anchor::Middle, "how sure, %");
    svg.text("name", (LEFT + 6.0, TOP + 14.0), Anchor::Start, "how often right, %");
    svg.start_series(chart.kind);
    svg.polyline(chart.bins.iter().map(|&bin| position(bin)));
    svg.marks(chart.kind, chart.bins.iter().map(|&bin| position(bin)), 3.4);
    svg.end_series();
    for (&bin, says) in chart.bins.iter().zip(&chart.says) {
        svg.spot((f64::midpoint(LEFT, RIGHT), position(bin).1), position(bin), Anchor::Middle, says);
    }
    svg.finish()
}
