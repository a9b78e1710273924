//! The statements.

pub(crate) mod customers;
mod erasures;
pub(crate) mod notes;
