//! The routes for programs.

pub(crate) mod compare;
pub(crate) mod complete;
pub(crate) mod score;
pub(crate) mod similar;
