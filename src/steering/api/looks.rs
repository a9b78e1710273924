//! `/looks`: outfits that the shop's editors publish; and `/articles/{id}/looks`, which a product page shows.

use std::sync::Arc;

use atelier_core::domain::{ArticleId, LookName};
use axum::{extract::State, response::Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::documents::{self, About, ApiDocument, NoQuery, read};
use crate::{
    catalogue::api::ArticleBody,
    completion::{
        Variants, Warning,
        answers::to_json,
        api::{
            complete::{ReasonBody, Shown, VariantBody},
            similar::{find_article, is_known},
        },
    },
    people::{Scope, gate::Reader, visitors::query_customer},
    platform::{
        db::Version,
        http::{
            AppState, Finding, Problem,
            conditions::{Conditions, ReadHeaders},
            extract::{Json, Path, Query},
            fault,
            paging::{self, Page},
            routes::Routes,
            schema::{ArticleIdSchema, CursorSchema, CustomerIdSchema},
        },
    },
    releases::routing::Route,
    steering::{
        documents::Changed,
        looks::{self, Found, FoundLook, Look, MOST, Wanted},
    },
};

pub(crate) fn router() -> Routes {
    documents::item_router::<Look>()
        .scoped(Scope::Rules, routes!(list))
        .for_pages(Scope::Complete, routes!(complete))
}

/// A look that was stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LookStored)]
pub(crate) struct StoredBody {
    look: Look,
    /// Articles that the catalogue does not have, or that are out of stock.
    warnings: Vec<Warning>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(value_type = Option<CursorSchema>, inline)]
    cursor: Option<String>,
    /// Maximum number of items.
    n: Option<u32>,
}

impl ApiDocument for Look {
    const ABOUT: About = About {
        plural: "looks",
        one: "a look",
        example: "autumn-office",
        scope: Scope::Rules,
        is_long: false,
        put: "Adds or replaces it. A published look is shown from the next request, and on other replicas within a second; a draft is not \
              shown.",
        patch: (
            "Change a look",
            "A JSON Merge Patch (RFC 7396): fields that the body leaves out stay, and null removes one. `{\"state\": \"draft\"}` takes it \
             from the product pages.",
        ),
        patch_example: r#"{"state": "draft"}"#,
        delete: (
            "Delete a look",
            "The audit log keeps what it was. To hide a look, and keep it, set its state to `draft`.",
        ),
    };
    type Query = NoQuery;
    type Answer = StoredBody;

    async fn answer(
        _state: &AppState,
        changed: Changed<Self>,
        _query: NoQuery,
    ) -> Result<StoredBody, Problem> {
        Ok(StoredBody { look: changed.document, warnings: changed.warnings })
    }
}

/// Looks
///
/// Sorted by the bytes of their names.
#[utoipa::path(get, path = "/looks", operation_id = "listLooks", tag = "looks", params(ListQuery), responses(
    (status = 200, description = "A page of looks", body = Page<Look>),
))]
async fn list(
    State(state): State<AppState>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Look>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |name| LookName::new(name).ok())?;
    let all = state.store.looks().list().await?.into_iter().map(|stored| stored.value);
    let rest = all.filter(|look| after.as_ref().is_none_or(|after| look.name > *after));
    let looks = rest.map(read).collect::<Result<Vec<Look>, Problem>>()?;
    let cursor = |look: &Look| look.name.clone().unwrap_or_default();
    Page::collect(stream::iter(looks.into_iter().map(Ok)), n, cursor, |look| look).await.map(Json)
}

/// The attribute that totals tell.
const PRICE: &str = "price";
/// Looks of an answer without `n`.
const DEFAULT_N: usize = 3;
/// The most looks of an answer with reasons: each article takes about as many questions as its customer has features.
const MOST_EXPLAINED: usize = 4;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LooksQuery {
    /// A stored customer: only looks for them, of what fits, in sizes of theirs that are in stock, without what they never wear or own.
    #[param(value_type = Option<CustomerIdSchema>, example = "c-000010")]
    customer: Option<String>,
    /// Maximum number of looks.
    #[param(minimum = 1, maximum = 16, default = 3)]
    n: Option<usize>,
    /// The most that a look costs, the article included.
    #[param(minimum = 0)]
    total_max: Option<f64>,
    /// Only what is in stock in this store.
    store: Option<String>,
    /// Return the features and articles that speak most for each article that the method chose. Then `n` is at most 4.
    #[serde(default)]
    explain: bool,
}

