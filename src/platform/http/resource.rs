//! What `/articles` and `/customers` have in common: reading, putting, patching, deleting and importing.

use std::fmt;

use atelier_core::domain::{PatchError, Schema};
use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    AppState, Finding, Problem,
    conditions::{Conditions, differs, etag, unchanged},
    extract::{Json, Path, PathParameter, Query},
    uncancelled::uncancelled,
};
use crate::{
    catalogue::changes::{self, Copied, Copies},
    imports::{
        Importable,
        api::bulk::{self, ImportBody, Mode, TableQuery},
    },
    people::gate::Caller,
    platform::db::{ChangeError, Put, Stored, Version},
    releases::LiveRelease,
};

/// A resource with bodies.
pub(crate) trait Resource:
    Copied<Id: PathParameter + fmt::Debug, Patch: Importable> + Importable
{
    /// A line of a stream that deletes.
    type Deletion: Importable;
    /// The body of an answer.
    type Body: From<Self> + Serialize;
    /// The body of an answer to a change, with warnings.
    type StoredBody: Serialize;
    /// The bodies of PUT and PATCH.
    type PutBody;
    type PatchBody;

    /// The problem of an id without a value.
    fn unknown(id: &Self::Id) -> Problem;
    /// Gives the value, and warnings about it.
    fn read(body: Self::PutBody, id: Self::Id, schema: &Schema) -> Result<(Self, Vec<Finding>), Problem>;
    fn read_patch(
        body: Self::PatchBody,
        id: Self::Id,
        schema: &Schema,
    ) -> Result<(Self::Patch, Vec<Finding>), Problem>;
    /// The problem of a patch that cannot be applied.
    fn refuse(error: PatchError) -> Problem;
    /// Adds warnings about what the live release does not know.
    fn stored(self, warnings: Vec<Finding>, live: Option<&LiveRelease>) -> Self::StoredBody;
}

/// What a request that changes a value has beside its body.
pub(crate) type Target<Id> = (State<AppState>, Caller, Path<Id>, Conditions);

pub(crate) async fn get<R: Resource>(
    State(state): State<AppState>,
    Path(id): Path<R::Id>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.resources::<R>().get_stored(&id).await?.ok_or_else(|| R::unknown(&id))?;
    read_answer(&conditions, stored, |value| Ok(R::Body::from(value)))
}

/// What GET answers: the value's body and version, or that the caller has it.
pub(crate) fn read_answer<T, B: Serialize>(
    conditions: &Conditions,
    Stored { value, version }: Stored<T>,
    body: impl FnOnce(T) -> Result<B, Problem>,
) -> Result<Response, Problem> {
    let tag = etag(&version);
    if conditions.has(&version)? {
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    Ok((tag, Json(body(value)?)).into_response())
}

/// What PUT answers.
pub(crate) fn put_answer(put: Put, version: &Version, body: impl Serialize) -> Response {
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    (status, etag(version), Json(body)).into_response()
}

/// What DELETE answers.
pub(crate) fn delete_answer(
    deleted: Result<bool, ChangeError>,
    unknown: impl Fn() -> Problem,
) -> Result<StatusCode, Problem> {
    match deleted {
        Ok(true) => Ok(StatusCode::NO_CONTENT),
        Ok(false) => Err(unknown()),
        Err(error) => Err(unchanged(error, unknown)),
    }
}

pub(crate) async fn put<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
    body: R::PutBody,
) -> Result<Response, Problem> {
    let (value, warnings) = R::read(body, id, &state.schema())?;
    uncancelled(async move {
        let store = state.store.by(author);
        let put = store.resources().put_expected(&value, &expected, state.now()).await;
        let (put, version) = finish::<R, _>(&state, value.id(), put).await?;
        let body = value.stored(warnings, state.releases.current().as_deref());
        Ok(put_answer(put, &version, body))
    })
    .await
}

pub(crate) async fn patch<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
    body: R::PatchBody,
) -> Result<Response, Problem> {
    let (patch, warnings) = R::read_patch(body, id, &state.schema())?;
    uncancelled(async move {
        let store = state.store.by(author);
        let patched = store.resources::<R>().patch(&patch, &expected, state.now()).await;
        let Stored { value, version } = finish::<R, _>(&state, R::target(&patch), patched).await?;
        let body = value.stored(warnings, state.releases.current().as_deref());
        Ok((etag(&version), Json(body)).into_response())
    })
    .await
}

pub(crate) async fn delete<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let store = state.store.by(author);
        let deleted = store.resources::<R>().delete_expected(&id, &expected, state.now()).await;
        let deleted = finish::<R, _>(&state, &id, deleted).await?;
        if deleted { Ok(StatusCode::NO_CONTENT) } else { Err(R::unknown(&id)) }
    })
    .await
}

pub(crate) async fn import<R: Resource>(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(TableQuery { skip_bad, mode }): Query<TableQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    let imported = match mode {
        Mode::Replace => bulk::import::<R>(&state, author, skip_bad, request).await,
        Mode::Merge => bulk::import::<R::Patch>(&state, author, skip_bad, request).await,
        Mode::Delete => {
            let deleted = bulk::import::<R::Deletion>(&state, author, skip_bad, request).await;
            deleted.map(ImportBody::of_deletions)
        }
    };
    imported.map(Json)
}

/// Checks that an id in the body, at this pointer, is the one in the path.
pub(crate) fn check_id<Id: PathParameter + PartialEq + fmt::Debug>(
    pointer: &str,
    in_body: Option<&str>,
    in_path: &Id,
) -> Result<(), Problem> {
    match in_body {
        Some(id) if !Id::parse(id).is_ok_and(|id| id == *in_path) => {
            let detail = format!(
                "the body's {} is {id:?}, the path's {in_path:?}: leave it out or make them equal",
                &pointer[1..]
            );
            Err(Problem::invalid(vec![Finding::at(pointer, detail)]))
        }
        _ => Ok(()),
    }
}

async fn finish<R: Resource, T>(
    state: &AppState,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, Problem> {
    let copies = Copies { profiles: &state.profiles, releases: &state.releases };
    changes::finish::<R, T>(copies, id, changed).await.map_err(|error| match error {
        ChangeError::Missing => R::unknown(id),
        ChangeError::Differs(current) => differs(current.as_ref()),
        ChangeError::Invalid(error) => R::refuse(error),
        ChangeError::Store(error) => error.into(),
    })
}
