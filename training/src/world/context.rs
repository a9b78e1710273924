//! What the stylist knows when laying an outfit.

use super::{lexicon::Occasion, profile::Profile};

/// The customer as they described themselves, and the occasion if one was named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) occasion: Option<Occasion>,
}