/// Looks with an article.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Looks)]
pub(crate) struct LooksBody {
    /// The release that answered.
    #[schema(examples("demo"))]
    release: String,
    /// The method that made the outfits, and that chose what replaces an article.
    #[schema(examples("match"))]
    method: String,
    /// The experiment's arm, if an experiment chose the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<String>,
    /// Published looks first, in their order; then outfits of the method, the most probable first.
    looks: Vec<LookBody>,
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletedLook)]
struct LookBody {
    /// Send this id with feedback.
    completion_id: String,
    /// The name of a published look. The others are outfits of the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("autumn-office"))]
    look: Option<String>,
    /// The heading above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Addresses of pictures of the whole outfit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<String>,
    /// The season of a published look.
    #[serde(skip_serializing_if = "Option::is_none")]
    season: Option<String>,
    /// The tags of a published look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// With the article itself.
    articles: Vec<PieceBody>,
    /// The sum of their prices; null if one has no price in the shop's currency, or prices are not public.
    total: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LookPiece)]
struct PieceBody {
    /// Its slot, for feedback.
    slot: usize,
    article: ArticleBody,
    #[serde(flatten)]
    variant: VariantBody,
    /// The look's own article, which the customer cannot have, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ArticleIdSchema>)]
    replaces: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonBody>>,
}

/// Complete the look
///
/// Looks with an article, for its product page: first the published ones that the customer can have, then whole outfits that the
/// method makes, each with other articles. What is sold out, does not fit or is excluded by the shop's rules is in none.
///
/// Without `customer` the answer is the same for everybody: it has `Cache-Control: public`, and is kept for up to a minute.
///
/// A publishable key gets public attributes without `warnings`, and sends `customer` signed; it cannot `explain`.
#[utoipa::path(get, path = "/articles/{id}/looks", operation_id = "completeLook", tag = "looks",
    params(("id" = ArticleIdSchema, Path, description = "The article's id, or a variant's", example = "a-00134"), LooksQuery, ReadHeaders),
    responses(
        (status = 200, description = "The looks", body = LooksBody,
            headers(("etag" = String, description = "The version of the answer without its completion ids"))),
    ),
)]
async fn complete(
    State(state): State<AppState>,
    reader: Reader,
    Path(id): Path<ArticleId>,
    Query(query): Query<LooksQuery>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let (route, shown, wanted) = question(&state, &reader, &id, query).await?;
    // Made-up limits and stores would displace what others ask for.
    let is_for_all = route.customer.is_none()
        && wanted.most_total.is_none()
        && is_known(&route.live, wanted.store.as_deref());
    let key = is_for_all.then(|| format!("looks {} {wanted:?}", shown.is_public()));
    let make = Box::pin(find(&state, &route, &wanted, &shown));
    state.answers().answer(&route.live, key, state.now(), &conditions, make).await
}

async fn question(
    state: &AppState,
    reader: &Reader,
    id: &ArticleId,
    query: LooksQuery,
) -> Result<(Route, Shown, Wanted), Problem> {
    let live = state.live_release()?;
    let shown = Shown::to(reader, state, query.store.as_deref());
    let (customer, refused) = match query_customer(state, reader, query.customer.as_deref()).await {
        Ok(customer) => (customer, None),
        Err(refused) => (None, Some(refused)),
    };
    let route = live.route(None, customer);
    let wanted = query.read(find_article(&route.live, id), refused, &shown)?;
    Ok((route, shown, wanted))
}

