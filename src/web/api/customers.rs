//! `/customers`: the customers and their features.

use std::{fmt, future::ready};

use atelier_core::{
    domain::{Customer, CustomerId, CustomerPatch, PatchError, Schema},
    util::calendar,
};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{
    bulk::{self, ImportBody, Mode, TableQuery},
    features,
    feedback::FeedbackStored,
    outfits::OutfitBody,
};
use crate::{
    service::{access::Scope, customers, search},
    store::{Actor, AuditEntry, ChangeError, CustomerNote, PersonalData, Put, StoreError, Stored},
    web::http::{
        AppState, Finding, Kind, Problem,
        conditions::{self, ChangeHeaders, Conditions, PutHeaders, ReadHeaders, etag},
        extract::{Json, MergePatch, Path, PathParameter, Query},
        keys::Caller,
        paging::{self, Page, SearchQuery},
        routes::Routes,
        schema::{CustomerIdSchema, FeaturesSchema, free_object},
        uncancelled::uncancelled,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, put, patch, erase))
        .streaming(Scope::Catalogue, routes!(export))
        .scoped(Scope::Catalogue, routes!(outfits))
        .streaming(Scope::Catalogue, routes!(bring_in))
        .also_at(
            "/customers/{id}",
            "/customers/bulk",
            axum::routing::get(get).put(put).patch(patch).delete(erase),
        )
}

/// A customer and their features.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Customer)]
pub(crate) struct CustomerBody {
    #[schema(value_type = CustomerIdSchema)]
    id: String,
    /// Features by name: a text, a number, or a list of texts.
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

impl From<Customer> for CustomerBody {
    fn from(customer: Customer) -> Self {
        Self { id: customer.id.to_string(), features: features::write(&customer.features) }
    }
}

/// Customers
///
/// Sorted by the bytes of their ids.
#[utoipa::path(get, path = "/customers", operation_id = "listCustomers",
    tag = "customers", params(SearchQuery), responses(
    (status = 200, description = "A page of customers", body = Page<CustomerBody>),
))]
async fn list(
    State(state): State<AppState>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Page<CustomerBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |id| CustomerId::new(id).ok())?;
    let (store, schema) = (&state.store, state.schema());
    let (words, after) = (&query.search, after.as_ref());
    let found = search::customers_after(store, &schema, &state.synonyms, words, after, n + 1).await?;
    Ok(Json(Page::new(found, n, |customer| customer.id.to_string(), CustomerBody::from)))
}

/// One customer
#[utoipa::path(get, path = "/customers/{id}", operation_id = "getCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), ReadHeaders),
    responses(
        (status = 200, description = "The customer", body = CustomerBody),
        (status = 304, description = "The caller has this version"),
        (status = 404, description = "There is no such customer"),
        (status = 412, description = "The customer has another version"),
    ),
)]
async fn get(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    let stored = state.store.customers().get_stored(&id).await?.ok_or_else(|| unknown(&id))?;
    let tag = etag(&stored.version);
    if conditions.has(&stored.version)? {
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    Ok((tag, Json(CustomerBody::from(stored.value))).into_response())
}

/// A customer to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CustomerPut, example = json!({
    "features": {"gender": "female", "age": 28, "preferred_colours": ["grey", "red"]},
}))]
struct CustomerPut {
    /// Optional; must be the id in the path.
    #[schema(value_type = Option<CustomerIdSchema>)]
    id: Option<String>,
    /// Features by name: a text, a number, or a list of texts, as the schema requires. A null is left out.
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

/// A stored customer, and warnings about them.
#[derive(Debug, Serialize, ToSchema)]
struct CustomerStored {
    #[serde(flatten)]
    customer: CustomerBody,
    /// Features that the schema does not have. They are stored, but models do not see them.
    warnings: Vec<Finding>,
}

/// Add or replace a customer
///
/// Features that the body leaves out are deleted.
#[utoipa::path(put, path = "/customers/{id}", operation_id = "putCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), PutHeaders),
    request_body = CustomerPut,
    responses(
        (status = 200, description = "The customer existed; this is the stored one now", body = CustomerStored),
        (status = 201, description = "The customer is new", body = CustomerStored),
        (status = 412, description = "The customer has another version, or exists already"),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<CustomerId>,
    Conditions(expected): Conditions,
    Json(body): Json<CustomerPut>,
) -> Result<Response, Problem> {
    let (customer, warnings) = body.read(id, &state.schema())?;
    let (customer, put) = uncancelled(async move {
        let put =
            customers::put(&state.store, &state.profiles, author, &customer, &expected, state.now()).await;
        (customer, put)
    })
    .await;
    let (put, version) = put.map_err(|error| unchanged(&customer.id, error))?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    let body = CustomerStored { customer: customer.into(), warnings };
    Ok((status, etag(&version), Json(body)).into_response())
}

/// A change of a customer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CustomerPatch, example = json!({"features": {"age": 29, "fit": null}}))]
struct CustomerChange {
    /// Optional; must be the id in the path.
    #[schema(value_type = Option<CustomerIdSchema>)]
    id: Option<String>,
    /// Features to set, or with null to remove. The others stay.
    #[serde(default)]
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

/// Change a customer
///
/// A JSON Merge Patch (RFC 7396): features that the body leaves out stay, and null removes one.
#[utoipa::path(patch, path = "/customers/{id}", operation_id = "patchCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), ChangeHeaders),
    request_body(content(
        (CustomerChange = "application/merge-patch+json"),
        (CustomerChange = "application/json"),
    )),
    responses(
        (status = 200, description = "The customer as they are stored now", body = CustomerStored),
        (status = 404, description = "There is no such customer"),
        (status = 412, description = "The customer has another version"),
    ),
)]
async fn patch(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<CustomerId>,
    Conditions(expected): Conditions,
    MergePatch(body): MergePatch<CustomerChange>,
) -> Result<Response, Problem> {
    let (patch, warnings) = body.read(id.clone(), &state.schema())?;
    let stored = uncancelled(async move {
        customers::patch(&state.store, &state.profiles, author, &patch, &expected, state.now()).await
    })
    .await;
    let Stored { value, version } = stored.map_err(|error| unchanged(&id, error))?;
    Ok((etag(&version), Json(CustomerStored { customer: value.into(), warnings })).into_response())
}

