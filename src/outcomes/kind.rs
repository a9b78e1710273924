//! What became of a suggestion.

use atelier_core::named;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    Shown,
    Accepted,
    Rejected,
    Bought,
    /// Came back: it no longer counts as accepted.
    Returned,
    /// Was not sent back in time.
    Kept,
}

named!(
    FeedbackKind,
    "feedback is shown, accepted, rejected, bought, returned or kept",
    Shown = "shown",
    Accepted = "accepted",
    Rejected = "rejected",
    Bought = "bought",
    Returned = "returned",
    Kept = "kept",
);

/// Who reported what became of a suggestion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FeedbackSource)]
pub enum Source {
    /// The shop's programs and people, or a page about a customer whom the shop signed.
    #[default]
    Shop,
    /// Pages that name no customer: anyone can make up what they say.
    Pages,
}

named!(Source, "a source is shop or pages", Shop = "shop", Pages = "pages");

impl FeedbackKind {
    /// In the order in which people read of the shop's events.
    pub const ALL: [Self; 6] =
        [Self::Shown, Self::Accepted, Self::Bought, Self::Returned, Self::Kept, Self::Rejected];

    /// The word for an event in the shop, where what is shown is viewed and what is accepted is added to the basket.
    pub fn shop_word(self) -> &'static str {
        match self {
            Self::Shown => "viewed",
            Self::Accepted => "added",
            other => other.as_str(),
        }
    }

    pub fn from_shop_word(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.shop_word() == word).ok_or_else(|| {
            format!("an event is viewed, added, bought, returned, kept or rejected; found {word:?}")
        })
    }

    pub fn is_sale(self) -> bool {
        matches!(self, Self::Bought | Self::Returned | Self::Kept)
    }
}
