//! The common part of `/articles` and `/customers`: reading, putting, patching and deleting.

use std::fmt;

use atelier_core::domain::{PatchError, Schema};
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use utoipa::openapi::{self, Paths, RefOr};

use crate::{
    people::{Scope, gate::Caller},
    platform::{
        db::{self, ChangeError, Stored},
        http::{
            AppState, Finding, Problem,
            conditions::{Conditions, differs, etag},
            extract::{Json, MergePatch, Path, PathParameter},
            item::{Items, reference},
            resource::{put_answer, read_answer},
            routes::Routes,
            uncancelled::uncancelled,
        },
    },
    releases::LiveRelease,
};

/// A resource with bodies.
pub(crate) trait Resource: db::Resource<Id: PathParameter + fmt::Debug> {
    type Body: From<Self> + Serialize;
    /// The body of an answer to a change, with warnings.
    type StoredBody: Serialize;
    type PutBody: DeserializeOwned + Send + 'static;
    type PatchBody: DeserializeOwned + Send + 'static;
    /// Describes it in the API, with the schemas that it names.
    fn describe() -> (Items<'static>, Vec<(String, RefOr<openapi::Schema>)>);

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

/// Routes for one value, whose id may also be `bulk`.
pub(crate) fn router<R: Resource>() -> Routes {
    let (items, schemas) = R::describe();
    let [reads, changes]: [Paths; 2] = items.describe();
    let [path, bulk] = [format!("/{}/{{id}}", items.plural), format!("/{}/bulk", items.plural)];
    let changing = || routing::put(put::<R>).patch(patch::<R>);
    let reading = || routing::get(get::<R>).delete(delete::<R>);
    let routes = Routes::new().scoped(Scope::Catalogue, (schemas, reads, reading()));
    let routes = routes.scoped(Scope::Catalogue, (Vec::new(), changes, changing()));
    routes.also_at(&path, &bulk, reading().merge(changing()))
}

/// The part of a path that is a value's id, as its schema has it.
pub(crate) fn key(schema: &str, example: &'static str) -> (&'static str, &'static str, Value, &'static str) {
    ("id", "id", reference(schema), example)
}

async fn get<R: Resource>(
    State(state): State<AppState>,
    Path(id): Path<R::Id>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.resources::<R>().get_stored(&id).await?.ok_or_else(|| R::unknown(&id))?;
    read_answer(&conditions, stored, |value| Ok(R::Body::from(value)))
}

/// A changing request's parts besides its body.
type Target<Id> = (State<AppState>, Caller, Path<Id>, Conditions);

async fn put<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
    Json(body): Json<R::PutBody>,
) -> Result<Response, Problem> {
    let (value, warnings) = R::read(body, id, &state.schema())?;
    uncancelled(async move {
        let store = state.store.by(author);
        let put = store.resources().put(&value, &expected, state.now()).await;
        let (put, version) = finish::<R, _>(&state, value.id(), put).await?;
        let body = value.stored(warnings, state.releases().current().as_deref());
        Ok(put_answer(put, &version, body))
    })
    .await
}

async fn patch<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
    MergePatch(body): MergePatch<R::PatchBody>,
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

async fn delete<R: Resource>(
    (State(state), Caller(author), Path(id), Conditions(expected)): Target<R::Id>,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let store = state.store.by(author);
        let deleted = store.resources::<R>().delete(&id, &expected, state.now()).await;
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
