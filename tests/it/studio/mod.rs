//! The stylist's pages by their HTML; `browser` uses them in a browser.

pub mod side_by_side;
pub mod suggesting;
