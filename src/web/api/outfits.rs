//! `/outfits`: the stored outfits.

use axum::{
    extract::{Request, State},
    http::{HeaderName, StatusCode, header},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{
    bulk::{self, BulkQuery, ImportBody},
    features,
};
use crate::web::api::fault;
use crate::{
    domain::{ArticleId, CustomerId, Outfit, OutfitError, Schema, Split},
    service::{access::Scope, outfits},
    store::{OutfitRecord, Put},
    util::calendar,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{Json, Path, PathParameter, Query},
        keys::Caller,
        problem::value_or_finding,
        routes::Routes,
        schema::{ArticleIdSchema, CustomerIdSchema, FeaturesSchema, article_ids},
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(save))
        .scoped(Scope::Catalogue, routes!(get, delete))
        .streaming(Scope::Catalogue, routes!(bring_in))
}

/// A stored outfit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outfit)]
pub(crate) struct OutfitBody {
    #[schema(examples(17))]
    id: i64,
    #[schema(value_type = CustomerIdSchema)]
    customer: String,
    /// Four to eight article ids; their order carries no meaning.
    #[schema(value_type = Vec<ArticleIdSchema>)]
    articles: Vec<String>,
    #[schema(examples("train"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<&'static str>,
    /// Features of this outfit, such as the occasion, in contrast to the customer's.
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
    /// `imported`, `saved`, or `accepted` from a suggestion.
    #[schema(examples("saved"))]
    origin: &'static str,
    #[schema(examples("2026-11-21T14:34:00Z"))]
    created_at: String,
}

impl From<OutfitRecord> for OutfitBody {
    fn from(record: OutfitRecord) -> Self {
        let OutfitRecord { seq, outfit, origin, created_at, .. } = record;
        Self {
            id: seq,
            customer: outfit.customer.to_string(),
            articles: outfit.articles().iter().map(ToString::to_string).collect(),
            split: outfit.split.map(Split::as_str),
            features: features::write(&outfit.features),
            origin: origin.as_str(),
            created_at: calendar::moment(created_at.millis(), 1000, true),
        }
    }
}

/// An outfit to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OutfitSave, example = json!({
    "customer": "c-000010", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"],
    "features": {"occasion": "office"},
}))]
struct OutfitSave {
    #[schema(value_type = CustomerIdSchema)]
    customer: String,
    #[schema(schema_with = article_ids)]
    articles: Vec<String>,
    /// Features of this outfit, such as the occasion, in contrast to the customer's.
    #[serde(default)]
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

/// A stored outfit, and warnings about it.
#[derive(Debug, Serialize, ToSchema)]
struct OutfitStored {
    #[serde(flatten)]
    outfit: OutfitBody,
    /// Features that the schema does not have. They are stored, but models do not see them.
    warnings: Vec<Finding>,
}

/// Save a customer's outfit
///
/// Outfits with the same customer, articles and features are the same outfit; it is stored once.
#[utoipa::path(post, path = "/outfits", operation_id = "saveOutfit",
    tag = "outfits", request_body = OutfitSave, responses(
    (status = 200, description = "The outfit already exists", body = OutfitStored),
    (status = 201, description = "The outfit is new; Location has its path", body = OutfitStored,
        headers(("location" = String, description = "The outfit's path"))),
))]
async fn save(
    State(state): State<AppState>,
    Caller(author): Caller,
    Json(body): Json<OutfitSave>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<OutfitStored>), Problem> {
    let (outfit, warnings) = body.read(&state.schema())?;
    let (seq, put) =
        outfits::save(&state.store, author, &outfit, state.now()).await.map_err(fault::problem)?;
    let record = state.store.outfits().get(seq).await?.ok_or_else(|| unknown(OutfitId(seq)))?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/outfits/{seq}"))];
    Ok((status, location, Json(OutfitStored { outfit: record.into(), warnings })))
}

impl OutfitSave {
    fn read(self, schema: &Schema) -> Result<(Outfit, Vec<Finding>), Problem> {
        let mut errors = Vec::new();
        let customer = value_or_finding(CustomerId::new(&self.customer), || "/customer".into(), &mut errors);
        let article = |(place, id): (usize, &String)| {
            value_or_finding(ArticleId::new(id), || format!("/articles/{place}"), &mut errors)
        };
        let articles = self.articles.iter().enumerate().filter_map(article).collect();
        let read = features::read(self.features, schema, "/features").map_err(|wrong| errors.extend(wrong));
        let (Some(customer), Ok(read), true) = (customer, read, errors.is_empty()) else {
            return Err(Problem::invalid(errors));
        };
        let outfit = Outfit::new(customer, articles, None, read.features).map_err(|error| {
            let place = match &error {
                OutfitError::Duplicate(twice) => {
                    let last = self.articles.iter().rposition(|id| id == twice.as_str());
                    format!("/articles/{}", last.unwrap_or_default())
                }
                _ => "/articles".to_owned(),
            };
            Problem::invalid(vec![Finding::at(place, error.to_string())])
        })?;
        Ok((outfit, read.warnings))
    }
}

/// An outfit's id, a number that the service assigns.
#[derive(Debug, Clone, Copy)]
struct OutfitId(i64);

impl PathParameter for OutfitId {
    fn parse(text: &str) -> Result<Self, String> {
        let id = text.parse().ok().filter(|id| *id > 0);
        id.map(Self).ok_or_else(|| "an outfit's id is a whole number above 0".into())
    }
}

/// One outfit
#[utoipa::path(get, path = "/outfits/{id}", operation_id = "getOutfit", tag = "outfits",
    params(("id" = i64, Path, description = "The outfit's id", minimum = 1, example = 17)),
    responses(
        (status = 200, description = "The outfit", body = OutfitBody),
        (status = 404, description = "There is no such outfit"),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<OutfitId>) -> Result<Json<OutfitBody>, Problem> {
    let record = state.store.outfits().get(id.0).await?.ok_or_else(|| unknown(id))?;
    Ok(Json(record.into()))
}

/// Delete an outfit
#[utoipa::path(delete, path = "/outfits/{id}", operation_id = "deleteOutfit", tag = "outfits",
    params(("id" = i64, Path, description = "The outfit's id", minimum = 1, example = 17)),
    responses(
        (status = 204, description = "The outfit is deleted"),
        (status = 404, description = "There is no such outfit"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<OutfitId>,
) -> Result<StatusCode, Problem> {
    let deleted = state.store.by(author).outfits().delete(id.0, state.now()).await?;
    if deleted { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(id)) }
}

/// Import outfits
///
/// One outfit per line, `{"customer": …, "articles": […], "split": …, "features": {…}}`, in the format of
/// `atelier export`. The customers and articles must exist. Either all outfits are stored or none.
#[utoipa::path(post, path = "/outfits/bulk", operation_id = "importOutfits",
    tag = "outfits", params(BulkQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"customer\": \"c-000010\", \"articles\": [\"a-00134\", \"a-01243\", \"a-00568\", \"a-00259\"]}\n"),
    responses((status = 200, description = "The outfits are stored", body = ImportBody)),
)]
async fn bring_in(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(query): Query<BulkQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    bulk::import::<Outfit>(&state, author, query.skip_bad, request).await.map(Json)
}

fn unknown(id: OutfitId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no outfit {}", id.0))
}
