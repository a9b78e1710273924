//! Profiles, their export and their erasure.

pub mod erasing;
pub mod profiles;
pub mod sql;
