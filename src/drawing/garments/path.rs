//! Path strings: read, mirrored, folded open, written again.
//!
//! Garments are symmetrical, so their tables hold left halves. A path here is absolute and made of `M`, `L`,
//! `C` and `Z`, which is all that the tables use; an `M` with nothing after it is a dot.

use std::fmt::Write as _;

/// The line that garments are folded along.
const AXIS: f32 = 100.0;

type Point = [f32; 2];

/// A subpath: where it begins, and how it goes on.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    start: Point,
    segments: Vec<Segment>,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Segment {
    Line(Point),
    Curve(Point, Point, Point),
}

/// The left half and its mirror image as one shape: a half runs from the axis to the axis, the way back is its
/// image.
pub(super) fn folded(half: &str) -> String {
    let mut text = String::new();
    for mut run in read(half) {
        let back = reversed(&mirrored(&run));
        run.segments.extend(back.segments);
        run.closed = true;
        write(&run, &mut text);
    }
    text
}

/// The path and its mirror image beside it.
pub(super) fn paired(path: &str) -> String {
    let mut text = String::new();
    for run in read(path) {
        write(&run, &mut text);
        write(&mirrored(&run), &mut text);
    }
    text
}

/// The path as it is, in the writing that is short.
pub(super) fn single(path: &str) -> String {
    let mut text = String::new();
    for run in read(path) {
        write(&run, &mut text);
    }
    text
}

fn mirrored(run: &Run) -> Run {
    let flip = |[x, y]: Point| [2.0 * AXIS - x, y];
    let segments = run.segments.iter().map(|segment| match *segment {
        Segment::Line(to) => Segment::Line(flip(to)),
        Segment::Curve(a, b, to) => Segment::Curve(flip(a), flip(b), flip(to)),
    });
    Run { start: flip(run.start), segments: segments.collect(), closed: run.closed }
}

fn reversed(run: &Run) -> Run {
    let mut at = run.start;
    let mut segments = Vec::with_capacity(run.segments.len());
    for segment in &run.segments {
        match *segment {
            Segment::Line(to) => {
                segments.push(Segment::Line(at));
                at = to;
            }
            Segment::Curve(a, b, to) => {
                segments.push(Segment::Curve(b, a, at));
                at = to;
            }
        }
    }
    segments.reverse();
    Run { start: at, segments, closed: run.closed }
}

fn read(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut rest = text;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        let numbers = rest[1..end].split_whitespace().map(|number| {
            number
                .parse::<f32>()
                .unwrap_or_else(|_| panic!("{number:?} in {text:?} is no number; this is a bug"))
        });
        let numbers: Vec<f32> = numbers.collect();
        let points: Vec<Point> = numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let run = runs.last_mut();
        match (command, run) {
            ('M', _) => {
                let lines = points[1..].iter().map(|to| Segment::Line(*to)).collect();
                runs.push(Run { start: points[0], segments: lines, closed: false });
            }
            ('L', Some(run)) => run.segments.extend(points.iter().map(|to| Segment::Line(*to))),
            ('C', Some(run)) => {
                let curves = points.chunks_exact(3).map(|three| Segment::Curve(three[0], three[1], three[2]));
                run.segments.extend(curves);
            }
            ('Z', Some(run)) => run.closed = true,
            _ => panic!("{command:?} in {text:?} is not drawn here; this is a bug"),
        }
        rest = &rest[end..];
    }
    runs
}

/// In steps from point to point, whose numbers are shorter than places.
fn write(run: &Run, text: &mut String) {
    text.push('M');
    let mut at = run.start;
    numbers(&[at], [0.0, 0.0], text);
    for segment in &run.segments {
        match *segment {
            Segment::Line(to) => {
                text.push('l');
                numbers(&[to], at, text);
                at = to;
            }
            Segment::Curve(a, b, to) => {
                text.push('c');
                numbers(&[a, b, to], at, text);
                at = to;
            }
        }
    }
    if run.segments.is_empty() {
        text.push_str("h0");
    } else if run.closed {
        text.push('z');
    }
}

fn numbers(points: &[Point], from: Point, text: &mut String) {
    let steps = points.iter().flat_map(|[x, y]| [x - from[0], y - from[1]]);
    for (place, step) in steps.enumerate() {
        // A minus separates by itself.
        let tenths = (step * 10.0).round() / 10.0 + 0.0;
        if place > 0 && tenths >= 0.0 {
            text.push(' ');
        }
        write!(text, "{tenths}").expect("a string takes what is written; this is a bug");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_becomes_a_whole_and_a_path_gets_a_twin() {
        assert_eq!(
            folded("M100 10L60 20C50 30 50 40 100 90"),
            "M100 10l-40 10c-10 10-10 20 40 70c50-50 50-60 40-70l-40-10z"
        );
        assert_eq!(paired("M20 30L40.5 30Z"), "M20 30l20.5 0zM180 30l-20.5 0z");
        assert_eq!(paired("M90 10M80 5 70 5"), "M90 10h0M110 10h0M80 5l-10 0M120 5l10 0");
    }
}
