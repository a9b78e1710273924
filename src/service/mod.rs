//! The use cases: domain types in, domain types or a typed fault out. Knows nothing of HTTP, JSON pointers or pages.

pub mod acceptance;
pub mod access;
pub mod administration;
pub mod asking;
mod cache;
pub mod changes;
pub mod comparison;
pub mod completion;
pub mod coverage;
pub mod exposure;
pub mod fault;
pub mod feedback;
pub mod feeds;
pub mod import;
pub mod live_release;
pub mod offline;
pub mod outfits;
pub mod personas;
pub mod profiles;
pub mod release_folder;
pub mod routing;
pub mod rule_changes;
pub mod rules;
pub mod search;
pub mod similar;
pub mod tickets;
