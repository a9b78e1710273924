//! Charts for pages, drawn here as inline SVG: no script, no style of their own.
//!
//! Figures come in as plain numbers with their names; out goes the text of one `<svg>`. Colours come from the
//! page's style sheet through classes (`s1` to `s10` for a series), so that light and dark work; every series
//! has a mark of its own besides, so that none is told by its colour alone. Texts are escaped here. Must not know
//! what is drawn, nor HTTP.

mod axis;
mod bars;
mod line;
mod mark;
mod reliability;
mod svg;
#[cfg(test)]
mod tests;
mod whisker;

pub use axis::Scale;
pub use bars::{Bar, Bars, bars};
pub use line::{LineChart, Series, line_chart};
pub use mark::mark;
pub use reliability::{Reliability, reliability};
pub use whisker::{Whisker, WhiskerRow, Whiskers, whiskers};

/// How a number is written on an axis or beside a point.
pub type Written = fn(f64) -> String;
