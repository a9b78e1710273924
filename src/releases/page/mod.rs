//! The pages.

pub(crate) mod releases;
pub(crate) mod routing;
pub(crate) mod upload;
