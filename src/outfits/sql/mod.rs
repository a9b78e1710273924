//! The statements.

pub(crate) mod outfits;
pub(crate) mod saved_outfits;
