//! The pages.

pub(crate) mod acceptance;
pub(crate) mod articles;
mod row;
