//! Writes the text of an SVG: lines, texts, and the marks of series.

use std::fmt::{self, Display, Write};

/// An unfinished chart. Numbers are written with one decimal, texts are escaped.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// The part of a text that lies at its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// `title` names the chart, `about` describes it in a sentence. The name is no `title` element, which browsers would show
    /// at the pointer, over what a spot says.
    pub(super) fn new(class: &str, width: f64, height: f64, title: &str, about: &str) -> Self {
        let (width, height, title, about) = (Short(width), Short(height), Escaped(title), Escaped(about));
        let text = format!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
             xmlns=\"http://www.w3.org/2000/svg\"><desc>{about}</desc>"
        );
        Self { text }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &format!("M{}L{}", At(from), At(to)));
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// A line through all points.
    pub(super) fn polyline(&mut self, points: impl Iterator<Item = (f64, f64)>) {
        let corners = join(points);
        let start = if corners.is_empty() { "" } else { "M" };
        self.path("line", &format!("{start}{corners}"));
    }

    /// The area inside these points; nothing without points.
    pub(super) fn area(&mut self, points: impl Iterator<Item = (f64, f64)>) {
        let corners = join(points);
        if !corners.is_empty() {
            self.path("band", &format!("M{corners}z"));
        }
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(Short);
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (x, y, text) = (Short(at.0), Short(at.1), Escaped(text));
        self.put(format_args!("<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// A spot that says something when it is pointed at, with the words above `words`. Those that are drawn later lie over the
    /// earlier ones.
    pub(super) fn spot(&mut self, words: (f64, f64), (x, y): (f64, f64), anchor: Anchor, says: &str) {
        self.text.push_str("<g class=\"spot\">");
        self.put(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"8\"/>", Short(x), Short(y)));
        self.text("tip", (words.0, words.1 - 14.0), anchor, says);
        self.text.push_str("</g>");
    }

    /// Starts the group of a series: what follows has its colour.
    pub(super) fn start_series(&mut self, series: usize) {
        self.put(format_args!("<g class=\"{}\">", classes(series)));
    }

    pub(super) fn end_series(&mut self) {
        self.text.push_str("</g>");
    }

    /// The marks of a series around its points.
    pub(super) fn marks(&mut self, series: usize, points: impl Iterator<Item = (f64, f64)>, size: f64) {
        let outlines: String = points.map(|point| outline(series, point, size)).collect();
        self.path("point", &outlines);
    }

    fn put(&mut self, text: impl Display) {
        write!(self.text, "{text}").expect("writing to a String never fails");
    }
}

/// The mark alone, for a legend or a table.
pub fn mark(series: usize) -> String {
    format!(
        "<svg class=\"mark\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><g class=\"{}\"><path class=\"point\" \
         d=\"{}\"/></g></svg>",
        classes(series),
        outline(series, (8.0, 8.0), 4.5)
    )
}

/// The number of series with their own colour and mark: one for each method of ours.
const KINDS: usize = 12;

/// The classes of a series: its colour, and whether its marks are hollow.
fn classes(series: usize) -> String {
    let hollow = if series % KINDS >= KINDS / 2 { " hollow" } else { "" };
    format!("series s{}{hollow}", series % KINDS + 1)
}

/// The outline of a mark around a point: six shapes, first filled, then hollow.
fn outline(series: usize, (x, y): (f64, f64), size: f64) -> String {
    let r = size;
    let at = |dx: f64, dy: f64| At((x + dx, y + dy));
    match series % (KINDS / 2) {
        0 => {
            let (from, r, d) = (at(-r, 0.0), Short(r), Short(2.0 * r));
            format!("M{from}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z")
        }
        1 => {
            let edge = 1.8 * r;
            format!("M{}h{s}v{s}h-{s}z", at(-edge / 2.0, -edge / 2.0), s = Short(edge))
        }
        2 => format!("M{}L{}L{}z", at(0.0, -1.2 * r), at(1.2 * r, 0.9 * r), at(-1.2 * r, 0.9 * r)),
        3 => {
            let r = 1.35 * r;
            format!("M{}L{}L{}L{}z", at(0.0, -r), at(r, 0.0), at(0.0, r), at(-r, 0.0))
        }
        4 => format!("M{}L{}L{}z", at(0.0, 1.2 * r), at(1.2 * r, -0.9 * r), at(-1.2 * r, -0.9 * r)),
        _ => {
            let (arm, end) = (0.7 * r, 1.3 * r);
            let (from, wide, long) = (at(-arm / 2.0, -end), Short(arm), Short(end - arm / 2.0));
            format!(
                "M{from}h{wide}v{long}h{long}v{wide}h-{long}v{long}h-{wide}v-{long}h-{long}v-{wide}h{long}z"
            )
        }
    }
}

/// A number with at most one decimal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // Writes -0 as 0.
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths })
    }
}

/// A point.
struct At((f64, f64));

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self((x, y)) = self;
        write!(f, "{} {}", Short(*x), Short(*y))
    }
}

/// Points with lines between them.
fn join(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|point| At(point).to_string()).collect::<Vec<_>>().join("L")
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            other => f.write_char(other),
        })
    }
}
