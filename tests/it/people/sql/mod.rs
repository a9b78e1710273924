//! Its statements, on both databases.

pub mod keys;
pub mod people;
pub mod sessions;
