//! Trains, evaluates and exports every method, and makes the synthetic world to try them on.

pub mod data;
mod random;
