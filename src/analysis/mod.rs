//! Figures for analysts: evaluation, comparison of releases, personas.

pub(crate) mod page;
pub mod personas;
