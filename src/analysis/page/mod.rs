//! The pages.

pub(crate) mod comparison;
pub(crate) mod evaluation;
pub(crate) mod personas;
