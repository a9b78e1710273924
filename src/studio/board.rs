//! The outfit on the board.

use std::collections::BTreeMap;

use atelier_core::domain::{Article, ArticleId};

use super::{View, suggest::variant};
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    completion::{ArticleScore, Request, Stored, asking::score_outfit},
    platform::page::wording::{plural, spaced},
    platform::{
        fault::ServiceError,
        http::{AppState, Problem},
        page::{Address, fault},
    },
    releases::{LiveRelease, routing::Route},
};

/// Ranks up to this one are good, however much more likely the first is.
const GOOD: usize = 5;

pub(super) struct Board {
    pub(super) slots: Vec<SlotView>,
    /// The articles that are in the catalogue.
    pub(super) articles: Vec<Article>,
    /// The sum of the prices, if every article has one.
    pub(super) total: Option<String>,
    /// The total budget, if the articles cost more.
    pub(super) over: Option<String>,
    /// The types to choose from for a blank.
    pub(super) types: Vec<(String, String)>,
}

pub(super) struct SlotView {
    pub(super) index: usize,
    /// None for a blank.
    pub(super) article: Option<ArticleView>,
    /// The only type that the blank takes, or that of the best idea.
    pub(super) kind: Option<String>,
    /// With suggestions for the slot: alternatives to its article, or articles for the blank.
    pub(super) asked: String,
    /// The article's placement among those of its type, once the outfit is scored.
    pub(super) placement: Option<String>,
    /// The variant in the customer's size, or whether it is in stock, of a whole outfit.
    pub(super) order: Option<String>,
    /// Whether many of its type go clearly better with the rest.
    pub(super) is_weak: bool,
}

pub(super) async fn board(
    state: &AppState,
    view: &View,
    live: Option<&LiveRelease>,
) -> Result<Board, Problem> {
    let ids: Vec<ArticleId> = view.slots.iter().flatten().cloned().collect();
    let stored = state.store.articles().get_many(&ids).await?;
    let mut articles = article_view::views(&ids, &stored, &state.notation).into_iter();
    let slot = |(index, id): (usize, &Option<ArticleId>)| {
        let kind = id.as_ref().and_then(|id| stored.iter().find(|article| article.id == *id));
        let kind = kind.map(Article::kind);
        SlotView {
            index,
            article: id.as_ref().and_then(|_| articles.next()).map(|article| mark(article, live)),
            kind: view.types.get(&index).map(|kind| spaced(kind)),
            asked: match id {
                Some(_) => view.undoable(view.blanked(index, kind)),
                None => view.asking(index, &BTreeMap::new()).href(),
            },
            placement: None,
            order: None,
            is_weak: false,
        }
    };
    let slots = view.slots.iter().enumerate().map(slot).collect();
    let types = live.map(|live| live.catalogue.sets().types()).unwrap_or_default();
    let cost = article_view::cost(&stored, &state.notation);
    let over = view.filter.most_total.filter(|most| cost > *most);
    Ok(Board {
        slots,
        total: article_view::total(&stored, &state.notation).filter(|_| stored.len() == ids.len()),
        over: over.map(|most| state.notation.price(most, None)),
        articles: stored,
        types: types.into_iter().map(|kind| (kind.to_owned(), spaced(kind))).collect(),
    })
}

impl Board {
    /// Blanks without a type are of the best idea's: they say so, and ask for it.
    pub(super) fn type_blanks(&mut self, view: &View, kinds: &BTreeMap<usize, String>) {
        for (slot, kind) in kinds {
            let slot = &mut self.slots[*slot];
            slot.kind.get_or_insert_with(|| spaced(kind));
            slot.asked = view.asking(slot.index, kinds).href();
        }
    }

    /// Adds the variant of each article for this customer, and its placement among those of its type that the filters admit.
    pub(super) async fn score(
        &mut self,
        state: &AppState,
        route: &Route,
        view: &View,
        stored: &Stored,
    ) -> Result<(), Problem> {
        for slot in &mut self.slots {
            let Some(article) = &slot.article else { continue };
            slot.order = variant(&route.live, &stored.features, &article.id)
                .or_else(|| article.in_stock.then(|| "In stock".to_owned()));
        }
        let schema = route.live.serving.release().schema();
        let request = Request { filters: view.filters(), ..Request::routed(view.slots.clone(), route) };
        let request = super::question(view, stored, schema, true, request);
        let score = match score_outfit(route, state.profiles(), request, state.times()).await {
            Ok(score) => score,
            // An outfit with articles outside the release is shown without placements.
            Err(ServiceError::Faults(_)) => return Ok(()),
            Err(error) => return Err(fault::problem(error)),
        };
        for article in &score.articles {
            let kind = spaced(article.article.kind());
            let kinds = if article.of_type == 1 { kind } else { plural(&kind) };
            let slot = &mut self.slots[article.slot];
            let count = |number: usize| state.notation.count(number as u64);
            slot.placement =
                Some(format!("Rank {} of {} {kinds}", count(article.rank), count(article.of_type)));
            slot.is_weak = is_weak(article);
        }
        Ok(())
    }
}

/// Not among the first of its type, and less than half as likely as the mean of them.
fn is_weak(ArticleScore { rank, share, of_type, .. }: &ArticleScore) -> bool {
    let mean = 1.0 / f64::from(u32::try_from(*of_type).unwrap_or(u32::MAX));
    *rank > GOOD && *share < mean / 2.0
}

pub(super) fn mark(article: ArticleView, live: Option<&LiveRelease>) -> ArticleView {
    match live {
        Some(live) => article.marked(live),
        None => article,
    }
}
