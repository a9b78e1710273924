//! Shared by all routes: the state, problems, extractors, keys, metrics, and serving connections.

pub(crate) mod answers;
pub(crate) mod compression;
pub(crate) mod conditions;
pub(crate) mod cors;
mod error;
pub(crate) mod extract;
pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod https;
pub(crate) mod keys;
pub(crate) mod metrics;
pub(crate) mod paging;
pub(crate) mod peer;
pub(crate) mod problem;
pub(crate) mod request_id;
pub(crate) mod routes;
pub(crate) mod schema;
pub(crate) mod security;
pub(crate) mod serve;
mod source;
pub(crate) mod state;
pub(crate) mod streams;
pub(crate) mod timing;
pub(crate) mod tls;
pub(crate) mod trace;
pub(crate) mod uncancelled;

pub use cors::CrossOrigins;
pub(crate) use cors::METHODS;
pub use metrics::{Metrics, SAMPLED};
pub use problem::{Finding, KINDS, Kind, Problem, ProblemBody};
pub use request_id::RequestId;
pub(crate) use state::Published;
pub use state::{AppState, Parts};
