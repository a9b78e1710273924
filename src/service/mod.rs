//! The use cases: domain types in, domain types or a typed fault out. Knows nothing of HTTP, JSON pointers or pages.

pub mod access;
mod cache;
pub mod completion;
pub mod evaluation;
pub mod intake;
pub mod live_release;
pub mod offline;
pub mod personas;
pub mod profiles;
pub mod routing;
