//! The pages.

pub(crate) mod feeds;
pub(crate) mod imports;
