//! Atelier completes outfits for a known customer.
//!
//! ARCHITECTURE.md traces a request and a training run through these modules and says what each must
//! never know.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod cli;
pub mod config;
pub mod digest;
pub mod domain;
pub mod exchange;
pub mod onnx_runtime;
pub mod release;
pub mod store;
pub mod web;
