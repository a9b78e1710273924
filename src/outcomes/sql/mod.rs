//! The statements.

pub(crate) mod acceptance;
pub(crate) mod events;
pub(crate) mod feedback;
pub(crate) mod ledger;
