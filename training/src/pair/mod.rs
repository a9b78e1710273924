//! Pairs of halves of outfits: were the two one outfit?
//!
//! Outfits come in from [`Data`](crate::data::Data). [`Halves`] splits them and finds halves of other outfits with
//! the same types, [`Cooccurrence`] is the baseline by counting, [`PairFigures`] measures answers. This module must
//! never know a model, a method or a file.

mod cooccurrence;
mod figures;
mod halves;
#[cfg(test)]
mod tests;

pub use cooccurrence::Cooccurrence;
pub use figures::PairFigures;
pub use halves::{Halves, Pair};
