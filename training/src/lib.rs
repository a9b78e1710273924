//! Trains, evaluates and exports every method, and makes the synthetic world to try them on.

mod engine;
pub mod export;
pub mod model;

pub use engine::AdamWConfig;
