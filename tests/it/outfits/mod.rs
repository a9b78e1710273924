//! Saved outfits.

pub mod api;
pub mod saved_outfits;
pub mod sql;
