//! `/articles`: the catalogue.

use std::{borrow::Cow, sync::Arc};

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};
use utoipa_axum::routes;

use super::{
    bulk::{self, Brought, BulkQuery},
    customers::check_id,
};
use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::web::http::{
    AppState, Finding, Kind, Problem,
    extract::{Json, Path, Query},
    keys::Caller,
    paging::{self, Page, SearchQuery},
};
use crate::{
    domain::{Article, ArticleError, ArticleId, json_number},
    models::catalogue::CatalogueArticle,
    store::Put,
    util::json_pointer::step,
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, put, delete))
        .unlimited(Scope::Catalogue, routes!(bring_in))
}

/// An article, as programs get it.
#[derive(Debug, Clone)]
pub(crate) struct ArticleBody(Arc<CatalogueArticle>);

impl Serialize for ArticleBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// An article: its id, its type, and whatever else the shop says of it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes what an article writes of itself")]
struct ArticleFields {
    #[schema(examples("a-12"))]
    id: String,
    #[schema(examples("coat"))]
    r#type: String,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

impl PartialSchema for ArticleBody {
    fn schema() -> RefOr<Schema> {
        ArticleFields::schema()
    }
}

impl ToSchema for ArticleBody {
    fn name() -> Cow<'static, str> {
        "Article".into()
    }
}

impl From<Arc<CatalogueArticle>> for ArticleBody {
    fn from(article: Arc<CatalogueArticle>) -> Self {
        Self(article)
    }
}

impl From<Article> for ArticleBody {
    fn from(article: Article) -> Self {
        Self(Arc::new(article.into()))
    }
}

/// Articles
///
/// In the order of their ids' bytes.
#[utoipa::path(get, path = "/articles", tag = "articles", params(SearchQuery), responses(
    (status = 200, description = "A page of them", body = Page<ArticleBody>),
))]
async fn list(
    State(state): State<AppState>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Page<ArticleBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |id| ArticleId::new(id).ok())?;
    let found = state.store.articles().list(&query.search, after.as_ref(), n + 1).await?;
    Ok(Json(Page::new(found, n, |article| article.id.to_string(), ArticleBody::from)))
}

/// One article
#[utoipa::path(get, path = "/articles/{id}", tag = "articles",
    params(("id" = String, Path, description = "The article's id", example = "a-12")),
    responses(
        (status = 200, description = "What the catalogue says of it", body = ArticleBody),
        (status = 404, description = "The catalogue does not have it"),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<ArticleId>) -> Result<Json<ArticleBody>, Problem> {
    let article = state.store.articles().get(&id).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(article.into()))
}

/// What is to be said of an article: its type, and any attributes.
#[derive(ToSchema)]
#[schema(as = ArticlePut, example = json!({"type": "coat", "colour": "red", "price": 79.9, "in_stock": true}))]
#[expect(dead_code, reason = "it only describes the body, which is read as a free object")]
struct ArticlePut {
    r#type: String,
    #[schema(additional_properties)]
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

/// Add an article, or make one like this
///
/// Attributes that are not given are forgotten.
#[utoipa::path(put, path = "/articles/{id}", tag = "articles",
    params(("id" = String, Path, description = "The article's id", example = "a-12")),
    request_body = ArticlePut,
    responses(
        (status = 200, description = "It was there; this is what is stored now", body = ArticleBody),
        (status = 201, description = "It is new", body = ArticleBody),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(actor): Caller,
    Path(id): Path<ArticleId>,
    Json(body): Json<Map<String, Value>>,
) -> Result<(StatusCode, Json<ArticleBody>), Problem> {
    let article = read(id, body)?;
    let put = state.store.articles().put(&article, state.now()).await?;
    if put != Put::Unchanged {
        state.note(actor, "article.put", article.id.as_str(), json!({"new": put == Put::Added})).await?;
    }
    // Whoever changes the catalogue sees it changed in the next completion.
    state.releases.refresh().await?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(article.into())))
}

/// Take an article out of the catalogue
///
/// Outfits that it was part of stay as they were.
#[utoipa::path(delete, path = "/articles/{id}", tag = "articles",
    params(("id" = String, Path, description = "The article's id", example = "a-12")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "The catalogue does not have it"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(actor): Caller,
    Path(id): Path<ArticleId>,
) -> Result<StatusCode, Problem> {
    let deleted = state.store.articles().delete(&id).await?;
    state.releases.refresh().await?;
    if !deleted {
        return Err(unknown(&id));
    }
    state.note(actor, "article.delete", id.as_str(), json!({})).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Bring articles in
///
/// One article a line, `{"id": …, "type": …, …}`, as `atelier export` writes them. All of them arrive
/// together or none does. An article called `bulk` is at `/articles/%62ulk`.
#[utoipa::path(post, path = "/articles/bulk", tag = "articles", params(BulkQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "They are stored", body = Brought)),
)]
async fn bring_in(
    State(state): State<AppState>,
    Caller(actor): Caller,
    Query(query): Query<BulkQuery>,
    request: Request,
) -> Result<Json<Brought>, Problem> {
    let brought = bulk::bring_in::<Article>(&state, actor, &query, request).await?;
    state.releases.refresh().await?;
    Ok(Json(brought))
}

fn unknown(id: &ArticleId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no article {id:?} in the catalogue"))
}

/// As a file's row is read: a null is "not given", a number has one form.
fn read(id: ArticleId, mut body: Map<String, Value>) -> Result<Article, Problem> {
    let wrong = |place: &str, detail: String| Problem::invalid(vec![Finding::at(place, detail)]);
    match body.remove("id") {
        None => {}
        Some(Value::String(given)) => check_id(Some(&given), id.as_str())?,
        Some(_) => return Err(wrong("/id", "an id is a text; leave it out, it is the path's".into())),
    }
    let kind = match body.remove("type") {
        Some(Value::String(kind)) => kind,
        None => return Err(wrong("", "missing field `type`".into())),
        Some(other) => return Err(wrong("/type", format!("an article's type is a text, found {other}"))),
    };
    body.retain(|_, value| !value.is_null());
    if body.contains_key("") {
        return Err(wrong("/", "an attribute needs a name, found an empty one".into()));
    }
    for (name, value) in &mut body {
        if name.contains('\0') || !normalise(value) {
            return Err(wrong(&step(name), "it holds the character NUL (\\u0000): take it out".into()));
        }
    }
    Article::new(id, kind, body).map_err(|error| match error {
        ArticleError::Type(_) => wrong("/type", error.to_string()),
        ArticleError::Reserved(_) => wrong("", error.to_string()),
    })
}

/// Numbers in their one form; false if a text or name holds NUL.
fn normalise(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                *value = json!(json_number(float));
            }
            true
        }
        Value::String(text) => !text.contains('\0'),
        Value::Array(values) => values.iter_mut().all(normalise),
        Value::Object(fields) => {
            fields.iter_mut().all(|(name, value)| !name.contains('\0') && normalise(value))
        }
    }
}
