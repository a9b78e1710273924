//! What `/articles` and `/customers` have in common: reading, putting, patching, deleting and importing.

use std::fmt;

use atelier_core::domain::{PatchError, Schema};
use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    catalogue::changes::{self, Copied, Copies},
    imports::{
        Importable,
        api::bulk::{self, ImportBody, Mode, TableQuery},
    },
    people::gate::Caller,
    platform::{
        db::{ChangeError, Stored},
        http::{
            AppState, Finding, Problem,
            conditions::{Conditions, differs, etag},
            extract::{Json, Path, PathParameter, Query},
            resource::{put_answer, read_answer},
            uncancelled::uncancelled,
        },
    },
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

pub(crate) async fn put<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
    body: R::PutBody,
) -> Result<Response, Problem> {
    let (value, warnings) = R::read(body, id, &state.schema())?;
    uncancelled(async move {
        let store = state.store.by(author);
        let put = store.resources().put_expected(&value, &expected, state.now()).await;
        let (put, version) = finish::<R, _>(&state, value.id(), put).await?;
        let body = value.stored(warnings, state.releases().current().as_deref());
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
        let body = value.stored(warnings, state.releases().current().as_deref());
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

async fn finish<R: Resource, T>(
    state: &AppState,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, Problem> {
    let copies = Copies { profiles: state.profiles(), releases: state.releases() };
    changes::finish::<R, T>(copies, id, changed).await.map_err(|error| match error {
        ChangeError::Missing => R::unknown(id),
        ChangeError::Differs(current) => differs(current.as_ref()),
        ChangeError::Invalid(error) => R::refuse(error),
        ChangeError::Store(error) => error.into(),
    })
}
