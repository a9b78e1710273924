//! `/imports`: the feeds that are imported in the background.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    imports::{
        jobs::JobResult,
        sql::imports::{ImportId, ImportRecord},
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

async fn find(state: &AppState, id: ImportId) -> Result<ImportRecord, Problem> {
    state.store.imports().get(id).await?.ok_or_else(|| {
        let detail = format!("there is no import {}; the last thirty of each table are kept", id.0);
        Problem::new(Kind::NotFound, detail)
    })
}

/// The answer to a request that began an import.
pub(super) async fn accepted(state: &AppState, id: ImportId) -> Result<Response, Problem> {
    let location = [(header::LOCATION, format!("/imports/{}", id.0))];
    Ok((StatusCode::ACCEPTED, location, Json(find(state, id).await?)).into_response())
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Imports)]
struct ImportsBody {
    imports: Vec<ImportRecord>,
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
        ImportRecord { result, ..record }
    });
    Ok(Json(ImportsBody { imports: imports.collect() }))
}

/// One import
#[utoipa::path(get, path = "/imports/{id}", operation_id = "getImport", tag = "imports",
    params(("id" = i64, Path, description = "The import's id", example = 1)),
    responses(
        (status = 200, description = "The import", body = ImportRecord),
    ),
)]
async fn get(State(state): State<AppState>, Path(id): Path<ImportId>) -> Result<Json<ImportRecord>, Problem> {
    find(&state, id).await.map(Json)
}

/// Cancel an import
///
/// It stops within seconds, and nothing of it is stored, unless all of its rows are stored already.
#[utoipa::path(delete, path = "/imports/{id}", operation_id = "cancelImport", tag = "imports",
    params(("id" = i64, Path, description = "The import's id", example = 1)),
    responses(
        (status = 202, description = "The import stops", body = ImportRecord),
        (status = 409, description = "The import has ended"),
    ),
)]
async fn cancel(
    State(state): State<AppState>,
    Path(id): Path<ImportId>,
) -> Result<(StatusCode, Json<ImportRecord>), Problem> {
    let is_cancelled = state.jobs().cancel(id).await?;
    let body = find(&state, id).await?;
    if !is_cancelled {
        return Err(Problem::new(Kind::Conflict, format!("import {} has ended: it is {}", id.0, body.state)));
    }
    Ok((StatusCode::ACCEPTED, Json(body)))
}
