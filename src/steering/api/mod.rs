//! The routes for programs.

pub(crate) mod documents;
pub(crate) mod holdout;
pub(crate) mod looks;
pub(crate) mod rules;
