//! What `/articles` and `/customers` have in common: reading, putting, patching and deleting.

use std::fmt;

use atelier_core::domain::{PatchError, Schema};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    people::gate::Caller,
    platform::{
        db::{self, ChangeError, Stored},
        http::{
            AppState, Finding, Problem,
            conditions::{Conditions, differs, etag},
            extract::{Json, Path, PathParameter},
            resource::{put_answer, read_answer},
            uncancelled::uncancelled,
        },
    },
    releases::LiveRelease,
};

/// A resource with bodies.
pub(crate) trait Resource: db::Resource<Id: PathParameter + fmt::Debug> {
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
    /// Brings the copy in memory of the value with this id up to date.
    fn refresh(state: &AppState, id: &Self::Id) -> impl Future<Output = ()> + Send;
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

/// Brings the copy of the value with this id up to date, also after an error, because the value may have been stored.
async fn finish<R: Resource, T>(
    state: &AppState,
    id: &R::Id,
    changed: Result<T, ChangeError>,
) -> Result<T, Problem> {
    R::refresh(state, id).await;
    changed.map_err(|error| match error {
        ChangeError::Missing => R::unknown(id),
        ChangeError::Differs(current) => differs(current.as_ref()),
        ChangeError::Invalid(error) => R::refuse(error),
        ChangeError::Store(error) => error.into(),
    })
}
