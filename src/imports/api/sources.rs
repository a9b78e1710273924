//! `/feeds`: stored sources, which the service fetches by itself.

use atelier_core::domain::Timestamp;
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{feeds::refuse, imports::find};
use crate::{
    imports::{
        ImportRecord,
        feeds::{Authorization, PutError, Schedule, Wanted, stored_address},
        jobs::{FeedName, FeedOptions, FeedTable, Mode},
        sql::feeds::Feed,
    },
    people::{Scope, gate::Caller},
    platform::{
        db::Stored,
        fault::ServiceError,
        http::{
            AppState, Kind, Problem,
            conditions::{ChangeHeaders, Conditions, PutHeaders, ReadHeaders, unchanged},
            extract::{Json, Path},
            fault,
            resource::{delete_answer, put_answer, read_answer},
            routes::Routes,
            uncancelled::uncancelled,
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Admin, routes!(list))
        .scoped(Scope::Admin, routes!(get, put, delete))
        .scoped(Scope::Admin, routes!(fetch))
}

/// Where a feed is, when it is fetched, and how it is read and stored.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FeedPut, example = json!({
    "url": "https://shop.example/feed.xml", "authorization": "Bearer abc", "mode": "mirror", "schedule": {"every": "6h"},
}))]
struct PutBody {
    /// The address, https unless private addresses are allowed. It may have a user and a password. As `GET` shows it, with `…`
    /// for values, it stands for the stored one.
    #[schema(max_length = 2000, examples("https://shop.example/feed.xml"))]
    url: String,
    /// The header `Authorization` for its server. No answer shows it. Without it, the stored one is kept for the same server;
    /// null removes it.
    #[serde(default, deserialize_with = "read_authorization")]
    #[schema(value_type = Option<String>, write_only, max_length = 2000, examples("Bearer abc"))]
    authorization: Authorization,
    /// When it is fetched; without it, only on request.
    #[serde(default)]
    schedule: Option<Schedule>,
    #[serde(default)]
    #[schema(inline)]
    table: FeedTable,
    #[serde(default)]
    #[schema(inline)]
    mode: Mode,
    /// As the parameters of `POST /feeds/{name}`.
    #[serde(default)]
    format: Option<String>,
    /// The delimiter of CSV files; found by itself if it is not given.
    #[serde(default)]
    delimiter: Option<String>,
    /// The encoding of CSV files, such as windows-1252; UTF-8 by default.
    #[serde(default)]
    encoding: Option<String>,
    /// Names of columns to read as others, as `FROM=TO`.
    #[serde(default)]
    map: Vec<String>,
    /// Skip bad rows; otherwise one bad row stops the import.
    #[serde(default)]
    skip_bad: bool,
    /// Import nothing if more than this percentage of the catalogue would be retired.
    #[serde(default)]
    #[schema(maximum = 100)]
    mirror_limit: Option<u8>,
}

/// Null is not the same as nothing.
fn read_authorization<'de, D: Deserializer<'de>>(value: D) -> Result<Authorization, D::Error> {
    Ok(Option::deserialize(value)?.map_or(Authorization::Remove, Authorization::Set))
}

/// A stored source, with the state of its fetches.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Feed)]
struct FeedBody {
    /// The name of the feed.
    #[schema(examples("shop"))]
    name: String,
    /// With `…` for the values of its query.
    #[schema(examples("https://shop.example/feed.xml?token=…"))]
    url: String,
    /// Whether a user name and password, or a token, are stored for the address.
    has_credentials: bool,
    schedule: Option<Schedule>,
    options: FeedOptions,
    /// The last import, which `/imports/{id}` has while it is among the last.
    #[schema(examples(17))]
    last_import: Option<i64>,
    /// Whether it is being fetched now.
    is_fetching: bool,
    /// When it was last fetched, whatever came of it.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    tried_at: Option<String>,
    /// When it was last imported.
    #[schema(examples("2026-11-21T14:34:20Z"))]
    succeeded_at: Option<String>,
    /// When it is fetched next; null without a schedule.
    #[schema(examples("2026-11-21T20:34:00Z"))]
    due_at: Option<String>,
    /// Number of failures in a row. Two raise an alert.
    failures: u32,
    /// Why the last attempt failed; null if it did not.
    failure: Option<String>,
}

impl FeedBody {
    fn new(feed: Feed, now: Timestamp) -> Result<Self, Problem> {
        let damaged = |error| Problem::inside(Kind::Internal, error);
        let address = stored_address(&feed.source);
        Ok(Self {
            url: address.map_or_else(|| "…".to_owned(), |address| address.to_string()),
            has_credentials: feed.source.has_credentials(),
            schedule: feed
                .source
                .schedule
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(damaged)?,
            options: serde_json::from_str(&feed.source.options).map_err(damaged)?,
            last_import: feed.import.map(|import| import.0),
            is_fetching: feed.is_leased(now),
            tried_at: feed.tried_at.map(|at| at.to_string()),
            succeeded_at: feed.succeeded_at.map(|at| at.to_string()),
            due_at: feed.due_at.map(|at| at.to_string()),
            failures: feed.failures,
            failure: feed.failure,
            name: feed.name,
        })
    }
}

fn unknown(name: &FeedName) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no stored source {:?}; PUT it first", name.as_str()))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Feeds)]
struct FeedsBody {
    feeds: Vec<FeedBody>,
}

