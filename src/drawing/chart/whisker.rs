//! Figures with how far chance may have moved them, a row a group.

use std::fmt::Write;

use super::{
    Scale, Written,
    mark::{classes, outline},
    svg::{Anchor, Short, Svg},
};

/// Rows of dots, one dot a series.
#[derive(Debug)]
pub struct Whiskers<'a> {
    pub title: &'a str,
    pub about: &'a str,
    pub x: (&'a str, Scale, Written),
    /// Which colour and mark each series has, from 0 up.
    pub kinds: Vec<usize>,
    pub rows: Vec<WhiskerRow>,
}

/// One group.
#[derive(Debug)]
pub struct WhiskerRow {
    pub name: String,
    /// What stands small beside the name.
    pub note: String,
    /// One entry a series; none where it has no figure.
    pub dots: Vec<Option<Whisker>>,
}

/// A figure and the interval around it.
#[derive(Debug, Clone, Copy)]
pub struct Whisker {
    pub at: f64,
    pub low: f64,
    pub high: f64,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 208.0;
const RIGHT: f64 = 744.0;
const TOP: f64 = 34.0;
/// Between two dots of a row, and besides between two rows.
const DOT: f64 = 9.0;
const GAP: f64 = 12.0;
/// A row holds a name and a note, however few dots it has.
const LEAST: f64 = 38.0;

pub fn whiskers(chart: &Whiskers<'_>) -> String {
    let (name, scale, written) = chart.x;
    let count = |length: usize| length.to_string().parse::<f64>().unwrap_or(0.0);
    let dots = DOT * count(chart.kinds.len());
    let row_height = (dots + GAP).max(LEAST);
    let bottom = TOP + row_height * count(chart.rows.len());
    let place = |number: f64| LEFT + scale.place(number) * (RIGHT - LEFT);
    let mut svg = Svg::new("whiskers", WIDTH, bottom + 14.0, chart.title, chart.about);
    svg.text("name", (0.0, 14.0), Anchor::Start, name);
    for tick in scale.ticks() {
        svg.line("grid", (place(tick), TOP - 8.0), (place(tick), bottom));
        svg.text("", (place(tick), 16.0), Anchor::Middle, &written(tick));
    }
    // One path a series, however many rows there are: the page stays small.
    let mut paths = vec![(String::new(), String::new()); chart.kinds.len()];
    let mut top = TOP;
    for row in &chart.rows {
        svg.line("rule", (0.0, top), (RIGHT, top));
        let middle = top + row_height / 2.0;
        svg.text(
            "label",
            (0.0, middle + if row.note.is_empty() { 4.0 } else { -3.0 }),
            Anchor::Start,
            &row.name,
        );
        if !row.note.is_empty() {
            svg.text("", (0.0, middle + 12.0), Anchor::Start, &row.note);
        }
        let mut y = middle - (dots - DOT) / 2.0;
        for ((dot, kind), (lines, marks)) in row.dots.iter().zip(&chart.kinds).zip(&mut paths) {
            if let Some(Whisker { at, low, high }) = *dot {
                let (from, to) = (place(low), place(high));
                let drawn = write!(lines, "M{} {}H{}", Short(from), Short(y), Short(to));
                drawn.expect("writing to a String never fails; this is a bug");
                *marks += &outline(*kind, (place(at), y), 3.2);
            }
            y += DOT;
        }
        top += row_height;
    }
    for (kind, (lines, marks)) in chart.kinds.iter().zip(&paths) {
        svg.put(format_args!("<g class=\"{}\">", classes(*kind)));
        svg.path("line", lines);
        svg.path("point", marks);
        svg.put("</g>");
    }
    svg.finish()
}
