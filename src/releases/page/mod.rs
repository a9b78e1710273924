//! The pages.

pub(crate) mod releases;
pub(crate) mod routing;
