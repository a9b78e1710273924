//! Atelier completes outfits for a known customer.
//!
//! Each module below is a capability with all that belongs to it. ARCHITECTURE.md has their order, in which imports go up, and traces a
//! request through them.

pub mod agents;
pub mod analysis;
pub mod app;
pub mod catalogue;
pub mod cli;
pub mod completion;
pub mod config;
pub mod customers;
pub mod experiments;
pub mod imports;
pub mod outcomes;
pub mod outfits;
pub mod people;
pub mod platform;
pub mod privacy;
pub mod releases;
pub mod steering;
pub mod studio;
pub mod telemetry;
