//! The text of an SVG, put together.

use std::fmt::{self, Display, Write};

/// A picture in the making: numbers with one digit behind the point, texts escaped.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// Where a text stands in regard to its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// `title` names the picture, `about` says in a sentence what is to be seen.
    pub(super) fn new(class: &str, width: f64, height: f64, title: &str, about: &str) -> Self {
        let mut svg = Self { text: String::new() };
        svg.put(format_args!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {} {}\" role=\"img\" \
             xmlns=\"http://www.w3.org/2000/svg\"><title>{}</title><desc>{}</desc>",
            Short(width),
            Short(height),
            Escaped(title),
            Escaped(about)
        ));
        svg
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    pub(super) fn put(&mut self, text: impl Display) {
        write!(self.text, "{text}").expect("writing to a String never fails; this is a bug");
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.put(format_args!(
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            Short(from.0),
            Short(from.1),
            Short(to.0),
            Short(to.1)
        ));
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// A line from point to point.
    pub(super) fn polyline(&mut self, points: impl Iterator<Item = (f64, f64)>) {
        self.text.push_str("<path class=\"line\" d=\"");
        for (number, (x, y)) in points.enumerate() {
            self.put(format_args!("{}{} {}", if number == 0 { 'M' } else { 'L' }, Short(x), Short(y)));
        }
        self.text.push_str("\"/>");
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Short(at.0),
            Short(at.1),
            Short(size.0),
            Short(size.1)
        ));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.put(format_args!(
            "<text{class} x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            Short(at.0),
            Short(at.1),
            Escaped(text)
        ));
    }
}

/// A number as short as a picture needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // A nought without a sign.
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths })
    }
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
