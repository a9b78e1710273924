//! Outcomes of suggestions: feedback, events, acceptance, and how often new articles were suggested.

pub mod acceptance;
pub(crate) mod api;
pub mod events;
pub mod exposure;
pub mod feedback;
mod kind;
mod ledger;
pub(crate) mod page;
mod sql;

pub use self::{
    kind::{FeedbackKind, Source},
    sql::{
        acceptance::{CountedBy, CountedOnly, Outcomes, RuleOutcomes, Sales, SuggestedArticle, day_of},
        arms::ArmCounts,
        events::{Attribution, Bought, Event, EventRecorded, Events, Purchase, StoredEvent},
        feedback::{Feedback, FeedbackCounts, FeedbackEvent, Recorded, RefusalReason},
    },
};
