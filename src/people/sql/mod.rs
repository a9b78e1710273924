//! The statements.

pub(crate) mod keys;
pub(crate) mod people;
pub(crate) mod sessions;
pub(crate) mod sign_in_links;
