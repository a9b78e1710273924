//! Arms, their figures, and a second release.

pub mod arms;
pub mod second_release;
