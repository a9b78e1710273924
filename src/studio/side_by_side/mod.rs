//! `/side-by-side`: how several methods fill the same blank, or how one method fills it for several customers.

mod columns;
mod view;

use std::sync::Arc;

use askama::Template;
use atelier_core::domain::{ArticleId, Features, Schema};
use axum::{
    Router,
    extract::State,
    response::{Html, Response},
    routing::get,
};

use self::columns::Compared;
pub(crate) use self::view::View;
use crate::{
    catalogue::page::article_view::{self, ArticleView},
    completion::comparison::Comparison,
    customers::page::{CustomerView, CustomerViews},
    outfits::OutfitRecord,
    people::page::visitor::Analyst,
    platform::{
        http::{AppState, Problem},
        page::{
            Page, Shell,
            address::{Address, features, values},
            figures::csv_file,
            wording,
        },
    },
    releases::LiveRelease,
};

const OUTFITS: u32 = 12;
/// A customer's outfits among which the compared one is looked up.
const SEARCHED_OUTFITS: u32 = 1000;

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/side-by-side", get(page))
        .route("/side-by-side.csv", get(download))
        .route("/side-by-side/similarity.csv", get(download_similarity))
}

#[derive(Template)]
#[template(path = "studio/side-by-side.html")]
struct SideBySidePage {
    shell: Shell,
    view: View,
    /// The ids in the form.
    customers: String,
    /// The first customer, if they are stored.
    first: Option<CustomerView>,
    outfits: Vec<OutfitView>,
    outfit: Vec<Option<ArticleView>>,
    truth: Option<ArticleView>,
    /// The outfit's own features, such as the occasion. Models see them too.
    own: String,
    /// The same question in Studio.
    studio: String,
    methods: Vec<(String, bool)>,
    types: Vec<(String, String)>,
    /// Whether the schema says what fits a customer.
    requires: bool,
    compared: Option<Compared>,
    /// Why there is nothing to compare.
    missing: Option<String>,
}

/// A stored outfit; each article links to the view without it.
struct OutfitView {
    articles: Vec<(ArticleView, String)>,
    own: String,
}

async fn page(
    Analyst(visitor): Analyst,
    State(state): State<AppState>,
    mut view: View,
) -> Result<Html<String>, Problem> {
    let (live, result) = read(&state, &mut view).await?;
    let schema = state.schema();
    let first = view.customers.first();
    let named = CustomerViews::read(&state, &view.customers, &schema).await?;
    let records = match first {
        Some(id) => state.store.outfits().for_customer(id, 0, OUTFITS).await?,
        None => Vec::new(),
    };
    let ids: Vec<ArticleId> = view.slots.iter().flatten().cloned().collect();
    let mut articles = article_view::load(&state, &ids).await?.into_iter();
    let truth = match &view.truth {
        Some(id) => article_view::load(&state, std::slice::from_ref(id)).await?.pop(),
        None => None,
    };
    let has = |method| live.as_ref().is_some_and(|live| live.serving.has(method));
    let chosen = live.as_ref().map(|live| view.methods(has, live.default_method())).unwrap_or_default();
    let all = live.as_ref().map(|live| live.serving.methods().collect::<Vec<_>>()).unwrap_or_default();
    let types = live.as_ref().map(|live| live.catalogue.sets().types()).unwrap_or_default();
    let page = SideBySidePage {
        shell: visitor.shell(Page::SideBySide),
        customers: view.customers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        first: first.and_then(|id| named.get(id)).cloned(),
        missing: result.is_none().then(|| missing(live.is_some(), &view)),
        outfits: outfits(&state, &view, &records, &schema).await?,
        outfit: view.slots.iter().map(|slot| slot.as_ref().and_then(|_| articles.next())).collect(),
        truth,
        studio: view.studio(result.as_ref().map_or_else(|| view.own.clone(), |result| values(&result.own))),
        own: result.as_ref().map(|result| wording::line(&result.own, &schema)).unwrap_or_default(),
        methods: all.into_iter().map(|method| (method.to_string(), chosen.contains(&method))).collect(),
        types: types.into_iter().map(|kind| (kind.to_owned(), wording::spaced(kind))).collect(),
        requires: schema.features().iter().any(|feature| !feature.requires.is_empty()),
        compared: result.map(|result| Compared::new(&view, &result.comparison, &named, &state.notation)),
        view,
    };
    Ok(Html(page.render()?))
}

