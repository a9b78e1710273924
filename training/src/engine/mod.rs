//! The numbers of training: a tape of a dozen fused operations with hand-written gradients.
//!
//! Why not a tensor library: this model family is small and fixed, and the engine is faster than any
//! that was measured on two cores (the figures stand in ARCHITECTURE.md). It knows rows, widths and
//! outfits' boundaries; it must never know a method, a file or a catalogue. A model describes itself
//! through [`Ops`]; the [`Tape`] here computes it on packed outfits, the exporter draws it as a graph,
//! so that what is trained and what is served cannot differ in shape.
//!
//! Everything is two-dimensional and row-major. One tape works on one shard of a batch in one thread;
//! shards have a fixed size and their gradients are added in order, so the number of threads changes
//! nothing about the result.

mod adamw;
mod adaptive;
mod attention;
mod backward;
mod dropout;
mod head;
mod lookup;
mod matmul;
mod norm;
mod ops;
mod pair;
mod personas;
mod shard;
mod shared;
mod simd;
mod tape;
mod weights;

pub(crate) use adamw::AdamW;
pub use adamw::AdamWConfig;
pub(crate) use adaptive::Halting;
pub(crate) use dropout::Dropout;
pub(crate) use head::{Head, HeadGradients};
pub(crate) use ops::{Activation, Adaptive, Linear, Norm, Ops, Rows};
pub(crate) use pair::{LEAST, PairHead, READINGS, Readings, probability};
pub(crate) use personas::EVIDENCE;
pub(crate) use shard::{Shard, Tables};
pub(crate) use shared::{Shared, Sharing};
pub(crate) use simd::{add as add_to, exp, number, vectorised};
pub(crate) use tape::{Node, Tape};
pub(crate) use weights::{Gradients, Param, RowGradients, Tensor, Weights};
