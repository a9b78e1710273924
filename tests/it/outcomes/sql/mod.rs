//! Its statements, on both databases.

pub mod events;
pub mod feedback;
