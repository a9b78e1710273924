//! `/side-by-side`: the same blank as several methods fill it, or one method for several customers.

mod columns;
mod csv;
mod links;
mod view;

use askama::Template;
use axum::{
    Router,
    extract::State,
    http::header,
    response::{Html, IntoResponse, Response},
    routing::get,
};

use self::{columns::Compared, view::View};
use super::{
    article_view::{self, ArticleView},
    profile,
    visitor::Analyst,
};
use crate::web::pages::shell::{Page, Shell};
use crate::{
    domain::{ArticleId, Features, Schema},
    service::{comparison::Comparison, live_release::LiveRelease},
    store::OutfitRecord,
    web::http::{AppState, Problem},
};

/// Outfits that are shown of a customer's.
const OUTFITS: u32 = 12;
/// Of so many of a customer's outfits, one that is asked about is found again.
const LOOKED_THROUGH: u32 = 1000;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/side-by-side", get(page)).route("/side-by-side.csv", get(download))
}

#[derive(Template)]
#[template(path = "side-by-side.html")]
struct SideBySidePage {
    shell: Shell,
    view: View,
    /// Ids as they are typed.
    customers: String,
    /// The first customer, and what they are in words.
    first: String,
    profile: String,
    outfits: Vec<OutfitView>,
    outfit: Vec<Option<ArticleView>>,
    truth: Option<ArticleView>,
    /// What belongs to the stored outfit, such as the occasion: models are told it too.
    own: String,
    methods: Vec<(&'static str, bool)>,
    types: Vec<(String, String)>,
    compared: Option<Compared>,
    /// Why there is nothing to compare.
    missing: Option<String>,
}

/// A stored outfit, each article of which can be taken out.
struct OutfitView {
    articles: Vec<(ArticleView, String)>,
    own: String,
}

async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    view: View,
) -> Result<Html<String>, Problem> {
    let live = state.releases.current();
    let schema = state.schema();
    let answer = ask(&state, live.as_deref(), &view).await?;
    let first = view.customers.first();
    let stored = match first {
        Some(id) => state.store.customers().get(id).await?,
        None => None,
    };
    let records = match first {
        Some(id) => state.store.outfits().of_customer(id, 0, OUTFITS).await?,
        None => Vec::new(),
    };
    let ids: Vec<ArticleId> = view.slots.iter().flatten().cloned().collect();
    let mut there = article_view::of(&state, &ids).await?.into_iter();
    let truth = match &view.truth {
        Some(id) => article_view::of(&state, std::slice::from_ref(id)).await?.pop(),
        None => None,
    };
    let has = |method| live.as_ref().is_some_and(|live| live.serving.has(method));
    let chosen = live.as_ref().map(|live| view.methods(has, live.choose(None).method)).unwrap_or_default();
    let all = live.as_ref().map(|live| live.serving.methods().collect::<Vec<_>>()).unwrap_or_default();
    let types = live.as_ref().map(|live| live.catalogue.types()).unwrap_or_default();
    let page = SideBySidePage {
        shell: visitor.shell(Page::SideBySide),
        customers: view.customers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        first: first.map(ToString::to_string).unwrap_or_default(),
        missing: match first {
            Some(id) if stored.is_none() => Some(format!("There is no customer {id}.")),
            _ => answer.is_none().then(|| missing(live.is_some(), &view)),
        },
        profile: stored.map(|customer| profile::line(&customer.features, &schema)).unwrap_or_default(),
        outfits: outfits(&state, &view, &records, &schema).await?,
        outfit: view.slots.iter().map(|slot| slot.as_ref().and_then(|_| there.next())).collect(),
        truth,
        own: answer.as_ref().map(|answer| profile::line(&answer.own, &schema)).unwrap_or_default(),
        methods: all.into_iter().map(|method| (method.as_str(), chosen.contains(&method))).collect(),
        types: types.into_iter().map(|kind| (kind.to_owned(), profile::spaced(kind))).collect(),
        compared: answer.map(|answer| Compared::new(&view, &answer.comparison)),
        view,
    };
    Ok(Html(page.render()?))
}

/// The same as a file.
async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    view: View,
) -> Result<Response, Problem> {
    let live = state.releases.current();
    let answer = ask(&state, live.as_deref(), &view).await?;
    let columns = answer.map(|answer| answer.comparison.columns).unwrap_or_default();
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"side-by-side.csv\""),
    ];
    Ok((headers, csv::write(&view, &columns)).into_response())
}

/// A comparison, and the features of the stored outfit that it is about.
struct Answer {
    comparison: Comparison,
    own: Features,
}

/// None where there is no release, or no blank yet.
async fn ask(state: &AppState, live: Option<&LiveRelease>, view: &View) -> Result<Option<Answer>, Problem> {
    let Some(live) = live.filter(|_| view.slots.iter().any(Option::is_none)) else { return Ok(None) };
    let own = own(state, view).await?;
    let comparison = columns::ask(state, live, view, &own).await?;
    Ok(Some(Answer { comparison, own }))
}

/// The features of the stored outfit that this one is, with the true article in its blank: what was known when the
/// stylist chose it.
async fn own(state: &AppState, view: &View) -> Result<Features, Problem> {
    let (Some(customer), Some(truth)) = (view.customers.first(), &view.truth) else {
        return Ok(Features::default());
    };
    let mut whole: Vec<&ArticleId> = view.slots.iter().flatten().chain([truth]).collect();
    whole.sort_unstable();
    let records = state.store.outfits().of_customer(customer, 0, LOOKED_THROUGH).await?;
    let same = |record: &OutfitRecord| {
        let mut articles: Vec<&ArticleId> = record.outfit.articles().iter().collect();
        articles.sort_unstable();
        articles == whole
    };
    Ok(records.into_iter().find(same).map(|record| record.outfit.features).unwrap_or_default())
}

async fn outfits(
    state: &AppState,
    view: &View,
    records: &[OutfitRecord],
    schema: &Schema,
) -> Result<Vec<OutfitView>, Problem> {
    let ids: Vec<ArticleId> = records.iter().flat_map(|record| record.outfit.articles()).cloned().collect();
    let mut articles = article_view::of(state, &ids).await?.into_iter();
    let outfit = |record: &OutfitRecord| {
        let ids = record.outfit.articles();
        let blanked = (0..ids.len()).map(|slot| view.blanked(ids, slot).href());
        let split = record.outfit.split.map(|split| format!("{}, ", split.as_str())).unwrap_or_default();
        OutfitView {
            articles: articles.by_ref().take(ids.len()).zip(blanked).collect(),
            own: format!("{split}{}", profile::line(&record.outfit.features, schema)),
        }
    };
    Ok(records.iter().map(outfit).collect())
}

fn missing(serving: bool, view: &View) -> String {
    let said = if !serving {
        "No release is being served. An admin activates one."
    } else if view.customers.is_empty() {
        "Name a customer, then click an article of one of their outfits: it becomes the blank, and you see who \
         would have put it back. The case explorer of the evaluation leads here, too."
    } else {
        "Click an article of an outfit below: it becomes the blank, and you see which method would have put it back."
    };
    said.to_owned()
}
