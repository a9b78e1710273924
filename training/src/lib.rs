//! Trains, evaluates and exports every method, and makes a synthetic world to try them on.
//!
//! ARCHITECTURE.md describes how a training run flows through these modules.

pub mod baselines;
pub mod cli;
pub mod data;
pub mod embed;
mod engine;
pub mod evaluate;
pub mod export;
mod files;
pub mod fit;
pub mod folds;
pub mod import;
mod judge;
pub mod metrics;
pub mod model;
pub mod number;
pub mod pair;
pub mod random;
pub mod refresh;
pub mod release;
pub mod survey;
pub mod synthesise;
pub mod table;
#[cfg(test)]
mod testing;
pub mod world;

pub use engine::AdamWConfig;
