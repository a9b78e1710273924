//! Evaluation and personas.

pub mod evaluation;
pub mod personas;
