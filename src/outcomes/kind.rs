//! Outcomes of a suggestion.

use atelier_core::named;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

named! {
    "feedback is shown, accepted, rejected, bought, returned or kept"
    /// The outcome of a suggestion.
    #[derive(PartialOrd, Ord, Hash, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum FeedbackKind {
        Shown = "shown",
        Accepted = "accepted",
        Bought = "bought",
        /// Came back: it no longer counts as accepted.
        Returned = "returned",
        /// Was not sent back in time.
        Kept = "kept",
        Rejected = "rejected",
    }
}

named! {
    "a source is shop or pages"
    /// Who reported what became of a suggestion.
    #[derive(Default, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    #[schema(as = FeedbackSource)]
    pub enum Source {
        /// The shop's programs and people, or a page about a customer whom the shop signed.
        #[default]
        Shop = "shop",
        /// Pages that name no customer: anyone can make up what they say.
        Pages = "pages",
    }
}

impl FeedbackKind {
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
