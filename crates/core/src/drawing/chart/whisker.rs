//! Figures with their intervals, one row for each group.

use std::fmt::Write;

use super::{
    Scale, Written,
    svg::{Anchor, Short, Svg},
};

/// Rows of dots, with one dot for each series.
#[derive(Debug)]
pub struct Whiskers<'a> {
    pub title: &'a str,
    pub about: &'a str,
    pub x: (&'a str, Scale, Written),
    /// The number of the colour and mark of each series, from 0.
    pub kinds: Vec<usize>,
    pub rows: Vec<WhiskerRow>,
}

/// One group.
#[derive(Debug)]
pub struct WhiskerRow {
    pub name: String,
    /// A note in small type below the name.
    pub note: String,
    /// One entry for each series; `None` if it has no figure.
    pub dots: Vec<Option<Whisker>>,
    /// Each dot's words when it is pointed at.
    pub says: Vec<String>,
}

/// A figure and its interval.
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
/// The distance between two dots of a row, and the gap between two rows.
const DOT: f64 = 9.0;
const GAP: f64 = 12.0;
/// The least height of a row: it holds a name and a note.
const LEAST: f64 = 38.0;

pub fn whiskers(chart: &Whiskers<'_>) -> String {
    let (name, scale, written) = chart.x;
    let count = |length: usize| length.to_string().parse::<f64>().unwrap_or(0.0);
    let dots = DOT * count(chart.kinds.len());
    let row_height = (dots + GAP).max(LEAST);
    let bottom = TOP + row_height * count(chart.rows.len());
    let position = |number: f64| LEFT + scale.position(number) * (RIGHT - LEFT);
    let mut svg = Svg::new("whiskers", WIDTH, bottom + 14.0, chart.title, chart.about);
    svg.text("name", (0.0, 14.0), Anchor::Start, name);
    for tick in scale.ticks() {
        svg.line("grid", (position(tick), TOP - 8.0), (position(tick), bottom));
        svg.text("", (position(tick), 16.0), Anchor::Middle, &written(tick));
    }
    // One path for all rows of a series keeps the page small.
    let mut series = vec![(String::new(), Vec::new()); chart.kinds.len()];
    let mut spots = Vec::new();
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
        for (number, (dot, (lines, points))) in row.dots.iter().zip(&mut series).enumerate() {
            if let Some(Whisker { at, low, high }) = *dot {
                let (from, to) = (position(low), position(high));
                write!(lines, "M{} {}H{}", Short(from), Short(y), Short(to))
                    .expect("writing to a String never fails");
                points.push((position(at), y));
                spots.extend(row.says.get(number).map(|says| ((position(at), y), says)));
            }
            y += DOT;
        }
        top += row_height;
    }
    for (&kind, (lines, points)) in chart.kinds.iter().zip(series) {
        svg.start_series(kind);
        svg.path("line", &lines);
        svg.marks(kind, points.into_iter(), 3.2);
        svg.end_series();
    }
    for ((x, y), says) in spots {
        let anchor = if x > f64::midpoint(LEFT, RIGHT) { Anchor::End } else { Anchor::Start };
        svg.spot((x, y), (x, y), anchor, says);
    }
    svg.finish()
}
