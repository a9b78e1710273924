//! The statements.

pub(crate) mod feeds;
pub(crate) mod import;
pub(crate) mod imports;
