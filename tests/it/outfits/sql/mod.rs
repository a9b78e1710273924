//! Its statements, on both databases.

pub mod outfits;
pub mod saved_outfits;
