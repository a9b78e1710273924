//! The catalogue for a slot: all articles that pass the page's filters, or those that a search finds, in the model's order
//! for this customer.

use std::collections::HashMap;

use atelier_core::domain::{Article, ArticleId, FeatureValue, Features, Timestamp};
use atelier_engine::catalogue::NoGos;

use super::{View, board::mark};
use crate::{
    catalogue::{page::article_view::ArticleView, search},
    completion::{Request, Stored, asking, similar::similar},
    platform::page::wording::spaced,
    platform::{
        fault::ServiceError,
        http::{AppState, Problem},
        page::{Address, Pager, fault},
    },
    releases::{LiveRelease, routing::Route},
};

const ON_A_PAGE: usize = 24;
/// The most values of an attribute to choose from.
const MOST_VALUES: usize = 80;

pub(super) struct Pick {
    pub(super) slot: usize,
    pub(super) found: Vec<(ArticleView, String)>,
    pub(super) pager: Pager,
    /// The article that the others are similar to.
    pub(super) like: Option<String>,
    /// The problem of a filter.
    pub(super) fault: Option<String>,
    /// Why some of what was found is not here.
    pub(super) hidden_by: Vec<Hiding>,
}

/// The filters that hide articles with the words of the search.
pub(super) struct Hiding {
    /// `12 as no-gos (leather)`
    pub(super) words: String,
    /// The label and the address of a link that includes them.
    pub(super) include: Option<(String, String)>,
}

/// An attribute, to choose one of its values.
pub(super) struct Facet {
    pub(super) field: String,
    pub(super) label: String,
    /// Each with its words, and whether it is chosen.
    pub(super) values: Vec<(String, String, bool)>,
}

/// A page of a list.
#[derive(Default)]
struct Listed {
    on_page: Vec<Article>,
    length: usize,
    is_cut: bool,
}

/// None if the address names no slot to search for.
pub(super) async fn pick(
    state: &AppState,
    view: &View,
    route: Option<&Route>,
    stored: &Stored,
) -> Result<Option<Pick>, Problem> {
    let Some(slot) = view.pick.slot.filter(|slot| *slot < view.slots.len()) else { return Ok(None) };
    let words = view.pick.search.trim();
    let live = route.map(|route| &*route.live);
    let example = view.pick.similar.as_ref().zip(live).and_then(|(id, live)| {
        let index = live.catalogue.position_of(id.as_str())?;
        Some(live.catalogue.any_article(index)?.unpack())
    });
    let is_search = !words.is_empty();
    let types = live.map(|live| live.catalogue.sets().types()).unwrap_or_default();
    let found = if is_search || live.is_none() {
        search::articles(&state.store, state.synonyms(), words, &types).await?
    } else {
        search::Found { rows: Vec::new(), count: 0, is_cut: false }
    };
    let in_outfit = |id: &ArticleId| view.slots.iter().flatten().any(|other| other == id);
    let mut found_articles = found.rows;
    found_articles.retain(|article| !in_outfit(&article.id));
    let (mut fault, mut hidden_by) = (None, Vec::new());
    let listed = if let Some(route) = route {
        let similar = example.as_ref().map(|article| {
            let found = similar(&route.live, article).into_iter();
            let ids = found.filter_map(|(at, _)| Some(route.live.catalogue.article(at)?.id.clone()));
            ids.collect::<Vec<ArticleId>>()
        });
        let found_ids = is_search.then(|| found_articles.into_iter().map(|article| article.id));
        let found_ids: Option<Vec<ArticleId>> = found_ids.map(Iterator::collect);
        let matching = found_ids.as_ref().map_or(0, Vec::len);
        match ranked(state, route, view, stored, slot, (similar.as_deref(), found_ids.clone())).await {
            Ok(listed) => {
                if let Some(ids) = found_ids.filter(|_| similar.is_none() && matching > listed.length) {
                    hidden_by = hiding(state, route, view, stored, slot, (&ids, listed.length)).await?;
                }
                Listed { is_cut: found.is_cut, ..listed }
            }
            // Problems of a filter are shown with the suggestions.
            Err(ServiceError::Faults(faults)) => {
                fault = Some(fault::words(&faults));
                Listed::default()
            }
            Err(error) => return Err(fault::problem(error)),
        }
    } else {
        let length = found_articles.len();
        let on_page = found_articles.into_iter().skip(first_on_page(view, length)).take(ON_A_PAGE);
        Listed { on_page: on_page.collect(), length, is_cut: found.is_cut }
    };
    let pager = Pager::new(view.page, listed.length, ON_A_PAGE, listed.is_cut, &state.notation, |page| {
        view.with(|view| view.page = Some(page)).href()
    });
    let found = listed.on_page.iter().map(|article| {
        let shown = mark(ArticleView::new(article, &state.notation), live);
        (shown, view.undoable(view.filled(slot, &article.id)))
    });
    Ok(Some(Pick {
        slot,
        found: found.collect(),
        pager,
        like: example.map(|article| ArticleView::without_price(&article).name),
        fault,
        hidden_by,
    }))
}

