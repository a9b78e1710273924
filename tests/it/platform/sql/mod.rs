//! Its statements, on both databases.

pub mod audit;
pub mod opening;
pub mod settings;
pub mod writing;
