//! `/articles`: the catalogue.

use std::{borrow::Cow, sync::Arc};

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};
use utoipa_axum::routes;

use super::{
    bulk::{self, BulkQuery, ImportBody},
    customers::check_id,
};
use crate::{
    domain::{Article, ArticleError, ArticleId, json_number},
    models::packed_article::PackedArticle,
    service::{
        access::Scope,
        articles,
        coverage::{Unknown, find_unknown},
        live_release::LiveRelease,
    },
    store::Put,
    util::json_pointer::step,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{Json, Path, Query},
        keys::Caller,
        paging::{self, Page, SearchQuery},
        routes::Routes,
        uncancelled::uncancelled,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, put, delete))
        .streaming(Scope::Catalogue, routes!(bring_in))
        .also_at("/articles/{id}", "/articles/bulk", axum::routing::get(get).put(put).delete(delete))
}

/// An article in an answer.
#[derive(Debug, Clone)]
pub(crate) struct ArticleBody(Arc<PackedArticle>);

impl Serialize for ArticleBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// An article: its id, its type, and the shop's other attributes.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the schema of an article, which serializes itself")]
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

impl From<Arc<PackedArticle>> for ArticleBody {
    fn from(article: Arc<PackedArticle>) -> Self {
        Self(article)
    }
}

impl From<Article> for ArticleBody {
    fn from(article: Article) -> Self {
        Self(Arc::new((&article).into()))
    }
}

/// Articles
///
/// Sorted by the bytes of their ids.
#[utoipa::path(get, path = "/articles", tag = "articles", params(SearchQuery), responses(
    (status = 200, description = "A page of articles", body = Page<ArticleBody>),
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
        (status = 200, description = "The article", body = ArticleBody),
        (status = 404, description = "The catalogue has no such article"),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<ArticleId>) -> Result<Json<ArticleBody>, Problem> {
    let article = state.store.articles().get(&id).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(article.into()))
}

/// A stored article, and warnings about it.
#[derive(Debug, ToSchema)]
struct ArticleStored {
    #[serde(flatten)]
    #[schema(value_type = ArticleBody)]
    article: Article,
    /// What the live release does not know of an article that it was not trained with. An attribute `warnings` is stored, but
    /// not in this answer.
    warnings: Vec<Finding>,
}

impl Serialize for ArticleStored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { article, warnings } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", article.id.as_str())?;
        map.serialize_entry("type", article.kind())?;
        for (name, value) in article.attributes().iter().filter(|(name, _)| *name != WARNINGS) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(WARNINGS, warnings)?;
        map.end()
    }
}

const WARNINGS: &str = "warnings";

impl ArticleStored {
    fn new(article: Article, live: Option<&LiveRelease>) -> Self {
        let warnings = live.map_or_else(Vec::new, |live| {
            let place = |unknown: &Unknown| match unknown {
                Unknown::Article => String::new(),
                Unknown::Value(value) => step(&value.attribute),
                Unknown::Embedding { .. } => "/embedding".to_owned(),
            };
            let found = find_unknown(live.serving.release(), &article);
            found.iter().map(|unknown| Finding::at(place(unknown), unknown.describe(live.name()))).collect()
        });
        Self { article, warnings }
    }
}

/// An article to store: its type, and any attributes.
#[derive(ToSchema)]
#[schema(as = ArticlePut, example = json!({"type": "coat", "colour": "red", "price": 79.9, "in_stock": true}))]
#[expect(dead_code, reason = "only the schema of the body, which is read as a free object")]
struct ArticlePut {
    r#type: String,
    #[schema(additional_properties)]
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

/// Add or replace an article
///
/// Attributes that the body leaves out are deleted. `price` is a number of 0 or more, or a text such as `64,55` or
/// `1.299,00`; `in_stock` is true or false, 0 or 1, or a word such as `yes` or `nein`. Both are stored as a number and a
/// boolean; other values are refused.
#[utoipa::path(put, path = "/articles/{id}", tag = "articles",
    params(("id" = String, Path, description = "The article's id", example = "a-12")),
    request_body = ArticlePut,
    responses(
        (status = 200, description = "The article existed; this is the stored one now", body = ArticleStored),
        (status = 201, description = "The article is new", body = ArticleStored),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<ArticleId>,
    Json(body): Json<Map<String, Value>>,
) -> Result<(StatusCode, Json<ArticleStored>), Problem> {
    let article = read(id, body)?;
    let releases = Arc::clone(&state.releases);
    let (article, put) = uncancelled(async move {
        let put = articles::put(&state.store, &state.releases, author, &article, state.now()).await;
        (article, put)
    })
    .await;
    let put = put?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(ArticleStored::new(article, releases.current().as_deref()))))
}

/// Delete an article
///
/// Stored outfits keep the article.
#[utoipa::path(delete, path = "/articles/{id}", tag = "articles",
    params(("id" = String, Path, description = "The article's id", example = "a-12")),
    responses(
        (status = 204, description = "The article is deleted"),
        (status = 404, description = "The catalogue has no such article"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<ArticleId>,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let deleted = articles::delete(&state.store, &state.releases, author, &id, state.now()).await?;
        if deleted { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(&id)) }
    })
    .await
}

/// Import articles
///
/// One article per line, `{"id": …, "type": …, …}`, in the format of `atelier export`. Either all articles are stored
/// or none.
#[utoipa::path(post, path = "/articles/bulk", tag = "articles", params(BulkQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "The articles are stored", body = ImportBody)),
)]
async fn bring_in(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(query): Query<BulkQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    bulk::import::<Article>(&state, author, &query, request).await.map(Json)
}

fn unknown(id: &ArticleId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no article {id:?} in the catalogue"))
}

/// Reads an article in the same way as a row of a file: an attribute that is null is left out, numbers are normalized.
fn read(id: ArticleId, mut body: Map<String, Value>) -> Result<Article, Problem> {
    let wrong = |place: &str, detail: String| Problem::invalid(vec![Finding::at(place, detail)]);
    match body.remove("id") {
        None => {}
        Some(Value::String(in_body)) => check_id(Some(&in_body), &id)?,
        Some(_) => {
            return Err(wrong("/id", "`id` must be a string; omit it, since the path contains it".into()));
        }
    }
    let kind = match body.remove("type") {
        Some(Value::String(kind)) => kind,
        None => return Err(wrong("", "missing field `type`".into())),
        Some(other) => {
            return Err(wrong("/type", format!("an article's type must be a string, found {other}")));
        }
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
    let refuse = |error: ArticleError| match error {
        ArticleError::Type(_) => wrong("/type", error.to_string()),
        ArticleError::Reserved(_) => wrong("", error.to_string()),
        ArticleError::Attribute { name, reason } => wrong(&step(name), reason),
    };
    let mut article = Article::new(id, kind, body).map_err(refuse)?;
    article.normalise().map_err(refuse)?;
    Ok(article)
}

/// Normalizes numbers; false if a text or name contains NUL.
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
