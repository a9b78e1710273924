//! What `/rules` and `/looks` have in common: reading, storing, patching and deleting.

use std::{borrow::Borrow, fmt};

use axum::http::StatusCode;
use serde_json::{Map, Value};

use crate::{
    platform::{
        db::{Author, Expected, Named},
        fault::ServiceError,
        http::{
            AppState, Kind, Problem,
            conditions::unchanged,
            extract::{PathParameter, from_value},
            fault,
            resource::{check_id, delete_answer},
            uncancelled::uncancelled,
        },
    },
    steering::documents::{Changed, Document, EditError, change},
};

/// A document with a body in JSON.
pub(crate) trait JsonDocument: Document<Name: PathParameter + PartialEq + fmt::Debug> {
    /// The problem of a name without a document.
    fn unknown(name: &Self::Name) -> Problem;
}

/// As it is stored.
pub(crate) fn read<D: JsonDocument>(stored: Named<D::Name>) -> Result<D, Problem> {
    let name: &str = stored.name.borrow();
    let document = serde_json::from_value::<D>(stored.body);
    let document = document.map_err(|error| Problem::inside(Kind::Internal, error))?;
    Ok(document.with_name(Some(name.to_owned())))
}

/// A change of a document by a request.
pub(crate) struct Edit<D: Document> {
    pub(crate) state: AppState,
    pub(crate) author: Author,
    pub(crate) name: D::Name,
    pub(crate) expected: Expected,
    pub(crate) is_trial: bool,
}

impl<D: JsonDocument> Edit<D> {
    pub(crate) async fn put(self, body: D) -> Result<Changed<D>, Problem> {
        check_id("/name", body.name(), &self.name)?;
        self.change(|_| Ok(body)).await
    }

    pub(crate) async fn patch(self, patch: Map<String, Value>) -> Result<Changed<D>, Problem> {
        let name = self.name.clone();
        let make = move |stored: Option<Value>| {
            let mut body = stored.ok_or_else(|| D::unknown(&name))?;
            merge(&mut body, Value::Object(patch));
            let document: D = from_value(body)?;
            check_id("/name", document.name(), &name)?;
            Ok(document)
        };
        self.change(make).await
    }

    async fn change(
        self,
        make: impl FnOnce(Option<Value>) -> Result<D, Problem> + Send + 'static,
    ) -> Result<Changed<D>, Problem> {
        let Self { state, author, name, expected, is_trial } = self;
        uncancelled(async move {
            let store = state.store.by(author);
            let changed =
                change((&store, state.releases()), &name, &expected, is_trial, state.now(), make).await;
            changed.map_err(|error| match error {
                EditError::Refused(problem) => problem,
                EditError::Faults(faults) => fault::problem(ServiceError::Faults(faults)),
                EditError::Change(error) => unchanged(error, || D::unknown(&name)),
            })
        })
        .await
    }

    pub(crate) async fn delete(self) -> Result<StatusCode, Problem> {
        let Self { state, author, name, expected, .. } = self;
        uncancelled(async move {
            let store = state.store.by(author);
            let deleted = store.documents().delete(&name, &expected, state.now()).await;
            let deleted = delete_answer(deleted, || D::unknown(&name))?;
            state.releases().apply_change().await;
            Ok(deleted)
        })
        .await
    }
}

/// Merges as RFC 7396 says.
pub(crate) fn merge(target: &mut Value, change: Value) {
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("it is an object; this is a bug");
    for (name, value) in change {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}
