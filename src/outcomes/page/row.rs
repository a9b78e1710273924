//! Outcomes as a row of a table.

use atelier_core::util::notation::Notation;

use crate::outcomes::{
    Outcomes, Sales,
    acceptance::{Share, revenue_in_words, share},
};

pub(super) struct OutcomesRow {
    pub(super) name: String,
    /// Shown, accepted, rejected, bought.
    pub(super) counts: [String; 4],
    /// Returned, kept, revenue.
    pub(super) then: [String; 3],
    /// Without a ticket: bought, returned, kept, revenue.
    pub(super) in_window: [String; 4],
    pub(super) acceptance: String,
}

impl OutcomesRow {
    pub(super) fn new(name: &str, outcomes: Outcomes, notation: &Notation) -> Self {
        let Outcomes { shown, accepted, rejected, sold, in_window } = outcomes;
        let count = |count: u64| notation.count(count);
        let then = |sales: Sales| {
            let revenue = revenue_in_words(sales.revenue, sales.kept > 0, notation);
            [count(sales.returned), count(sales.kept), revenue]
        };
        let [returned, kept, revenue] = then(in_window);
        Self {
            name: name.to_owned(),
            counts: [shown, accepted, rejected, sold.bought].map(count),
            then: then(sold),
            in_window: [count(in_window.bought), returned, kept, revenue],
            acceptance: share(accepted, shown).map_or_else(|| "–".to_owned(), Share::in_words),
        }
    }
}
