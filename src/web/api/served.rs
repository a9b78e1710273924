//! The release that is served, for those who need its schema or vocabulary and no model.

use std::{
    ops::Deref,
    sync::{Arc, LazyLock},
};

use crate::web::http::AppState;
use crate::{
    domain::Schema,
    service::{completion::Ticket, live_release::LiveRelease},
};

/// The schema that features are read by: what is served is what they will mean.
pub(crate) enum ServedSchema {
    LiveRelease(Arc<LiveRelease>),
    /// There is no release.
    Default,
}

impl AppState {
    pub(crate) fn schema(&self) -> ServedSchema {
        self.releases.current().map_or(ServedSchema::Default, ServedSchema::LiveRelease)
    }

    /// What is on offer, while that is what the ticket's numbers are about: a release of its name, with its articles.
    pub(crate) fn serves(&self, ticket: &Ticket) -> Option<Arc<LiveRelease>> {
        let same = |live: &Arc<LiveRelease>| {
            let mark = live.serving.release().vocabulary_mark();
            live.name() == ticket.release && ticket.vocabulary.is_none_or(|vocabulary| vocabulary == mark)
        };
        self.releases.current().filter(same)
    }
}

impl Deref for ServedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        static DEFAULT: LazyLock<Schema> = LazyLock::new(Schema::default_schema);
        match self {
            Self::LiveRelease(live) => live.serving.release().schema(),
            Self::Default => &DEFAULT,
        }
    }
}
