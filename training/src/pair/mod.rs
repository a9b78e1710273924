//! Halves of outfits, and whether two of them were one outfit: what is asked, and what the answers are
//! worth.
//!
//! Outfits come in from [`Data`](crate::data::Data); [`Halves`] takes them apart and finds strangers'
//! halves of the same types, [`Cooccurrence`] says what counting would answer, [`PairFigures`] how good any
//! answers are. It must never know a model, a method or a file.

mod cooccurrence;
mod figures;
mod halves;
#[cfg(test)]
mod tests;

pub use cooccurrence::Cooccurrence;
pub use figures::PairFigures;
pub use halves::{Halves, Pair};
