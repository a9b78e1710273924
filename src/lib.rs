//! Atelier completes outfits for a known customer.
//!
//! Each module below is a room of ARCHITECTURE.md, which traces a request and a training run through them and says
//! what each must never know. Imports go from the end of this list to its beginning only.

pub mod cli;
pub mod config;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod web;
