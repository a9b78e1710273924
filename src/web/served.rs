//! The release that is served, for those who need its schema or vocabulary and no model.

use std::{
    ops::Deref,
    sync::{Arc, LazyLock},
};

use super::AppState;
use crate::{completion::Ticket, domain::Schema, offer::Offer};

/// The schema that features are read by: what is served is what they will mean.
pub(super) enum ServedSchema {
    Offer(Arc<Offer>),
    /// There is no release.
    Default,
}

impl AppState {
    pub(super) fn schema(&self) -> ServedSchema {
        self.offers.current().map_or(ServedSchema::Default, ServedSchema::Offer)
    }

    /// What is on offer, while that is what the ticket's numbers are about: a release of its name, with its articles.
    pub(super) fn serves(&self, ticket: &Ticket) -> Option<Arc<Offer>> {
        let same = |offer: &Arc<Offer>| {
            let mark = offer.serving.release().vocabulary_mark();
            offer.name() == ticket.release && ticket.vocabulary.is_none_or(|vocabulary| vocabulary == mark)
        };
        self.offers.current().filter(same)
    }
}

impl Deref for ServedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        static DEFAULT: LazyLock<Schema> = LazyLock::new(Schema::default_schema);
        match self {
            Self::Offer(offer) => offer.serving.release().schema(),
            Self::Default => &DEFAULT,
        }
    }
}
