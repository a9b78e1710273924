//! The outfit as it lies on the table, and looking for an article to put there by hand.

use super::View;
use crate::{
    domain::{ArticleId, Features},
    service::{
        completion::{self, Request},
        live_release::LiveRelease,
    },
    web::{
        http::{AppState, Problem},
        pages::{
            article_view::{self, ArticleView},
            profile::spaced,
        },
    },
};

/// Articles that are shown of those that were found.
const FOUND: u32 = 12;

pub(super) struct Board {
    pub(super) slots: Vec<SlotView>,
    /// Of what lies there, where each has a price.
    pub(super) total: Option<String>,
    /// The types that a blank may be given.
    pub(super) types: Vec<(String, String)>,
    /// One more blank, while there is room.
    pub(super) more: Option<String>,
}

pub(super) struct SlotView {
    pub(super) place: usize,
    /// None is a blank.
    pub(super) article: Option<ArticleView>,
    /// A blank's only type in words.
    pub(super) kind: Option<String>,
    pub(super) blanked: String,
    pub(super) without: String,
    pub(super) pick: String,
    /// Where the article stands among those of its type, once the whole outfit was judged.
    pub(super) placement: Option<String>,
    pub(super) weakest: bool,
}

pub(super) async fn board(
    state: &AppState,
    view: &View,
    live: Option<&LiveRelease>,
) -> Result<Board, Problem> {
    let ids: Vec<ArticleId> = view.slots.iter().flatten().cloned().collect();
    let kinds: Vec<(ArticleId, String, Option<f64>)> = state
        .store
        .articles()
        .get_many(&ids)
        .await?
        .into_iter()
        .map(|article| (article.id.clone(), article.kind().to_owned(), article.price()))
        .collect();
    let mut articles = article_view::of(state, &ids).await?.into_iter();
    let slot = |(place, id): (usize, &Option<ArticleId>)| {
        let kind = id.as_ref().and_then(|id| kinds.iter().find(|(of, ..)| of == id)).map(|(_, kind, _)| kind);
        SlotView {
            place,
            article: id.as_ref().and_then(|_| articles.next()),
            kind: view.types.get(&place).map(|kind| spaced(kind)),
            blanked: view.blanked(place, kind.map(String::as_str)).href(),
            without: view.without(place).href(),
            pick: view.with(|view| view.pick = Some(place)).href(),
            placement: None,
            weakest: false,
        }
    };
    let slots = view.slots.iter().enumerate().map(slot).collect();
    let prices: Option<Vec<f64>> = kinds.iter().map(|(_, _, price)| *price).collect();
    let total = prices.filter(|prices| !prices.is_empty()).map(|prices| prices.iter().sum::<f64>());
    let types = live.map(|live| live.catalogue.types()).unwrap_or_default();
    let room = view.slots.len() < crate::domain::MAX_SLOTS;
    Ok(Board {
        slots,
        total: total.map(|total| format!("{total:.2}")),
        types: types.into_iter().map(|kind| (kind.to_owned(), spaced(kind))).collect(),
        more: room.then(|| view.grown().href()),
    })
}

impl Board {
    /// Nothing is blank, and there is enough to be an outfit.
    pub(super) fn is_whole(&self) -> bool {
        self.slots.len() >= crate::domain::MIN_ARTICLES
            && self.slots.iter().all(|slot| slot.article.is_some())
    }

    /// Says of each article how well it goes with the others, for this customer.
    pub(super) async fn judge(
        &mut self,
        state: &AppState,
        live: &LiveRelease,
        view: &View,
        stored: Features,
    ) -> Result<(), Problem> {
        let (stored, given) = super::context(view, stored, live.serving.release().schema(), true);
        let method = super::method(view, live).method;
        let request = Request { stored, given, ..Request::new(view.slots.clone(), method) };
        let score = match completion::score(live.served(), &request, state.deadline()).await {
            Ok(score) => score,
            // An outfit of articles that the release does not know is shown all the same.
            Err(completion::CompletionError::Faults(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for article in &score.articles {
            let kind = spaced(article.article.kind());
            let slot = &mut self.slots[article.slot];
            slot.placement = Some(format!("{} of {} ({kind})", article.rank, article.of_type));
            slot.weakest = article.slot == score.weakest;
        }
        Ok(())
    }
}

/// Looking for an article for a slot.
pub(super) struct Pick {
    pub(super) slot: usize,
    pub(super) found: Vec<(ArticleView, String)>,
    pub(super) close: String,
}

pub(super) async fn pick(state: &AppState, view: &View) -> Result<Option<Pick>, Problem> {
    let Some(slot) = view.pick.filter(|slot| *slot < view.slots.len()) else { return Ok(None) };
    let found = state.store.articles().list(&view.search, None, FOUND).await?;
    let there = |id: &ArticleId| view.slots.iter().flatten().any(|other| other == id);
    let found = found.iter().filter(|article| !there(&article.id));
    Ok(Some(Pick {
        slot,
        found: found.map(|one| (ArticleView::new(one), view.filled(slot, &one.id).href())).collect(),
        close: view.with(|view| (view.pick, view.search) = (None, String::new())).href(),
    }))
}
