//! Drawing as SVG: charts of numbers, and garments from words. Knows nothing of HTTP or of the product's data.

pub mod chart;
pub mod garments;
