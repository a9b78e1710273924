//! The routes for programs.

pub(crate) mod coverage;
pub(crate) mod releases;
pub(crate) mod routing;
