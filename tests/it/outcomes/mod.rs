//! Feedback and events.

pub mod events;
pub mod feedback;
pub mod sql;
