//! Documents of every kind in the API: list, read, store, patch and delete, with descriptions.

use std::{borrow::Borrow, collections::BTreeMap, fmt};

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{AdditionalProperties, ObjectBuilder},
};

use crate::{
    people::{Scope, gate::Caller},
    platform::{
        db::{Author, ChangeError, DocumentName, Expected, Named, Stored},
        fault::ServiceError,
        http::{
            AppState, Kind, Problem,
            conditions::{Conditions, unchanged},
            extract::{Json, MergePatch, Path, PathParameter, Query, from_value},
            fault,
            item::{Items, add_schema, capitalised, from_json, reference},
            resource::{check_id, put_answer, read_answer},
            routes::Routes,
            uncancelled::uncancelled,
        },
    },
    steering::documents::{self, Changed, Document, EditError, change},
};

pub(crate) struct About {
    /// The path, the tag, and the field of the list.
    pub(crate) plural: &'static str,
    /// With its article.
    pub(crate) one: &'static str,
    pub(crate) example: &'static str,
    pub(crate) scope: Scope,
    /// Whether a change may work on a complete release.
    pub(crate) is_long: bool,
    pub(crate) put: &'static str,
    /// The summary, and the description.
    pub(crate) patch: (&'static str, &'static str),
    pub(crate) patch_example: &'static str,
    pub(crate) delete: (&'static str, &'static str),
}

/// A document that programs read and change.
pub(crate) trait ApiDocument:
    Document<Name: PathParameter + PartialEq + fmt::Debug> + ToSchema
{
    const ABOUT: About;
    type Query: ChangeQuery;
    type Answer: Serialize + ToSchema;

    fn answer(
        state: &AppState,
        changed: Changed<Self>,
        query: Self::Query,
    ) -> impl Future<Output = Result<Self::Answer, Problem>> + Send;

    /// With what a check needs of this service.
    fn received(self, _state: &AppState) -> Self {
        self
    }

    /// As callers see it: without what only the service uses, and with what it knows besides.
    fn shown(self, _state: &AppState) -> impl Future<Output = Result<Self, Problem>> + Send {
        async { Ok(self) }
    }
}

pub(crate) trait ChangeQuery: DeserializeOwned + IntoParams + Send + Sync + 'static {
    /// Whether a change may be only checked.
    const TRIES: bool = false;

    /// Whether this one is.
    fn is_trial(&self) -> Result<bool, Problem> {
        Ok(false)
    }
}

/// The query of a change that takes no parameters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

impl ChangeQuery for NoQuery {}

pub(crate) fn router<D: ApiDocument>() -> Routes {
    let About { plural, scope, .. } = D::ABOUT;
    let name = capitalised(plural);
    let documents = json!({"type": "array", "items": reference(&<D as ToSchema>::name())});
    let schema = json!({"type": "object", "required": [plural], "properties": {plural: documents}});
    let paths = json!({format!("/{plural}"): {"get": {
        "tags": [plural], "summary": name, "description": "All of them, by name.", "operationId": format!("list{name}"),
        "responses": {"200": {"description": format!("The {plural}"), "content": {"application/json": {"schema": reference(&name)}}}},
    }}});
    let list = (vec![(name, from_json(schema))], from_json(paths), routing::get(list::<D>));
    item_router::<D>().scoped(scope, list)
}

pub(crate) fn item_router<D: ApiDocument>() -> Routes {
    let About { plural, one, example, scope, put, patch, delete, .. } = D::ABOUT;
    let patch_schema = format!("{}Patch", capitalised(D::Name::KIND));
    let name = json!({"type": "string", "minLength": 1, "maxLength": 128});
    let items = Items {
        plural,
        what: D::Name::KIND,
        one,
        key: ("name", "name", name, example),
        shown: &<D as ToSchema>::name(),
        put_body: &<D as ToSchema>::name(),
        patch_body: &patch_schema,
        stored: &<D::Answer as ToSchema>::name(),
        put,
        patch,
        delete,
        query: D::Query::into_params(|| None),
        may_try: D::Query::TRIES,
    };
    let [reads, changes] = items.describe();
    let example: Value = serde_json::from_str(D::ABOUT.patch_example).expect("it is JSON");
    let about = format!(
        "A change to {one}: set fields, or remove them with null. An object is merged into the stored object."
    );
    let patch_body = ObjectBuilder::new()
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
        .description(Some(about))
        .examples([example]);
    let mut schemas = vec![(patch_schema, patch_body.into())];
    add_schema::<D>(&mut schemas);
    add_schema::<D::Answer>(&mut schemas);
    let reads = (schemas, reads, routing::get(get::<D>).delete(self::delete::<D>));
    let changes = (Vec::new(), changes, routing::put(self::put::<D>).patch(self::patch::<D>));
    let routes = Routes::new().scoped(scope, reads);
    if D::ABOUT.is_long { routes.unlimited(scope, changes) } else { routes.scoped(scope, changes) }
}

