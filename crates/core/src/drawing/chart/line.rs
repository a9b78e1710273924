//! Lines over a common axis, each labelled at its end.

use super::{
    Scale, Written,
    svg::{Anchor, Svg},
};

/// A chart of several lines.
#[derive(Debug)]
pub struct LineChart<'a> {
    pub title: &'a str,
    /// A description in a sentence.
    pub about: &'a str,
    pub x: (&'a str, Scale, Written),
    pub y: (&'a str, Scale, Written),
    pub series: Vec<Series<'a>>,
}

/// One line.
#[derive(Debug)]
pub struct Series<'a> {
    /// Written at the line's end; may be empty.
    pub name: &'a str,
    /// The number of its colour and mark, from 0; the same in every chart of a page.
    pub kind: usize,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// The points that have a mark.
    pub marked: Vec<Mark>,
    /// From left to right, the ends of the intervals around the line; may be empty.
    pub band: Vec<(f64, f64, f64)>,
}

/// A mark at a point.
#[derive(Debug)]
pub struct Mark {
    /// The point's index.
    pub point: usize,
    /// Its words when it is pointed at.
    pub says: String,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 344.0;
/// The least distance between two labels.
const LABEL: f64 = 18.0;

pub fn line_chart(chart: &LineChart<'_>) -> String {
    let mut svg = Svg::new("lines", WIDTH, HEIGHT, chart.title, chart.about);
    let (x_name, x_scale, x_written) = chart.x;
    let (y_name, y_scale, y_written) = chart.y;
    let position = |(x, y): (f64, f64)| {
        (LEFT + x_scale.position(x) * (RIGHT - LEFT), BOTTOM - y_scale.position(y) * (BOTTOM - TOP))
    };
    for tick in y_scale.ticks() {
        let y = BOTTOM - y_scale.position(tick) * (BOTTOM - TOP);
        svg.line("grid", (LEFT, y), (RIGHT, y));
        svg.text("", (LEFT - 10.0, y + 4.0), Anchor::End, &y_written(tick));
    }
    for tick in x_scale.ticks() {
        let x = LEFT + x_scale.position(tick) * (RIGHT - LEFT);
        svg.line("axis", (x, BOTTOM), (x, BOTTOM + 6.0));
        svg.text("", (x, BOTTOM + 22.0), Anchor::Middle, &x_written(tick));
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.text("name", (f64::midpoint(LEFT, RIGHT), HEIGHT - 10.0), Anchor::Middle, x_name);
    svg.text("name", (LEFT + 8.0, TOP + 18.0), Anchor::Start, y_name);

    let ends: Vec<f64> = chart
        .series
        .iter()
        .map(|series| series.points.last().map_or(BOTTOM, |point| position(*point).1))
        .collect();
    for (series, label) in chart.series.iter().zip(spread(&ends, TOP + 4.0, BOTTOM, LABEL)) {
        svg.start_series(series.kind);
        let lows = series.band.iter().map(|&(x, low, _)| position((x, low)));
        svg.area(lows.chain(series.band.iter().rev().map(|&(x, _, high)| position((x, high)))));
        svg.polyline(series.points.iter().map(|&point| position(point)));
        let marked = series.marked.iter().filter_map(|mark| series.points.get(mark.point));
        svg.marks(series.kind, marked.map(|&point| position(point)), 3.6);
        if let Some(&end) = series.points.last().filter(|_| !series.name.is_empty()) {
            svg.line("leader", (RIGHT + 4.0, position(end).1), (RIGHT + 18.0, label));
            svg.marks(series.kind, [(RIGHT + 26.0, label)].into_iter(), 3.6);
        }
        svg.end_series();
        svg.text("label", (RIGHT + 36.0, label + 4.0), Anchor::Start, series.name);
    }
    for series in &chart.series {
        for Mark { point, says } in &series.marked {
            let Some(&at) = series.points.get(*point) else { continue };
            let (x, y) = position(at);
            let anchor = if x > f64::midpoint(LEFT, RIGHT) { Anchor::End } else { Anchor::Start };
            svg.spot((x, y.max(TOP + 8.0)), (x, y), anchor, says);
        }
    }
    svg.finish()
}

/// Moves positions apart until no two are closer than `least`. They keep their order, and stay between `from` and `to`
/// if there is room.
pub(super) fn spread(positions: &[f64], from: f64, to: f64, least: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by(|&one, &other| positions[one].total_cmp(&positions[other]));
    let mut spread = positions.to_vec();
    let mut lowest = from;
    for &number in &order {
        spread[number] = spread[number].max(lowest);
        lowest = spread[number] + least;
    }
    let mut highest = to;
    for &number in order.iter().rev() {
        spread[number] = spread[number].min(highest);
        highest = spread[number] - least;
    }
    spread
}
