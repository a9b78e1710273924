//! The catalogue for a slot: all articles that pass the page's filters, or those that a search finds, in the model's order
//! for this customer.

use super::{View, board::mark};
use crate::{
    domain::{Article, ArticleId, Features, Method},
    service::{
        asking, completion::Request, fault::ServiceError, live_release::LiveRelease, search, similar::similar,
    },
    web::{
        http::{AppState, Problem},
        pages::{article_view::ArticleView, fault, figures::count, pager::Pager, profile::spaced},
    },
};

/// Articles on a page.
const ON_A_PAGE: usize = 24;
/// The longest list that a model ranks.
const MOST_RANKED: usize = 250;
/// The most values of an attribute to choose from.
const MOST_VALUES: usize = 80;

pub(super) struct Pick {
    pub(super) slot: usize,
    pub(super) found: Vec<(ArticleView, String)>,
    pub(super) pager: Pager,
    /// What the articles are similar to.
    pub(super) like: Option<String>,
    /// The hidden fields of the form.
    pub(super) hidden: Vec<(String, String)>,
    pub(super) facets: Vec<Facet>,
    /// Why some of what was found is not here.
    pub(super) left_out: Option<String>,
    pub(super) close: String,
}

/// An attribute, to choose one of its values.
pub(super) struct Facet {
    /// The name of its field.
    pub(super) field: String,
    pub(super) label: String,
    /// Each with its words, and whether it is chosen.
    pub(super) values: Vec<(String, String, bool)>,
}

/// None if the address names no slot to search for.
pub(super) async fn pick(
    state: &AppState,
    view: &View,
    live: Option<&LiveRelease>,
    profile: &Features,
) -> Result<Option<Pick>, Problem> {
    let Some(slot) = view.pick.filter(|slot| *slot < view.slots.len()) else { return Ok(None) };
    let words = view.search.trim();
    let example = view.similar.as_ref().zip(live).and_then(|(id, live)| {
        let place = live.catalogue.place_of(id.as_str())?;
        Some(live.catalogue.any_article(place)?.unpack())
    });
    let is_search = !words.is_empty();
    let found = if is_search || live.is_none() {
        search::articles(&state.store, words).await?
    } else {
        search::Found::default()
    };
    let in_outfit = |id: &ArticleId| view.slots.iter().flatten().any(|other| other == id);
    let mut articles: Vec<Article> =
        found.rows.into_iter().filter(|article| !in_outfit(&article.id)).collect();
    let mut left_out = None;
    let mut is_cut = found.is_cut;
    if let Some(live) = live {
        let found: Option<Vec<ArticleId>> =
            is_search.then(|| articles.iter().map(|article| article.id.clone()).collect());
        let similar = example.as_ref().map(|article| similar(&live.catalogue, article, MOST_RANKED));
        let only = match (&similar, found) {
            (Some(similar), Some(found)) => Some(both(similar, &found)),
            (similar, found) => found.or_else(|| similar.clone()),
        };
        let matching = articles.len();
        articles = Vec::new();
        match ranked(state, live, view, profile, slot, only).await {
            Ok((mut ranked, admissible)) => {
                if let Some(similar) = &similar {
                    ranked.sort_by_key(|article| similar.iter().position(|id| *id == article.id));
                } else if is_search && matching > admissible {
                    let others = count((matching - admissible) as u64);
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
            .map(|article| {
                (
                    mark(ArticleView::new(article, &state.notation), live),
                    view.filled(slot, &article.id).href(),
                )
            })
            .collect(),
        pager,
        like: example.map(|article| ArticleView::without_price(&article).name),
        hidden: hidden(view, slot),
        facets: live.map(|live| facets(live, view, slot)).unwrap_or_default(),
        left_out,
        close: view.with(View::close_pick).href(),
    }))
}

fn both(some: &[ArticleId], others: &[ArticleId]) -> Vec<ArticleId> {
    some.iter().filter(|id| others.contains(id)).cloned().collect()
}

/// Everything that the form has no field for.
fn hidden(view: &View, slot: usize) -> Vec<(String, String)> {
    let mut pairs = view.besides(&["search", "page", "price_min", "price_max"]);
    let own_type = format!("{slot}:");
    pairs
        .retain(|(name, value)| !(name.starts_with("by.") || name == "type" && value.starts_with(&own_type)));
    pairs
}

/// The type of the slot, then the attributes by which the schema excludes or requires articles.
fn facets(live: &LiveRelease, view: &View, slot: usize) -> Vec<Facet> {
    let chosen = view.types.get(&slot);
    let types =
        live.catalogue.types().into_iter().map(|kind| {
            (format!("{slot}:{kind}"), spaced(kind), chosen.is_some_and(|chosen| chosen == kind))
        });
    let types = Facet { field: "type".to_owned(), label: "Type".to_owned(), values: types.collect() };
    let others = live.catalogue.facets().into_iter().filter(|(_, values)| values.len() <= MOST_VALUES);
    let others = others.map(|(attribute, values)| {
        let chosen = view.by.get(attribute);
        let value =
            |value: &str| (value.to_owned(), spaced(value), chosen.is_some_and(|chosen| chosen == value));
        let values = values.into_iter().map(value).collect();
        Facet { field: format!("by.{attribute}"), label: spaced(attribute), values }
    });
    [types].into_iter().chain(others).collect()
}

/// The best articles for the slot, then those that the method cannot rank, and how many pass the filters.
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
    filters.words.clone_from(&view.by);
    let request = Request { k: MOST_RANKED, filters, ..Request::new(outfit, Method::None) };
    let schema = live.serving.release().schema();
    let question = super::question(view, profile.clone(), schema, true, request);
    let (profiles, times) = (&state.profiles, state.times());
    let (unranked, admissible) = asking::unranked(live, profiles, question.clone(), times).await?;
    let mut articles: Vec<Article> = Vec::new();
    // A method may refuse a type of which it can rank nothing.
    if unranked.len() < admissible {
        let (_, completion) = asking::complete_outfit(live, profiles, question, times).await?;
        let found = completion.blanks.iter().flat_map(|blank| &blank.suggestions);
        articles.extend(found.map(|suggestion| suggestion.article.unpack()));
    }
    let room = MOST_RANKED - articles.len();
    articles.extend(unranked.iter().take(room).map(|article| article.unpack()));
    Ok((articles, admissible))
}
