//! Feeds, stored sources and imports.

pub mod feeds;
pub mod sources;
pub mod sql;