/// Compares, after it leaves out what the live release does not have, and customers who are not stored.
async fn read(
    state: &AppState,
    view: &mut View,
) -> Result<(Option<Arc<LiveRelease>>, Option<ComparedOutfit>), Problem> {
    let live = state.releases().current();
    if let Some(live) = &live {
        view.leave_out_what_is_gone(live);
    }
    let stored = state.store.customers().existing_ids(&view.customers).await?;
    let gone = view.customers.extract_if(.., |id| !stored.contains(id));
    view.ignored.extend(gone.map(|id| format!("the customer {id}")));
    let compared = compare(state, live.as_deref(), view).await?;
    Ok((live, compared))
}

async fn download(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    mut view: View,
) -> Result<Response, Problem> {
    let (_, result) = read(&state, &mut view).await?;
    let columns = result.map(|result| result.comparison.columns).unwrap_or_default();
    Ok(csv_file("side-by-side.csv", columns::csv(&view, &columns)))
}

async fn download_similarity(
    Analyst(_): Analyst,
    State(state): State<AppState>,
    mut view: View,
) -> Result<Response, Problem> {
    let (_, result) = read(&state, &mut view).await?;
    let text = result.map(|result| columns::similarity_csv(&view, &result.comparison)).unwrap_or_default();
    Ok(csv_file("similarity.csv", text))
}

struct ComparedOutfit {
    comparison: Comparison,
    own: Features,
}

/// None without a release or a blank.
async fn compare(
    state: &AppState,
    live: Option<&LiveRelease>,
    view: &View,
) -> Result<Option<ComparedOutfit>, Problem> {
    let Some(live) = live.filter(|_| view.slots.iter().any(Option::is_none)) else { return Ok(None) };
    let schema = state.schema();
    let stored = own_features(state, view).await?;
    let own = stored.overridden_by(features(&view.own, &schema));
    let given = own.clone().overridden_by(features(&view.changed, &schema));
    let comparison = columns::compare_columns(state, live, view, given).await?;
    Ok(Some(ComparedOutfit { comparison, own }))
}

/// The own features of the stored outfit that the view shows, with the true article in its blank.
async fn own_features(state: &AppState, view: &View) -> Result<Features, Problem> {
    let (Some(customer), Some(truth)) = (view.customers.first(), &view.truth) else {
        return Ok(Features::default());
    };
    let mut complete: Vec<&ArticleId> = view.slots.iter().flatten().chain([truth]).collect();
    complete.sort_unstable();
    let records = state.store.outfits().for_customer(customer, 0, SEARCHED_OUTFITS).await?;
    let same = |record: &OutfitRecord| {
        let mut articles: Vec<&ArticleId> = record.outfit.articles().iter().collect();
        articles.sort_unstable();
        articles == complete
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
    let mut articles = article_view::load(state, &ids).await?.into_iter();
    let outfit = |record: &OutfitRecord| {
        let ids = record.outfit.articles();
        let blanked = (0..ids.len()).map(|slot| view.blanked(ids, slot).href());
        let split = record.outfit.split.map(|split| format!("{}, ", split.as_str())).unwrap_or_default();
        OutfitView {
            articles: articles.by_ref().take(ids.len()).zip(blanked).collect(),
            own: format!("{split}{}", wording::line(&record.outfit.features, schema)),
        }
    };
    Ok(records.iter().map(outfit).collect())
}

fn missing(is_live: bool, view: &View) -> String {
    let reason = if !is_live {
        "No release is live. An admin can activate one."
    } else if view.customers.is_empty() {
        "Enter a customer id, then click an article of one of their outfits: it becomes the blank, and you see which \
         method would suggest it again. The evaluation's cases link here, too."
    } else {
        "Click an article of an outfit below: it becomes the blank, and you see which method would suggest it again."
    };
    reason.to_owned()
}
