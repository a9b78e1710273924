//! Charts as inline SVG.
//!
//! Takes plain numbers with their names, and returns the text of one `<svg>`. The style sheet of the page gives
//! the colours through classes (`s1` to `s12` for the series), for light and dark pages. Each series also has its
//! own mark, so no series is known by its colour alone. Texts are escaped here. Must not know what the numbers
//! mean, nor HTTP.

mod axis;
mod bars;
mod line;
mod reliability;
mod svg;
#[cfg(test)]
mod tests;
mod whisker;

pub use axis::Scale;
pub use bars::{Bar, Bars, bars};
pub use line::{LineChart, Mark, Series, line_chart};
pub use reliability::{Reliability, reliability};
pub use svg::mark;
pub use whisker::{Whisker, WhiskerRow, Whiskers, whiskers};

/// Formats a number for an axis.
pub type Written = fn(f64) -> String;
