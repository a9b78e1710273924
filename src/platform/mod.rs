//! The ground under all features. It knows none of them.

pub(crate) mod cache;
pub mod db;
pub mod fault;
pub mod http;
pub mod memory;
pub(crate) mod page;
pub(crate) mod scope;
pub(crate) mod token;
