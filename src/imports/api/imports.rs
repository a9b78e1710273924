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
    people::{Scope, gate::Caller},
    platform::{
        db::{Author, StoreError},
        http::{
            AppState, Kind, Problem,
            extract::{Json, Path, PathParameter},
            routes::Routes,
            uncancelled::uncancelled,
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, cancel))
        .streaming(Scope::Catalogue, routes!(undo))
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
        let result = record.result.map(|result| JobResult { errors: None, warnings: None, ..result });
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

/// Undo an import
///
/// Within a week. Its rows are what they were before it, at once for all requests; new articles and outfits are gone. What was changed
/// or deleted since stays as it is, erased customers stay erased, and new customers stay.
#[utoipa::path(post, path = "/imports/{id}/undo", operation_id = "undoImport", tag = "imports",
    params(("id" = i64, Path, description = "The import's id", example = 1)),
    responses(
        (status = 200, description = "The import, which is undone", body = ImportRecord),
        (status = 404, description = "There is no such import"),
        (status = 409, description = "The import cannot be undone, or another one runs"),
    ),
)]
async fn undo(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<ImportId>,
) -> Result<Json<ImportRecord>, Problem> {
    undo_by(state, author, id).await.map(Json)
}

pub(crate) async fn undo_by(state: AppState, author: Author, id: ImportId) -> Result<ImportRecord, Problem> {
    uncancelled(async move {
        let before = find(&state, id).await?;
        let refuse =
            |why: &str| Problem::new(Kind::Conflict, format!("import {} cannot be undone {why}", id.0));
        match state.jobs().undo(author, id).await {
            Ok(true) => find(&state, id).await,
            Ok(false) => Err(refuse(&format!(
                "(it is {}): it changed nothing, ended more than a week ago, or erased customers",
                before.state
            ))),
            Err(StoreError::Busy { .. }) => {
                Err(refuse("while another one runs or the database is busy; try again when that has ended"))
            }
            Err(error) => Err(error.into()),
        }
    })
    .await
}
