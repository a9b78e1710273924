//! The statements.

pub(crate) mod acceptance;
pub(super) mod arms;
pub(crate) mod events;
pub(crate) mod feedback;
pub(crate) mod ledger;
