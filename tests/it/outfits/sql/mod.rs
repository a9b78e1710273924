//! Its statements, on both databases.

pub mod saved_outfits;
