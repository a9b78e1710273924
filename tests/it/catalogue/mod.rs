//! Articles and their variants.

pub mod articles;
pub mod patching;
pub mod pictures;
pub mod sql;
pub mod variants;
