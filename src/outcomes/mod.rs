//! What became of suggestions: feedback, events, acceptance, and how often new articles were suggested.

pub mod acceptance;
pub(crate) mod api;
pub mod events;
pub mod exposure;
pub mod feedback;
pub(crate) mod page;
mod sql;
mod wording;

pub use self::sql::{
    acceptance::{
        CountedBy, CountedOnly, CountedRules, Outcomes, RuleOutcomes, Sales, SuggestedArticle, day_of,
    },
    events::{Attribution, Bought, Event, EventKind, EventRecorded, Events, Purchase, StoredEvent},
    feedback::{Feedback, FeedbackCounts, FeedbackEvent, FeedbackKind, Recorded, RefusalReason},
};
