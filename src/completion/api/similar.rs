//! `/articles/{id}/similar`: what a product page shows next to an article.

use atelier_core::domain::ArticleId;
use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::complete::{Shown, VariantBody};
use crate::{
    catalogue::api::ArticleBody,
    completion::{
        MovedBy, Warning,
        answers::to_json,
        similar::{self, Similar, Wanted},
    },
    people::{Scope, gate::Reader, visitors::query_customer},
    platform::{
        db::Version,
        http::{
            AppState, Kind, Problem,
            conditions::{Conditions, ReadHeaders},
            extract::{Path, Query},
            fault, paging,
            routes::Routes,
            schema::{ArticleIdSchema, CustomerIdSchema},
        },
    },
    releases::{LiveRelease, routing::Route},
};

pub(crate) fn router() -> Routes {
    Routes::new().for_pages(Scope::Complete, routes!(similar))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimilarQuery {
    /// A stored customer: only what fits them, in sizes of theirs that are in stock, without what they never wear or own.
    #[param(value_type = Option<CustomerIdSchema>, example = "c-000010")]
    customer: Option<String>,
    /// Only what is in stock in this store.
    store: Option<String>,
    /// Maximum number of items.
    n: Option<u32>,
}

/// Articles that are like another one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SimilarArticles)]
pub(crate) struct SimilarBody {
    /// Send this id with feedback, with slot 0.
    completion_id: String,
    /// The most similar first, unless rules move them.
    items: Vec<ItemBody>,
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SimilarArticle)]
struct ItemBody {
    article: ArticleBody,
    #[serde(flatten)]
    variant: VariantBody,
    /// The shop's rules that moved it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<MovedBy>,
}

/// The most articles of an answer to a page.
const MOST_OF_A_PAGE: usize = 24;

/// Similar articles
///
/// Articles of the same type that share attributes with it, cost about the same, look and read alike (`embedding`), and are worn
/// with the same others in the outfits that the live release remembers. What is out of stock or excluded by the shop's rules is left
/// out.
///
/// A publishable key gets at most 24, with public attributes and without `rules` and `warnings`, and sends `customer` signed.
/// Without `customer` the answer is the same for everybody: it has `Cache-Control: public`, and is kept for up to a minute.
#[utoipa::path(get, path = "/articles/{id}/similar", operation_id = "findSimilarArticles", tag = "articles",
    params(("id" = ArticleIdSchema, Path, description = "The article's id, or a variant's", example = "a-00134"), SimilarQuery, ReadHeaders),
    responses(
        (status = 200, description = "The most similar articles", body = SimilarBody,
            headers(("etag" = String, description = "The version of the answer without its completion id"))),
    ),
)]
async fn similar(
    State(state): State<AppState>,
    reader: Reader,
    Path(id): Path<ArticleId>,
    Query(query): Query<SimilarQuery>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let (route, shown, wanted) = question(&state, &reader, &id, query).await?;
    let is_for_all = route.customer.is_none() && is_known(&route.live, wanted.store.as_deref());
    let key = is_for_all.then(|| format!("similar {} {wanted:?}", shown.is_public()));
    let make = Box::pin(find(&state, &route, wanted, &shown));
    state.answers().answer(&route.live, key, state.now(), &conditions, make).await
}

async fn question(
    state: &AppState,
    reader: &Reader,
    id: &ArticleId,
    query: SimilarQuery,
) -> Result<(Route, Shown, Wanted), Problem> {
    let n = paging::size(query.n, state.limits)? as usize;
    let shown = Shown::to(reader, state, query.store.as_deref());
    // A page asks for a row of cards.
    let n = if shown.is_public() { n.min(MOST_OF_A_PAGE) } else { n };
    let customer = query_customer(state, reader, query.customer.as_deref()).await?;
    let route = state.live_release()?.route(None, customer);
    let article = find_article(&route.live, id)?;
    Ok((route, shown, Wanted { article, store: query.store, n }))
}

/// The answer to a program, which is not kept.
pub(crate) async fn find_fresh(
    state: &AppState,
    id: &ArticleId,
    query: SimilarQuery,
) -> Result<SimilarBody, Problem> {
    let (route, shown, wanted) = question(state, &Reader::Program, id, query).await?;
    find(state, &route, wanted, &shown).await.map(|(body, _)| body)
}

async fn find(
    state: &AppState,
    route: &Route,
    wanted: Wanted,
    shown: &Shown,
) -> Result<(SimilarBody, Version), Problem> {
    let times = state.times();
    let found = similar::find(route, state.profiles(), wanted, times).await.map_err(fault::query_problem)?;
    let completion_id = found.issue_ticket(state.tickets(), &route.live, times);
    let Similar { articles, variants, warnings, .. } = found;
    let items = articles.into_iter().map(|(article, rules)| ItemBody {
        variant: shown.variant(&variants, &article),
        article: shown.article(article),
        rules: shown.private(rules),
    });
    let mut body = SimilarBody {
        completion_id: String::new(),
        items: items.collect(),
        warnings: shown.private(warnings),
    };
    // Each answer has another completion id.
    let version = Version::of_text(&to_json(&body)?);
    body.completion_id = completion_id;
    Ok((body, version))
}

/// The position of an article of the catalogue, by its id or a variant's.
pub(crate) fn find_article(live: &LiveRelease, id: &ArticleId) -> Result<u32, Problem> {
    let position = live.catalogue.position_of(id.as_str());
    position
        .filter(|at| live.catalogue.article(*at).is_some())
        .ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no article {id:?} in the catalogue")))
}

/// Whether an article's stock names the store.
pub(crate) fn is_known(live: &LiveRelease, store: Option<&str>) -> bool {
    store.is_none_or(|store| live.catalogue.sets().supply().has_store(store))
}
