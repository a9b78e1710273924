//! Rights of keys, which every route names.

use atelier_core::named;

named! {
    "a scope is complete, catalogue, feedback, events, rules, admin or metrics"
    /// A right of a key. Scopes are independent: none includes another.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Scope {
        Complete = "complete",
        Catalogue = "catalogue",
        Feedback = "feedback",
        Events = "events",
        Rules = "rules",
        Admin = "admin",
        Metrics = "metrics",
    }
}

impl Scope {
    pub fn opens(self) -> &'static str {
        match self {
            Self::Complete => "completions, comparisons, scores and the list of methods",
            Self::Catalogue => "reading and changing articles, customers and outfits",
            Self::Feedback => "sending feedback and reading its counts",
            Self::Events => "sending events",
            Self::Rules => "reading and changing rules and looks, and completions without rules",
            Self::Admin => "activating releases and setting the routing",
            Self::Metrics => "reading /metrics",
        }
    }
}
