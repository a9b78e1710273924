//! The routes for programs.

pub(crate) mod bulk;
pub(crate) mod feeds;
pub(crate) mod imports;
pub(crate) mod sources;
