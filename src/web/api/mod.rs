//! The JSON endpoints: one resource, one file, one `router()`.

pub(crate) mod acceptance;
pub(crate) mod articles;
pub(crate) mod bulk;
pub(crate) mod compare;
pub(crate) mod complete;
pub(crate) mod coverage;
pub(crate) mod customers;
mod documents;
pub(crate) mod events;
pub(crate) mod fault;
pub(crate) mod features;
pub(crate) mod feedback;
pub(crate) mod feeds;
pub(crate) mod health;
pub(crate) mod holdout;
pub(crate) mod imports;
pub(crate) mod looks;
pub(crate) mod openapi;
pub(crate) mod outfits;
pub(crate) mod releases;
mod resource;
pub(crate) mod routing;
pub(crate) mod rules;
pub(crate) mod score;
pub(crate) mod similar;
pub(crate) mod sources;
mod visitors;
