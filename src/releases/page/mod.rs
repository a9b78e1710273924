//! The pages.

pub(crate) mod comparison;
pub(crate) mod releases;
pub(crate) mod routing;
