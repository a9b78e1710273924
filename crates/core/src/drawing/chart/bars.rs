//! Shares of a whole as bars from the even share.

use super::svg::{Anchor, Svg};

/// Bars that start at the even share and go left or right.
#[derive(Debug)]
pub struct Bars<'a> {
    pub title: &'a str,
    pub about: &'a str,
    pub bars: Vec<Bar>,
    /// The share of each bar if all were even.
    pub even: f64,
    /// The length of the axis to each side of it.
    pub reach: f64,
}

/// One share.
#[derive(Debug)]
pub struct Bar {
    pub name: String,
    pub share: f64,
    /// The label of the share.
    pub written: String,
}

const WIDTH: f64 = 420.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 340.0;
const ROW: f64 = 26.0;
const THICK: f64 = 12.0;

pub fn bars(chart: &Bars<'_>) -> String {
    let rows = chart.bars.iter().fold(0.0, |height, _| height + ROW);
    let scale = super::Scale::Linear { from: chart.even - chart.reach, to: chart.even + chart.reach };
    let position = |share: f64| LEFT + scale.position(share) * (RIGHT - LEFT);
    let mut svg = Svg::new("bars", WIDTH, rows + 26.0, chart.title, chart.about);
    let even = position(chart.even);
    let mut top = 0.0;
    for Bar { name, share, written } in &chart.bars {
        let (x, middle) = (position(*share), top + ROW / 2.0);
        svg.text("label", (0.0, middle + 4.0), Anchor::Start, name);
        svg.rect("share", (x.min(even), middle - THICK / 2.0), ((x - even).abs().max(1.0), THICK));
        svg.text("label", (WIDTH, middle + 4.0), Anchor::End, written);
        top += ROW;
    }
    svg.line("axis", (even, 0.0), (even, rows + 4.0));
    let reach = format!("{:.1}", 100.0 * chart.reach);
    svg.text("", (even, rows + 20.0), Anchor::Middle, "even");
    svg.text("", (LEFT, rows + 20.0), Anchor::Middle, &format!("−{reach}"));
    svg.text("", (RIGHT, rows + 20.0), Anchor::Middle, &format!("+{reach}"));
    svg.finish()
}