/// The answer to a program, which is not kept.
pub(crate) async fn find_fresh(
    state: &AppState,
    id: &ArticleId,
    query: LooksQuery,
) -> Result<LooksBody, Problem> {
    let (route, shown, wanted) = question(state, &Reader::Program, id, query).await?;
    find(state, &route, &wanted, &shown).await.map(|(body, _)| body)
}

async fn find(
    state: &AppState,
    route: &Route,
    wanted: &Wanted,
    shown: &Shown,
) -> Result<(LooksBody, Version), Problem> {
    let times = state.times();
    let found =
        looks::complete(route, state.profiles(), wanted, times).await.map_err(fault::query_problem)?;
    let mut body = LooksBody::new(route, &found, shown);
    // Each answer has other completion ids.
    let version = Version::of_text(&to_json(&body)?);
    for (body, look) in body.looks.iter_mut().zip(&found.looks) {
        body.completion_id = found.issue_ticket(look, state.tickets(), route, times);
    }
    Ok((body, version))
}

impl LooksQuery {
    /// Problems of the query come first, then why the customer was refused.
    fn read(
        self,
        article: Result<u32, Problem>,
        refused: Option<Problem>,
        shown: &Shown,
    ) -> Result<Wanted, Problem> {
        let refuse = |name, detail: String| Err(Problem::invalid(vec![Finding::parameter(name, detail)]));
        let n = self.n.unwrap_or(DEFAULT_N);
        if !(1..=MOST).contains(&n) {
            return refuse("n", format!("from 1 to {MOST} looks, found {n}"));
        }
        if self.explain && n > MOST_EXPLAINED {
            return refuse("n", format!("with explain, from 1 to {MOST_EXPLAINED} looks, found {n}"));
        }
        if let Some(total) = self.total_max.filter(|total| !(total.is_finite() && *total >= 0.0)) {
            return refuse("total_max", format!("a price is a number of 0 or more, found {total}"));
        }
        if self.explain && shown.is_public() {
            return refuse("explain", "a publishable key gets no reasons; ask with a secret key".to_owned());
        }
        if self.total_max.is_some() && !shown.has(PRICE) {
            let detail = "a limit would tell prices, which shop.public_attributes does not have";
            return refuse("total_max", detail.to_owned());
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        Ok(Wanted {
            article: article?,
            n,
            most_total: self.total_max,
            store: self.store,
            explain: self.explain,
        })
    }
}

impl LooksBody {
    fn new(route: &Route, found: &Found, shown: &Shown) -> Self {
        Self {
            release: route.live.name().to_owned(),
            method: route.method.to_string(),
            arm: shown.private(route.arm.clone()),
            looks: found.looks.iter().map(|look| LookBody::new(look, &found.variants, shown)).collect(),
            warnings: shown.private(found.warnings.clone()),
        }
    }
}

impl LookBody {
    fn new(found: &FoundLook, variants: &Variants, shown: &Shown) -> Self {
        let outfit: Vec<Option<ArticleId>> =
            found.pieces.iter().map(|piece| Some(piece.article.id.clone())).collect();
        let articles = found.pieces.iter().enumerate().map(|(slot, piece)| PieceBody {
            slot,
            variant: shown.variant(variants, &piece.article),
            article: shown.article(Arc::clone(&piece.article)),
            replaces: piece.replaces.as_ref().map(ToString::to_string),
            reasons: piece.reasons.as_ref().map(|reasons| {
                reasons.iter().map(|reason| ReasonBody::new(reason.clone(), &outfit)).collect()
            }),
        });
        let look = found.published.as_ref().map(|published| &published.look);
        Self {
            completion_id: String::new(),
            look: found.published.as_ref().map(|published| published.name.to_string()),
            title: look.and_then(|look| look.title.clone()),
            pictures: look.map(|look| look.pictures.clone()).unwrap_or_default(),
            season: look.and_then(|look| look.season.clone()),
            tags: shown.private(look.map(|look| look.tags.clone()).unwrap_or_default()),
            articles: articles.collect(),
            total: found.total.filter(|_| shown.has(PRICE)),
        }
    }
}