impl CustomerChange {
    fn read(self, id: CustomerId, schema: &Schema) -> Result<(CustomerPatch, Vec<Finding>), Problem> {
        check_id(self.id.as_deref(), &id)?;
        let (removed, set): (Map<_, _>, Map<_, _>) =
            self.features.into_iter().partition(|(_, value)| value.is_null());
        let read = features::read(set, schema, "/features").map_err(Problem::invalid)?;
        let remove = removed.into_iter().map(|(name, _)| name).collect();
        Ok((CustomerPatch { id, set: read.features, remove }, read.warnings))
    }
}

fn unchanged(id: &CustomerId, error: ChangeError) -> Problem {
    let invalid = |error: PatchError| Problem::invalid(vec![Finding::at("", error.to_string())]);
    conditions::problem(error, || unknown(id), invalid)
}

impl CustomerPut {
    fn read(self, id: CustomerId, schema: &Schema) -> Result<(Customer, Vec<Finding>), Problem> {
        check_id(self.id.as_deref(), &id)?;
        let read = features::read(self.features, schema, "/features").map_err(Problem::invalid)?;
        Ok((Customer { id, features: read.features }, read.warnings))
    }
}

/// Checks that an id in the body is the one in the path.
pub(crate) fn check_id<Id: PathParameter + PartialEq + fmt::Debug>(
    in_body: Option<&str>,
    in_path: &Id,
) -> Result<(), Problem> {
    match in_body {
        Some(id) if !Id::parse(id).is_ok_and(|id| id == *in_path) => {
            let detail =
                format!("the body's id is {id:?}, the path's {in_path:?}: leave it out or make them equal");
            Err(Problem::invalid(vec![Finding::at("/id", detail)]))
        }
        _ => Ok(()),
    }
}

/// Erase a customer
///
/// Deletes the profile, the outfits and the notes permanently, removes the customer from feedback, and blanks the audit log's entries
/// about them. With `SQLite` the id is soon in no file of the database either. Later feedback that names the customer is
/// refused; a later PUT or import adds them again.
#[utoipa::path(delete, path = "/customers/{id}", operation_id = "eraseCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), ChangeHeaders),
    responses(
        (status = 204, description = "The customer is erased"),
        (status = 404, description = "There is no such customer"),
        (status = 412, description = "The customer has another version"),
    ),
)]
async fn erase(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<CustomerId>,
    Conditions(expected): Conditions,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let erased =
            customers::erase(&state.store, &state.profiles, author, &id, &expected, state.now()).await;
        match erased {
            Ok(true) => Ok(StatusCode::NO_CONTENT),
            Ok(false) => Err(unknown(&id)),
            Err(error) => Err(unchanged(&id, error)),
        }
    })
    .await
}

/// All data about a customer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the schema of the answer, which is streamed")]
struct CustomerExport {
    customer: CustomerBody,
    #[schema(examples("2026-11-21T14:34:00Z"))]
    created_at: String,
    /// When the profile changed last.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    updated_at: String,
    /// With drafts, and with those that were deleted and can still be brought back.
    outfits: Vec<OutfitBody>,
    /// Stylists' notes about the customer.
    notes: Vec<NoteBody>,
    feedback: Vec<FeedbackStored>,
    /// The audit log's entries about the customer.
    audit: Vec<AuditBody>,
}

/// A stylist's note about a customer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Note)]
struct NoteBody {
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    #[schema(examples("Ada"))]
    by: String,
    #[schema(examples("Prefers to be called in the evening"))]
    note: String,
}