/// How many articles come before the page. A page past the end is the last.
fn first_on_page(view: &View, length: usize) -> usize {
    let last = length.saturating_sub(1) / ON_A_PAGE;
    view.page.unwrap_or(1).saturating_sub(1).min(last) * ON_A_PAGE
}

/// The brand, and the attributes by which the schema excludes or requires articles.
pub(super) fn facets(live: &LiveRelease, view: &View) -> Vec<Facet> {
    let facets = live.catalogue.sets().facets().into_iter();
    let facet = |(attribute, values): (&str, Vec<&str>)| {
        let chosen = view.filter.words.get(attribute);
        let value =
            |value: &str| (value.to_owned(), spaced(value), chosen.is_some_and(|chosen| chosen == value));
        let values = values.into_iter().map(value).collect();
        Facet { field: format!("by.{attribute}"), label: spaced(attribute), values }
    };
    facets.filter(|(_, values)| values.len() <= MOST_VALUES).map(facet).collect()
}

/// Which filters hide articles that were found: each that hides some by itself, and all together. The filters admit `shown` of the
/// articles.
async fn hiding(
    state: &AppState,
    route: &Route,
    view: &View,
    stored: &Stored,
    slot: usize,
    (ids, shown): (&[ArticleId], usize),
) -> Result<Vec<Hiding>, Problem> {
    type Relax = fn(&mut View, usize);
    let filters: [(&str, &str, Relax); 8] = [
        ("as no-gos", "Include no-gos and owned pieces", |view, _| view.filter.no_gos = true),
        ("that don’t fit", "Include what doesn’t fit", |view, _| view.filter.unfit = true),
        ("out of stock", "Include what is out of stock", |view, _| view.filter.sold_out = true),
        ("in other stores", "Search all stores", |view, _| view.filter.store = None),
        ("at other prices", "Search all prices", |view, _| {
            (view.filter.least_price, view.filter.most_price) = (None, None);
        }),
        ("over the budget", "Ignore the budget", |view, _| view.filter.most_total = None),
        ("of other types", "Search all types", |view, slot| drop(view.types.remove(&slot))),
        ("without the chosen values", "Search all values", |view, _| view.filter.words.clear()),
    ];
    let now = state.now();
    let count = async |view: &View, rules: Option<Timestamp>| {
        let request = listing(route, view, stored, slot, (Some(ids.to_vec()), rules));
        match asking::unranked(route, state.profiles(), request, state.times()).await {
            Ok((_, length)) => Ok(length),
            Err(ServiceError::Faults(_)) => Ok(shown),
            Err(error) => Err(fault::problem(error)),
        }
    };
    let words = |hidden: usize, why: &str| format!("{} {why}", state.notation.count(hidden as u64));
    let (mut hiding, mut named) = (Vec::new(), 0);
    let mut all = view.with(|view| view.page = None);
    for (why, label, relax) in filters {
        let wider = view.with(|view| {
            view.page = None;
            relax(view, slot);
        });
        if wider.query() == view.with(|view| view.page = None).query() {
            continue;
        }
        relax(&mut all, slot);
        let hidden = count(&wider, Some(now)).await?.saturating_sub(shown);
        named += hidden;
        if hidden > 0 {
            let mut words = words(hidden, why);
            let no_gos =
                if why == "as no-gos" { no_gos_of(&route.live, view, stored, ids) } else { Vec::new() };
            if !no_gos.is_empty() {
                words = format!("{words} ({})", no_gos.join(", "));
            }
            hiding.push(Hiding { words, include: Some((label.to_owned(), wider.href())) });
        }
    }
    let others = count(&all, Some(now)).await?.saturating_sub(shown + named);
    if others > 0 {
        let words = words(others, "by several filters");
        hiding.push(Hiding { words, include: Some(("Include them".to_owned(), all.href())) });
    }
    let by_rules = count(view, None).await?.saturating_sub(shown);
    if by_rules > 0 {
        hiding.push(Hiding { words: words(by_rules, "by the shop’s rules"), include: None });
    }
    let refused = view.refused_articles().chain(&view.filter.exclude);
    let refused = refused.filter(|id| ids.contains(id)).count();
    if refused > 0 {
        hiding.push(Hiding { words: words(refused, "refused"), include: None });
    }
    Ok(hiding)
}

