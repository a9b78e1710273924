//! What the API does with documents of every kind: lists, reads, stores, patches and deletes them, and describes that.

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
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        path::Parameter,
        schema::{AdditionalProperties, ObjectBuilder},
    },
};

use crate::{
    people::{Scope, gate::Caller},
    platform::{
        db::{Author, ChangeError, DocumentName, Expected, Named, Stored},
        fault::ServiceError,
        http::{
            AppState, Kind, Problem,
            conditions::{ChangeHeaders, Conditions, PutHeaders, ReadHeaders, unchanged},
            extract::{Json, MergePatch, Path, PathParameter, Query, from_value},
            fault,
            resource::{check_id, put_answer, read_answer},
            routes::Routes,
            uncancelled::uncancelled,
        },
    },
    steering::documents::{self, Changed, Document, EditError, change},
};

/// What the API says of a kind of document.
pub(crate) struct About {
    /// The path, the tag, and the field of the list.
    pub(crate) plural: &'static str,
    /// With its article.
    pub(crate) one: &'static str,
    /// A name.
    pub(crate) example: &'static str,
    pub(crate) scope: Scope,
    /// Whether a change may work on a complete release.
    pub(crate) is_long: bool,
    pub(crate) put: &'static str,
    /// The summary, and the description.
    pub(crate) patch: (&'static str, &'static str),
    /// A patch as JSON.
    pub(crate) patch_example: &'static str,
    pub(crate) delete: (&'static str, &'static str),
}

/// A document that programs read and change.
pub(crate) trait ApiDocument:
    Document<Name: PathParameter + PartialEq + fmt::Debug> + ToSchema
{
    const ABOUT: About;
    /// The query of a change.
    type Query: ChangeQuery;
    /// What a change answers.
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

/// The query of a request that changes a document.
pub(crate) trait ChangeQuery: DeserializeOwned + IntoParams + Send + Sync + 'static {
    /// Whether a change may be only checked.
    const TRIES: bool;

    /// Whether this one is.
    fn is_trial(&self) -> Result<bool, Problem>;
}

/// The query of a change that takes no parameters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

impl ChangeQuery for NoQuery {
    const TRIES: bool = false;

    fn is_trial(&self) -> Result<bool, Problem> {
        Ok(false)
    }
}

/// Routes for the documents of a kind and for one of them.
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

/// Routes for one document of a kind.
pub(crate) fn item_router<D: ApiDocument>() -> Routes {
    let About { plural, one, example, scope, .. } = D::ABOUT;
    let (patch_words, delete_words) = (D::ABOUT.patch, D::ABOUT.delete);
    let (what, tags) = (D::Name::KIND, [plural]);
    let name = capitalised(what);
    let [document, stored] = [<D as ToSchema>::name(), <D::Answer as ToSchema>::name()];
    let path = format!("/{plural}/{{name}}");
    let in_path = json!({
        "name": "name", "in": "path", "required": true, "description": format!("The {what}'s name"), "example": example,
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    });
    let parameters = |others: [Vec<Parameter>; 2]| {
        let others = others.into_iter().flatten().map(|other| json!(other));
        [in_path.clone()].into_iter().chain(others).collect::<Vec<Value>>()
    };
    let query = || D::Query::into_params(|| None);
    let content = |schema: &str| json!({"schema": reference(schema)});
    let answer = |description: String, schema: &str, version: &str| {
        json!({
            "description": description, "content": {"application/json": content(schema)},
            "headers": {"etag": {"description": version, "schema": {"type": "string"}}},
        })
    };
    let missing = json!({"description": format!("There is no such {what}")});
    let differs = json!({"description": format!("The {what} has another version")});
    let reads = json!({&path: {
        "get": {
            "tags": tags, "summary": format!("One {what}"), "operationId": format!("get{name}"),
            "parameters": parameters([ReadHeaders::into_params(|| None), Vec::new()]),
            "responses": {
                "200": answer(format!("The {what}"), &document, "Its version"),
                "304": {"description": format!("The {what} has one of the versions in If-None-Match")},
                "404": missing,
            },
        },
        "delete": {
            "tags": tags, "summary": delete_words.0, "description": delete_words.1, "operationId": format!("delete{name}"),
            "parameters": parameters([ChangeHeaders::into_params(|| None), Vec::new()]),
            "responses": {"204": {"description": format!("The {what} is deleted")}, "404": missing, "412": differs},
        },
    }});
    let (checked, would) = if D::Query::TRIES { (", or checked", ", or would be") } else { ("", "") };
    let patch_schema = format!("{name}Patch");
    let changes = json!({&path: {
        "put": {
            "tags": tags, "summary": format!("Store {one}"), "description": D::ABOUT.put, "operationId": format!("put{name}"),
            "parameters": parameters([query(), PutHeaders::into_params(|| None)]),
            "requestBody": {"required": true, "content": {"application/json": content(&document)}},
            "responses": {
                "200": answer(format!("The {what} is replaced{checked}"), &stored, "Its new version"),
                "201": answer(format!("The {what} is added"), &stored, "Its version"),
                "412": {"description": format!("The {what} has another version, or exists already")},
            },
        },
        "patch": {
            "tags": tags, "summary": patch_words.0, "description": patch_words.1, "operationId": format!("patch{name}"),
            "parameters": parameters([query(), ChangeHeaders::into_params(|| None)]),
            "requestBody": {"required": true, "content": {
                "application/merge-patch+json": content(&patch_schema), "application/json": content(&patch_schema),
            }},
            "responses": {
                "200": answer(format!("The {what} as it is now{would}"), &stored, "Its new version"),
                "404": missing, "412": differs,
            },
        },
    }});
    let example: Value = serde_json::from_str(D::ABOUT.patch_example).expect("it is JSON; this is a bug");
    let about = format!(
        "A change to {one}: set fields, or remove them with null. An object is merged into the stored object."
    );
    let patch_body = ObjectBuilder::new()
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
        .description(Some(about))
        .examples([example]);
    let mut schemas = vec![(document.into_owned(), D::schema()), (stored.into_owned(), D::Answer::schema())];
    schemas.push((patch_schema, patch_body.into()));
    D::schemas(&mut schemas);
    D::Answer::schemas(&mut schemas);
    let reads = (schemas, from_json(reads), routing::get(get::<D>).delete(delete::<D>));
    let changes = (Vec::new(), from_json(changes), routing::put(put::<D>).patch(patch::<D>));
    let routes = Routes::new().scoped(scope, reads);
    if D::ABOUT.is_long { routes.unlimited(scope, changes) } else { routes.scoped(scope, changes) }
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn from_json<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is a part of an OpenAPI document; this is a bug")
}

/// `rule` as `Rule`
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
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
    check_id("/name", body.name().as_deref(), &name)?;
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
        check_id("/name", document.name().as_deref(), &own)?;
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

/// A document as it is stored.
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
    let fields = target.as_object_mut().expect("it is an object; this is a bug");
    for (name, value) in change {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}