async fn list<D: ApiDocument>(
    State(state): State<AppState>,
) -> Result<Json<BTreeMap<&'static str, Vec<D>>>, Problem> {
    let mut shown = Vec::new();
    for stored in state.store.documents::<D::Name>().list().await? {
        shown.push(read::<D>(stored.value)?.shown(&state).await?);
    }
    Ok(Json([(D::ABOUT.plural, shown)].into()))
}

async fn get<D: ApiDocument>(
    State(state): State<AppState>,
    Path(name): Path<D::Name>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.documents().get(&name).await?.ok_or_else(|| unknown(&name))?;
    let shown = read::<D>(stored.value)?.shown(&state).await?;
    read_answer(&conditions, Stored { value: shown, version: stored.version }, Ok)
}

async fn put<D: ApiDocument>(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<D::Name>,
    Query(query): Query<D::Query>,
    Conditions(expected): Conditions,
    Json(mut body): Json<D>,
) -> Result<Response, Problem> {
    check_id("/name", body.name_mut().as_deref(), &name)?;
    edit((state, author), name, expected, query, move |_| Ok(body.clone())).await
}

/// A JSON Merge Patch (RFC 7396).
async fn patch<D: ApiDocument>(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<D::Name>,
    Query(query): Query<D::Query>,
    Conditions(expected): Conditions,
    MergePatch(patch): MergePatch<Map<String, Value>>,
) -> Result<Response, Problem> {
    let own = name.clone();
    let make = move |stored: Option<Value>| {
        let mut body = D::Name::shown(stored.ok_or(ChangeError::Missing)?);
        merge(&mut body, Value::Object(patch.clone()));
        let mut document: D = from_value(body)?;
        check_id("/name", document.name_mut().as_deref(), &own)?;
        Ok(document)
    };
    edit((state, author), name, expected, query, make).await
}

async fn edit<D: ApiDocument>(
    (state, author): (AppState, Author),
    name: D::Name,
    expected: Expected,
    query: D::Query,
    make: impl Fn(Option<Value>) -> Result<D, EditError> + Send + Sync + 'static,
) -> Result<Response, Problem> {
    let (own, is_trial) = (state.clone(), query.is_trial()?);
    let changed = uncancelled(async move {
        let store = own.store.by(author);
        let make = |stored| Ok(make(stored)?.received(&own));
        let changed = change((&store, own.releases()), &name, &expected, is_trial, own.now(), make).await;
        changed.map_err(|error| refuse(error, &name))
    });
    let changed = changed.await?;
    let (put, version) = (changed.put, changed.version.clone());
    let body = D::answer(&state, changed, query).await?;
    Ok(if is_trial { Json(body).into_response() } else { put_answer(put, &version, body) })
}

async fn delete<D: ApiDocument>(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(name): Path<D::Name>,
    Conditions(expected): Conditions,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let store = state.store.by(author);
        let deleted = documents::delete::<D>((&store, state.releases()), &name, &expected, state.now()).await;
        if deleted.map_err(|error| refuse(error, &name))? {
            Ok(StatusCode::NO_CONTENT)
        } else {
            Err(unknown(&name))
        }
    })
    .await
}

fn refuse<Name: DocumentName>(error: EditError, name: &Name) -> Problem {
    match error {
        EditError::Refused(problem) => problem,
        EditError::Faults(faults) => fault::problem(ServiceError::Faults(faults)),
        EditError::Change(error) => unchanged(error, || unknown(name)),
    }
}

/// The problem of a name without a document.
pub(crate) fn unknown<Name: DocumentName>(name: &Name) -> Problem {
    let (what, name): (_, &str) = (Name::KIND, name.borrow());
    Problem::new(Kind::NotFound, format!("there is no {what} {name:?}; PUT it first"))
}

pub(crate) fn read<D: Document>(stored: Named<D::Name>) -> Result<D, Problem> {
    let name: &str = stored.name.borrow();
    let document = serde_json::from_value::<D>(stored.body);
    let document = document.map_err(|error| Problem::inside(Kind::Internal, error))?;
    Ok(document.with_name(Some(name.to_owned())))
}

/// Merges as RFC 7396 says.
fn merge(target: &mut Value, change: Value) {
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("it is an object");
    for (name, value) in change {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}
