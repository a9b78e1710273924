//! Releases: their folder, upload, activation, and what is loaded.

pub mod api;
pub mod coverage;
pub mod foreign_release;
pub mod operations;
pub mod remote;
pub mod unsound_release;
