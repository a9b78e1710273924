//! Figures for analysts: evaluation, side by side, personas.

pub(crate) mod page;
pub mod personas;
