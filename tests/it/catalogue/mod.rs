//! Articles and their variants.

pub mod articles;
pub mod memory;
pub mod patching;
pub mod pictures;
pub mod sql;
pub mod variants;
