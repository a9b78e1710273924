//! Shared by all routes: the state, problems, extractors, keys, metrics, and serving connections.

pub(crate) mod compression;
pub(crate) mod conditions;
mod cors;
pub(crate) mod extract;
pub(crate) mod fault;
pub(crate) mod host;
pub(crate) mod https;
pub(crate) mod item;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod paging;
pub(crate) mod peer;
pub(crate) mod problem;
pub(crate) mod request_id;
pub(crate) mod resource;
pub(crate) mod routes;
pub(crate) mod schema;
pub(crate) mod security;
pub(crate) mod serve;
pub(crate) mod source;
pub(crate) mod spool;
mod state;
pub(crate) mod streams;
pub(crate) mod tls;
pub(crate) mod trace;
pub(crate) mod uncancelled;

pub use self::{
    cors::CrossOrigins,
    metrics::{Metrics, SAMPLED},
    problem::{Finding, KINDS, Kind, Problem, ProblemBody},
    request_id::RequestId,
    state::{AppState, Ground},
};
pub(crate) use self::{cors::METHODS, state::Published};
