//! The arithmetic of training: a tape of a dozen fused operations with hand-written gradients.
//!
//! There is no tensor library because this model family is small and fixed, and the engine is faster than
//! every library measured on two cores (figures in ARCHITECTURE.md). It knows rows, widths and where outfits
//! begin and end; it must never know a method, a file or a catalogue. A model describes itself through
//! [`Ops`]: the [`Tape`] computes it on packed outfits, the exporter draws it as a graph, so the trained and the
//! served model cannot differ in shape.
//!
//! All values are two-dimensional and row-major. One tape works on one shard of a batch in one thread. Shards
//! have a fixed size and their gradients are added in order, so the number of threads does not change the
//! result.

mod adamw;
mod adaptive;
mod attention;
mod dropout;
mod head;
mod lookup;
mod matmul;
mod memory;
mod norm;
mod ops;
mod pair;
mod personas;
mod shard;
mod simd;
mod tape;
mod values;
mod weights;

pub(crate) use adamw::AdamW;
pub use adamw::AdamWConfig;
pub(crate) use adaptive::Halting;
pub(crate) use dropout::Dropout;
pub(crate) use head::{Head, HeadGradients};
pub(crate) use lookup::MATCH_GAIN;
pub(crate) use matmul::{add_product, add_transposed_product};
pub(crate) use memory::{Memory, count_weights, set_first_weights, strength};
pub(crate) use ops::{Activation, Adaptive, Linear, Norm, Ops, Residue, Rows};
pub(crate) use pair::{DISTANCE_EPSILON, PairHead, READINGS, Readings, sigmoid};
pub(crate) use personas::EVIDENCE;
pub(crate) use shard::{Shard, Tables};
pub(crate) use simd::{exp, number, vectorised};
pub(crate) use tape::{Node, Tape};
pub(crate) use values::{Composed, ValueRows, add_embedding};
pub(crate) use weights::{Gradients, Param, Tensor, Weights};
