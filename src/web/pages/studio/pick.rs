//! The catalogue for a slot: all articles that pass the page's filters, or those that a search finds, in the model's order
//! for this customer.

use super::{View, board::mark};
use crate::{
    domain::{Article, ArticleId, Features, Method},
    service::{asking, completion::Request, fault::ServiceError, live_release::LiveRelease, search},
    web::{
        http::{AppState, Problem},
        pages::{article_view::ArticleView, fault, figures::count, pager::Pager},
    },
};

/// Articles on a page.
const ON_A_PAGE: usize = 24;
/// The longest list that a model ranks.
const MOST_RANKED: usize = 250;

pub(super) struct Pick {
    pub(super) slot: usize,
    pub(super) found: Vec<(ArticleView, String)>,
    pub(super) pager: Pager,
    /// Why some of what was found is not here.
    pub(super) left_out: Option<String>,
    pub(super) close: String,
}

/// None if the address names no slot to search for.
pub(super) async fn pick(
    state: &AppState,
    view: &View,
    live: Option<&LiveRelease>,
    profile: &Features,
) -> Result<Option<Pick>, Problem> {
    let Some(slot) = view.pick.filter(|slot| *slot < view.slots.len()) else { return Ok(None) };
    let is_search = !view.search.trim().is_empty();
    let found = if is_search || live.is_none() {
        search::articles(&state.store, &view.search).await?
    } else {
        search::Found::default()
    };
    let in_outfit = |id: &ArticleId| view.slots.iter().flatten().any(|other| other == id);
    let mut articles: Vec<Article> =
        found.rows.into_iter().filter(|article| !in_outfit(&article.id)).collect();
    let mut left_out = None;
    let mut is_cut = found.is_cut;
    if let Some(live) = live {
        let only = is_search.then(|| articles.iter().map(|article| article.id.clone()).collect());
        match ranked(state, live, view, profile, slot, only).await {
            Ok((ranked, admissible)) => {
                if is_search && articles.len() > admissible {
                    let others = count((articles.len() - admissible) as u64);
                    left_out =
                        Some(format!("{others} more match the words, but not the filters or the customer."));
                }
                is_cut |= admissible > ranked.len();
                articles = ranked;
            }
            // What is wrong with a filter is said beside the suggestions.
            Err(ServiceError::Faults(faults)) => left_out = Some(fault::words(&faults)),
            Err(error) => return Err(fault::problem(error)),
        }
    }
    let pager = Pager::new(view.page, articles.len(), ON_A_PAGE, is_cut, |page| {
        view.with(|view| view.page = Some(page)).href()
    });
    let shown = articles.iter().skip(pager.first()).take(ON_A_PAGE);
    Ok(Some(Pick {
        slot,
        found: shown
            .map(|article| (mark(ArticleView::new(article), live), view.filled(slot, &article.id).href()))
            .collect(),
        pager,
        left_out,
        close: view.with(View::close_pick).href(),
    }))
}

/// The best articles for the slot, and how many pass the filters. What the method cannot rank is left out.
async fn ranked(
    state: &AppState,
    live: &LiveRelease,
    view: &View,
    profile: &Features,
    slot: usize,
    only: Option<Vec<ArticleId>>,
) -> Result<(Vec<Article>, usize), ServiceError> {
    // The other blanks are left out: only this slot is being filled.
    let mut outfit: Vec<Option<ArticleId>> = Vec::new();
    let mut place = 0;
    for (other, article) in view.slots.iter().enumerate() {
        if other == slot {
            place = outfit.len();
            outfit.push(None);
        } else if article.is_some() {
            outfit.push(article.clone());
        }
    }
    let mut filters = view.filters();
    let kind = view.types.get(&slot).cloned();
    filters.types = kind.into_iter().map(|kind| (place, vec![kind])).collect();
    filters.only = only;
    let request = Request { k: MOST_RANKED, filters, ..Request::new(outfit, Method::None) };
    let schema = live.serving.release().schema();
    let question = super::question(view, profile.clone(), schema, true, request);
    let (_, completion) = asking::complete_outfit(live, &state.profiles, question, state.times()).await?;
    let blank = completion.blanks.into_iter().next();
    let blank = blank.expect("the outfit has a blank; this is a bug");
    let articles = blank.suggestions.iter().map(|suggestion| suggestion.article.unpack()).collect();
    Ok((articles, blank.admissible))
}
