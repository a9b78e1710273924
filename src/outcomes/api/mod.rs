//! The routes for programs.

pub(crate) mod acceptance;
pub(crate) mod events;
pub(crate) mod feedback;
