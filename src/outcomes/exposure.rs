//! Counts how often new articles are suggested, and the outcomes, next to articles that the release was trained with. The
//! counts belong to this process and cost no query.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{
    FeedbackKind,
    sql::{events::EventRecorded, feedback::Recorded},
};
use crate::{
    completion::{Completion, asking::Observer},
    releases::{followers::Follower, routing::Route},
};

/// Counters with a value for each of some labels.
type Counters<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Counter>;

#[derive(Debug, Default)]
pub struct Exposure {
    suggestions: Counters<1>,
    events: Counters<2>,
    shop_events: Counters<2>,
    unknown_articles: Counter,
}

impl Follower for Exposure {}

impl Observer for Exposure {
    fn answered(&self, route: &Route, _: Duration, answer: Option<&Completion>) {
        let suggestions =
            answer.iter().flat_map(|answer| &answer.blanks).flat_map(|blank| &blank.suggestions);
        let (mut known, mut new) = (0, 0);
        for suggestion in suggestions {
            *(if route.live.catalogue.is_new(suggestion.index) { &mut new } else { &mut known }) += 1;
        }
        self.add_suggestions(false, known);
        self.add_suggestions(true, new);
    }
}

impl Exposure {
    pub fn register(&self, registry: &mut Registry) {
        // Starting at zero, so that the first one shows as an increase.
        for is_new in [false, true] {
            self.add_suggestions(is_new, 0);
            for kind in FeedbackKind::ALL {
                self.add_event(kind, is_new, 0);
            }
        }
        for kind in FeedbackKind::ALL {
            self.add_shop_events(kind.shop_word(), "recorded", 0);
        }
        self.add_refused(0);
        registry.register(
            "suggestions",
            "Suggestions in answers, of articles that the release was trained with (known) and of others (new)",
            self.suggestions.clone(),
        );
        registry.register(
            "feedback_events",
            "Recorded events about suggestions of the live release, by the kind of article",
            self.events.clone(),
        );
        registry.register(
            "events",
            "Events of customers and visitors, by kind and result (recorded, known or refused)",
            self.shop_events.clone(),
        );
        registry.register(
            "events_unknown_article",
            "Recorded events of articles that the catalogue does not have",
            self.unknown_articles.clone(),
        );
    }

    pub(crate) fn add_shop_event(&self, kind: FeedbackKind, recorded: EventRecorded) {
        let result = if recorded.recorded == Recorded::Now { "recorded" } else { "known" };
        self.add_shop_events(kind.shop_word(), result, 1);
    }

    pub(crate) fn add_refused(&self, count: usize) {
        self.add_shop_events("", "refused", count as u64);
    }

    pub(crate) fn add_unknown_articles(&self, count: usize) {
        self.unknown_articles.inc_by(count as u64);
    }

    /// How many recorded events were of articles that the catalogue does not have.
    pub(crate) fn count_unknown_articles(&self) -> u64 {
        self.unknown_articles.get()
    }

    /// The kind is empty in refused events, which may have none.
    fn add_shop_events(&self, kind: &'static str, result: &'static str, count: u64) {
        self.shop_events.get_or_create(&[("kind", kind), ("result", result)]).inc_by(count);
    }

    fn add_suggestions(&self, is_new: bool, count: u64) {
        self.suggestions.get_or_create(&[("article", label(is_new))]).inc_by(count);
    }

    pub(crate) fn add_event(&self, kind: FeedbackKind, is_new: bool, count: u64) {
        self.events.get_or_create(&[("event", kind.as_str()), ("article", label(is_new))]).inc_by(count);
    }
}

fn label(is_new: bool) -> &'static str {
    if is_new { "new" } else { "known" }
}
