//! Merchandisers' steering of suggestions: rules, looks, the holdout, and previews.

pub(crate) mod api;
pub mod documents;
pub mod holdout;
pub mod looks;
pub(crate) mod page;
pub mod preview;
mod rules;
