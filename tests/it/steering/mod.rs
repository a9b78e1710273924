//! Rules, looks and the holdout.

pub mod holdout;
pub mod looks;
pub mod rules;
