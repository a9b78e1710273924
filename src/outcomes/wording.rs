//! Outcomes in a stylist's words.

use super::RefusalReason;

impl RefusalReason {
    /// Why a suggestion was refused.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::TooDear => "Too expensive",
            Self::HasOne => "Has one",
            Self::Colour => "Colour",
            Self::Style => "Not their style",
        }
    }
}
