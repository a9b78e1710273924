//! What no feature owns: the contract, limits, health, metrics, the database.

pub mod api_guide;
pub mod contract;
pub mod health;
pub mod limits;
pub mod metrics;
pub mod monitoring;
pub mod problems;
pub mod refusing;
pub mod routes;
pub mod sql;