impl From<CustomerNote> for NoteBody {
    fn from(CustomerNote { author, note, at, .. }: CustomerNote) -> Self {
        let at = calendar::moment(at.millis(), 1000, true);
        Self { at, by: author, note: note.as_str().to_owned() }
    }
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct AuditBody {
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// A `person` with an account, a program with a `key`, or the `service` itself.
    #[schema(examples("key"))]
    by: &'static str,
    #[schema(examples("customer.put"))]
    action: String,
    #[schema(examples("c-000010"))]
    subject: String,
    #[schema(schema_with = free_object, example = json!({"new": true}))]
    details: Map<String, Value>,
}

impl From<AuditEntry> for AuditBody {
    fn from(AuditEntry { at, actor, action, subject, details, .. }: AuditEntry) -> Self {
        let by = match actor {
            Actor::Person(_) => "person",
            Actor::Key(_) => "key",
            Actor::Service | Actor::Visitor => "service",
        };
        Self { at: calendar::moment(at.millis(), 1000, true), by, action, subject, details }
    }
}

/// Export a customer's data
///
/// Everything stored about a customer, which a shop must give a customer who asks for it: the profile, the outfits,
/// stylists' notes, the feedback (rejections included), and the audit log's entries about them.
#[utoipa::path(get, path = "/customers/{id}/export", operation_id = "exportCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010")),
    responses(
        (status = 200, description = "All data about the customer", body = CustomerExport),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn export(State(state): State<AppState>, Path(id): Path<CustomerId>) -> Result<Response, Problem> {
    let data = state.store.customers().personal_data(&id).await?.ok_or_else(|| unknown(&id))?;
    let PersonalData { customer, created_at, updated_at, outfits, notes, feedback, audit } = data;
    let [created_at, updated_at] =
        [created_at, updated_at].map(|at| json_text(&calendar::moment(at.millis(), 1000, true)));
    let customer = json_text(&CustomerBody::from(customer));
    let head = format!("{{\"customer\":{customer},\"created_at\":{created_at},\"updated_at\":{updated_at}");
    let text = stream::once(ready(Ok(head)))
        .chain(json_list("outfits", outfits.map_ok(OutfitBody::from)))
        .chain(json_list("notes", notes.map_ok(NoteBody::from)))
        .chain(json_list("feedback", feedback.map_ok(FeedbackStored::from)))
        .chain(json_list("audit", audit.map_ok(AuditBody::from)))
        .chain(stream::once(ready(Ok("}".to_owned()))))
        // The answer has already started, so an error can only cut it off and be logged.
        .inspect_err(|error| tracing::error!(%error, "the export of a customer was cut off"));
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(text)).into_response())
}

/// A field with a list, which follows another field of an object.
fn json_list<Row: Serialize>(
    name: &str,
    rows: impl Stream<Item = Result<Row, StoreError>> + Send,
) -> impl Stream<Item = Result<String, StoreError>> + Send {
    let begin = format!(",\"{name}\":[");
    let items = rows.enumerate().map(|(place, row)| {
        let comma = if place == 0 { "" } else { "," };
        row.map(|row| format!("{comma}{}", json_text(&row)))
    });
    stream::once(ready(Ok(begin))).chain(items).chain(stream::once(ready(Ok("]".to_owned()))))
}

fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the bodies of answers are JSON; this is a bug")
}

/// The query for a page of outfits.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutfitsQuery {
    /// Drafts too, whose articles have nulls as blanks.
    #[serde(default)]
    drafts: bool,
    /// `next_cursor` of the previous page; without it, the first page.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
    /// Maximum number of items.
    n: Option<u32>,
}

/// A customer's outfits
///
/// In the order in which they were stored.
#[utoipa::path(get, path = "/customers/{id}/outfits", operation_id = "listCustomerOutfits", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010"), OutfitsQuery),
    responses(
        (status = 200, description = "A page of outfits", body = Page<OutfitBody>),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn outfits(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
    Query(query): Query<OutfitsQuery>,
) -> Result<Json<Page<OutfitBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |seq| seq.parse().ok())?;
    let found =
        state.store.saved_outfits().for_customer(&id, query.drafts, after.unwrap_or(0), n + 1).await?;
    if found.is_empty() && state.store.customers().get(&id).await?.is_none() {
        return Err(unknown(&id));
    }
    Ok(Json(Page::new(found, n, |record| record.seq.to_string(), OutfitBody::from)))
}

/// Import customers
///
/// One customer per line, `{"id": …, "features": {…}}`, in the format of `atelier export`. Either all customers are
/// stored or none. With `mode=merge` a line changes a stored customer as PATCH does, or adds one.
#[utoipa::path(post, path = "/customers/bulk", operation_id = "importCustomers",
    tag = "customers", params(TableQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"id\": \"c-new\", \"features\": {\"gender\": \"male\", \"fit\": \"slim\"}}\n"),
    responses((status = 200, description = "The customers are stored", body = ImportBody)),
)]
async fn bring_in(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(TableQuery { skip_bad, mode }): Query<TableQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    let brought = match mode {
        Mode::Replace => bulk::import::<Customer>(&state, author, skip_bad, request).await,
        Mode::Merge => bulk::import::<CustomerPatch>(&state, author, skip_bad, request).await,
    };
    brought.map(Json)
}

pub(crate) fn unknown(id: &CustomerId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no customer {id:?}"))
}
