//! Atelier completes outfits for a known customer.
//!
//! ARCHITECTURE.md traces a request and a training run through these modules and says what each must
//! never know.

pub mod access;
pub mod calendar;
pub mod catalogue;
pub mod chart;
pub mod cli;
pub mod completion;
pub mod config;
pub mod digest;
pub mod domain;
pub mod engine;
pub mod evaluation;
pub mod exchange;
pub mod http_client;
pub mod intake;
mod json_pointer;
mod memory;
pub mod offer;
pub mod offline;
pub mod onnx_runtime;
pub mod personas;
pub mod pictures;
pub mod profiles;
mod recall;
pub mod release;
pub mod routing;
pub mod store;
pub mod telemetry;
pub mod web;
