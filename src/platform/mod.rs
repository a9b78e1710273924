//! What every feature stands on. It knows no feature.

pub(crate) mod cache;
pub mod db;
pub mod fault;
pub mod http;
pub(crate) mod page;
