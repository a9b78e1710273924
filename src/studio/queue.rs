//! A stylist's queue: customers' replies, their drafts, and the customers who are next.

use atelier_core::domain::{CustomerId, Schema};

use super::saved::{self, OutfitCard};
use crate::{
    customers::page::CustomerView,
    outfits::SavedFilter,
    people::PersonId,
    platform::http::{AppState, Problem},
};

const DRAFTS: u32 = 4;
const CUSTOMERS: u32 = 6;

pub(super) struct Queue {
    /// The stylist's own, the latest first.
    pub(super) drafts: Vec<OutfitCard>,
    /// Outfits whose customers answered.
    pub(super) replied: Vec<OutfitCard>,
    /// How many there are.
    pub(super) replies: u64,
    /// How many drafts they have.
    pub(super) count: u64,
    /// Customers who refused suggestions since their last outfit; each with why they are next.
    pub(super) refused: Vec<(CustomerView, String)>,
    /// Customers whose last outfit is the oldest.
    pub(super) longest: Vec<(CustomerView, String)>,
    /// Customers without a saved outfit, the newest first.
    pub(super) never: Vec<(CustomerView, String)>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
            && self.replied.is_empty()
            && [&self.refused, &self.longest, &self.never].iter().all(|waiting| waiting.is_empty())
    }
}

pub(super) async fn queue(state: &AppState, person: PersonId, schema: &Schema) -> Result<Queue, Problem> {
    let saved = state.store.saved_outfits();
    let mine = SavedFilter { only_drafts: true, by: Some(person), ..SavedFilter::default() };
    let (drafts, count) = saved.list(&mine, 0, DRAFTS).await?;
    let answered = SavedFilter { only_replied: true, ..SavedFilter::default() };
    let (answers, replies) = saved.list(&answered, 0, DRAFTS).await?;
    let refused = state.store.feedback().refused_since_last_outfit(CUSTOMERS).await?;
    let refused = refused.into_iter().map(|(id, count)| {
        let suggestions = if count == 1 { "suggestion" } else { "suggestions" };
        (id, format!("{count} {suggestions} refused since their last outfit"))
    });
    let longest = saved.longest_ago(CUSTOMERS).await?;
    let longest =
        longest.into_iter().map(|(id, at)| (id, format!("last outfit {}", state.notation.day(at.millis()))));
    let never = saved.never(CUSTOMERS).await?;
    let never = never.into_iter().map(|(id, at)| (id, format!("added {}", state.notation.day(at.millis()))));
    Ok(Queue {
        drafts: saved::cards(state, drafts, schema).await?,
        replied: saved::cards(state, answers, schema).await?,
        replies,
        count,
        refused: waiting(state, refused.collect(), schema).await?,
        longest: waiting(state, longest.collect(), schema).await?,
        never: waiting(state, never.collect(), schema).await?,
    })
}

async fn waiting(
    state: &AppState,
    found: Vec<(CustomerId, String)>,
    schema: &Schema,
) -> Result<Vec<(CustomerView, String)>, Problem> {
    let ids: Vec<CustomerId> = found.iter().map(|(id, _)| id.clone()).collect();
    let customers = state.store.customers().get_many(&ids).await?;
    let one = |(id, why): (CustomerId, String)| {
        let customer = customers.iter().find(|customer| customer.id == id)?;
        Some((CustomerView::new(customer, schema), why))
    };
    Ok(found.into_iter().filter_map(one).collect())
}