/// The customer's no-gos that some of these articles say, and whether they own some.
fn no_gos_of(live: &LiveRelease, view: &View, stored: &Stored, ids: &[ArticleId]) -> Vec<String> {
    let (sets, schema) = (live.catalogue.sets(), live.serving.release().schema());
    let profile = super::shown_features(view, stored, schema);
    let positions: Vec<u32> = ids.iter().filter_map(|id| live.catalogue.position_of(id.as_str())).collect();
    let mut found = Vec::new();
    for (name, value) in profile.iter() {
        for word in value.words() {
            let alone: Features =
                [(name.to_owned(), FeatureValue::Many(vec![word.clone()]))].into_iter().collect();
            let ruled_out = sets.ruled_out(&NoGos::new(schema, &alone, sets)).articles;
            if positions.iter().any(|position| ruled_out.contains(*position)) {
                found.push(spaced(word));
            }
        }
    }
    if stored.owned(live.served()).iter().any(|owned| positions.contains(owned)) {
        found.push("owned".to_owned());
    }
    found
}

/// The page of the list for the slot: the best articles first, then those that the method cannot rank; or, beside an example,
/// the most similar first. `found` are the only ones if words were searched for.
async fn ranked(
    state: &AppState,
    route: &Route,
    view: &View,
    stored: &Stored,
    slot: usize,
    (similar, found): (Option<&[ArticleId]>, Option<Vec<ArticleId>>),
) -> Result<Listed, ServiceError> {
    let likeness: Option<HashMap<&ArticleId, usize>> =
        similar.map(|similar| similar.iter().zip(0..).collect());
    let only = match (similar, found) {
        (Some(_), Some(mut found)) => {
            found.retain(|id| likeness.as_ref().is_some_and(|likeness| likeness.contains_key(id)));
            Some(found)
        }
        (Some(similar), None) => Some(similar.to_vec()),
        (None, found) => found,
    };
    let (profiles, times) = (state.profiles(), state.times());
    let mut request = listing(route, view, stored, slot, (only, Some(times.now)));
    let (unranked, length) = asking::unranked(route, profiles, request.clone(), times).await?;
    let known = length - unranked.len();
    let first = first_on_page(view, length);
    // Beside an example, the order is not the method's.
    let k = if similar.is_some() { known } else { known.min(first + ON_A_PAGE) };
    let (mut articles, mut skip) = (Vec::new(), first);
    // A method may refuse a type of which it can rank nothing.
    if k > 0 && (similar.is_some() || first < known) {
        (request.k, request.most) = (k, k);
        let completion = asking::complete_outfit(route, profiles, request, times).await?;
        let found = completion.blanks.into_iter().flat_map(|blank| blank.suggestions);
        articles.extend(found.map(|suggestion| suggestion.article));
    } else {
        // The page is past all that the method ranks.
        skip = first.saturating_sub(known);
    }
    articles.extend(unranked);
    if let Some(likeness) = &likeness {
        articles.sort_by_key(|article| likeness.get(&article.id).copied());
    }
    let on_page = articles.iter().skip(skip).take(ON_A_PAGE);
    Ok(Listed { on_page: on_page.map(|article| article.unpack()).collect(), length, is_cut: false })
}

/// The question that lists the articles for a slot.
fn listing(
    route: &Route,
    view: &View,
    stored: &Stored,
    slot: usize,
    (only, rules): (Option<Vec<ArticleId>>, Option<Timestamp>),
) -> Request {
    // The other blanks are left out: only this slot is being filled.
    let mut outfit: Vec<Option<ArticleId>> = Vec::new();
    let mut index = 0;
    for (other, article) in view.slots.iter().enumerate() {
        if other == slot {
            index = outfit.len();
            outfit.push(None);
        } else if article.is_some() {
            outfit.push(article.clone());
        }
    }
    let mut filters = view.filters();
    let kind = view.types.get(&slot).cloned();
    filters.types = kind.into_iter().map(|kind| (index, vec![kind])).collect();
    filters.only = only;
    let request = Request { filters, rules, ..Request::routed(outfit, route) };
    super::question(view, stored, route.live.serving.release().schema(), true, request)
}
