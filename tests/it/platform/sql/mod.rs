//! Its statements, on both databases.

pub mod opening;
pub mod writing;
