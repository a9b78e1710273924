//! `/imports`: the feeds that are imported in the background.

use atelier_core::{domain::Timestamp, util::calendar};
use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    imports::{
        jobs::{FeedOptions, JobResult},
        sql::imports::{ImportId, ImportRecord, Progress},
    },
    people::Scope,
    platform::http::{
        AppState, Kind, Problem,
        extract::{Json, Path, PathParameter},
        routes::Routes,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Catalogue, routes!(list)).scoped(Scope::Catalogue, routes!(get, cancel))
}

impl PathParameter for ImportId {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("an import's id is a whole number, found {text:?}"))
    }
}

/// An import in the background.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Import)]
pub(crate) struct JobBody {
    /// The id of the import.
    #[schema(examples(17))]
    id: i64,
    /// Your name for the feed.
    #[schema(examples("shop"))]
    feed: String,
    options: FeedOptions,
    /// The key's label or the person's name; null if the service started it.
    #[schema(examples("nightly feed"))]
    started_by: Option<String>,
    /// `waiting` while another import runs, `running`, or how it ended: `done`, `unchanged` if a stored source has nothing new,
    /// `failed`, `cancelled`, or `interrupted` with its process. Only `done` has stored anything.
    #[schema(examples("done"))]
    state: &'static str,
    /// When it was asked for.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    created_at: String,
    /// When it began to run; null while it waits.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    started_at: Option<String>,
    /// When it ended; null until then.
    #[schema(examples("2026-11-21T14:34:20Z"))]
    ended_at: Option<String>,
    progress: Progress,
    /// Null until it has ended.
    result: Option<JobResult>,
}

impl JobBody {
    pub(crate) async fn find(state: &AppState, id: ImportId) -> Result<Self, Problem> {
        let found = state.store.imports().get(id).await?;
        found.map(Self::from).ok_or_else(|| {
            let detail = format!("there is no import {}; the last thirty of each table are kept", id.0);
            Problem::new(Kind::NotFound, detail)
        })
    }
}

impl From<ImportRecord> for JobBody {
    fn from(record: ImportRecord) -> Self {
        let time = |at: Timestamp| calendar::moment(at.millis(), 1000, true);
        Self {
            id: record.id.0,
            feed: record.feed,
            options: record.options,
            started_by: record.key.or(record.person),
            state: record.state.as_str(),
            created_at: time(record.created_at),
            started_at: record.started_at.map(time),
            ended_at: record.ended_at.map(time),
            progress: record.progress,
            result: record.result,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Imports)]
struct ImportsBody {
    imports: Vec<JobBody>,
}

/// Imports
///
/// Those that wait or run, and the last thirty of each table that ended; the newest first.
#[utoipa::path(get, path = "/imports", operation_id = "listImports", tag = "imports", responses(
    (status = 200, description = "The imports", body = ImportsBody),
))]
async fn list(State(state): State<AppState>) -> Result<Json<ImportsBody>, Problem> {
    let imports = state.store.imports().list().await?.into_iter().map(|record| {
        let result = record.result.map(|result| JobResult { errors: None, notes: None, ..result });
        JobBody::from(ImportRecord { result, ..record })
    });
    Ok(Json(ImportsBody { imports: imports.collect() }))
}

/// One import
#[utoipa::path(get, path = "/imports/{id}", operation_id = "getImport", tag = "imports",
    params(("id" = i64, Path, description = "The import's id", example = 1)),
    responses(
        (status = 200, description = "The import", body = JobBody),
        (status = 404, description = "There is no such import"),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<ImportId>) -> Result<Json<JobBody>, Problem> {
    JobBody::find(&state, id).await.map(Json)
}

/// Cancel an import
///
/// It stops within seconds, and nothing of it is stored, unless all of its rows are stored already.
#[utoipa::path(delete, path = "/imports/{id}", operation_id = "cancelImport", tag = "imports",
    params(("id" = i64, Path, description = "The import's id", example = 1)),
    responses(
        (status = 202, description = "The import stops", body = JobBody),
        (status = 404, description = "There is no such import"),
        (status = 409, description = "The import has ended"),
    ),
)]
async fn cancel(
    State(state): State<AppState>,
    Path(id): Path<ImportId>,
) -> Result<(StatusCode, Json<JobBody>), Problem> {
    let is_cancelled = state.jobs().cancel(id).await?;
    let body = JobBody::find(&state, id).await?;
    if !is_cancelled {
        return Err(Problem::new(Kind::Conflict, format!("import {} has ended: it is {}", id.0, body.state)));
    }
    Ok((StatusCode::ACCEPTED, Json(body)))
}
