//! The pages.

pub(crate) mod evaluation;
pub(crate) mod personas;
pub(crate) mod side_by_side;