/// Stored sources
///
/// The feeds that the service fetches by itself, by name.
#[utoipa::path(get, path = "/feeds", operation_id = "listFeeds", tag = "imports", responses(
    (status = 200, description = "The sources", body = FeedsBody),
))]
async fn list(State(state): State<AppState>) -> Result<Json<FeedsBody>, Problem> {
    let feeds = state.store.feeds().list().await?;
    let feeds = feeds.into_iter().map(|feed| FeedBody::new(feed.value, state.now()));
    Ok(Json(FeedsBody { feeds: feeds.collect::<Result<_, _>>()? }))
}

/// One stored source
///
/// The `ETag` changes when the source is stored, not when it is fetched.
#[utoipa::path(get, path = "/feeds/{name}", operation_id = "getFeed", tag = "imports",
    params(
        ("name" = String, Path, description = "The feed's name", example = "shop",
            pattern = "^[a-z0-9][a-z0-9-]{0,63}$"),
        ReadHeaders,
    ),
    responses(
        (status = 200, description = "The source", body = FeedBody,
            headers(("etag" = String, description = "Its version"))),
        (status = 304, description = "The source has one of the versions in If-None-Match"),
        (status = 404, description = "There is no such source"),
    ),
)]
async fn get(
    State(state): State<AppState>,
    Path(name): Path<FeedName>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.feeds().get(name.as_str()).await?.ok_or_else(|| unknown(&name))?;
    read_answer(&conditions, stored, |feed| FeedBody::new(feed, state.now()))
}

/// Store a source
///
/// Adds or replaces it. The service fetches it when its schedule says so, one replica at a time; `POST /feeds/{name}/fetch` does at
/// once.
#[utoipa::path(put, path = "/feeds/{name}", operation_id = "putFeed", tag = "imports",
    params(
        ("name" = String, Path, description = "Your name for the feed", example = "shop",
            pattern = "^[a-z0-9][a-z0-9-]{0,63}$"),
        PutHeaders,
    ),
    request_body = PutBody,
    responses(
        (status = 200, description = "The source is replaced", body = FeedBody,
            headers(("etag" = String, description = "Its new version"))),
        (status = 201, description = "The source is added", body = FeedBody,
            headers(("etag" = String, description = "Its version"))),
        (status = 412, description = "The source has another version, or exists already"),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<FeedName>,
    Conditions(expected): Conditions,
    Json(body): Json<PutBody>,
) -> Result<Response, Problem> {
    let PutBody {
        url, authorization, schedule, table, mode, format, delimiter, encoding, map, skip_bad, ..
    } = body;
    let mirror_limit = body.mirror_limit;
    let options =
        FeedOptions { table, mode, format, delimiter, encoding, map, skip_bad, dry_run: false, mirror_limit };
    let wanted = Wanted { url, authorization, options, schedule };
    uncancelled(async move {
        let (put, version) =
            state.feeds().put(author, &name, wanted, &expected).await.map_err(|error| match error {
                PutError::Faults(faults) => fault::problem(ServiceError::Faults(faults)),
                PutError::Change(error) => unchanged(error, || unknown(&name)),
            })?;
        let Stored { value, .. } =
            state.store.feeds().get(name.as_str()).await?.ok_or_else(|| unknown(&name))?;
        Ok(put_answer(put, &version, FeedBody::new(value, state.now())?))
    })
    .await
}

/// Delete a source
///
/// What it imported stays, and a running import continues.
#[utoipa::path(delete, path = "/feeds/{name}", operation_id = "deleteFeed", tag = "imports",
    params(
        ("name" = String, Path, description = "The feed's name", example = "shop",
            pattern = "^[a-z0-9][a-z0-9-]{0,63}$"),
        ChangeHeaders,
    ),
    responses(
        (status = 204, description = "The source is deleted"),
        (status = 404, description = "There is no such source"),
        (status = 412, description = "The source has another version"),
    ),
)]
async fn delete(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<FeedName>,
    Conditions(expected): Conditions,
) -> Result<StatusCode, Problem> {
    let deleted = state.store.by(author).feeds().delete(name.as_str(), &expected, state.now()).await;
    delete_answer(deleted, || unknown(&name))
}

/// Fetch a source
///
/// At once, besides its schedule. If it is being fetched already, the answer is that import. A file that has not changed since the
/// last time on the same day is not read again.
#[utoipa::path(post, path = "/feeds/{name}/fetch", operation_id = "fetchFeed", tag = "imports",
    params(
        ("name" = String, Path, description = "The feed's name", example = "shop",
            pattern = "^[a-z0-9][a-z0-9-]{0,63}$"),
    ),
    responses(
        (status = 202, description = "The import waits or runs", body = ImportRecord,
            headers(("location" = String, description = "The import's path"))),
        (status = 404, description = "There is no such source"),
        (status = 409, description = "Another replica has just begun to fetch it"),
    ),
)]
async fn fetch(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<FeedName>,
) -> Result<Response, Problem> {
    uncancelled(async move {
        let begun = state.feeds().fetch_now(author, &name).await.map_err(refuse)?;
        let id = begun.ok_or_else(|| unknown(&name))?;
        let location = [(header::LOCATION, format!("/imports/{}", id.0))];
        Ok((StatusCode::ACCEPTED, location, Json(find(&state, id).await?)).into_response())
    })
    .await
}
