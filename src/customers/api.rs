//! `/customers`: the customers and their features.

use std::future::ready;

use atelier_core::{
    domain::{Customer, CustomerId, CustomerPatch, PatchError, Schema},
    util::calendar,
};
use atelier_files::Deletion;
use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema, openapi};
use utoipa_axum::routes;

use super::{
    features,
    sql::{notes::CustomerNote, personal_data::PersonalData},
};
use crate::catalogue::resource::{self, Resource, Target};
use crate::{
    catalogue::search,
    experiments::api::CustomerArmBody,
    imports::api::bulk::{ImportBody, TableQuery},
    outcomes::{Purchase, StoredEvent, api::feedback::FeedbackStored},
    outfits::api::OutfitBody,
    people::{Scope, gate::Caller},
    platform::{
        db::{Actor, AuditEntry, StoreError},
        http::{
            AppState, Finding, Kind, Problem,
            conditions::{ChangeHeaders, Conditions, PutHeaders, ReadHeaders},
            extract::{Json, MergePatch, Path, Query},
            paging::{self, Page, SearchQuery},
            resource::check_id,
            routes::Routes,
            schema::{CustomerIdSchema, FeaturesSchema, free_object},
        },
    },
    releases::LiveRelease,
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, put, patch, erase))
        .streaming(Scope::Catalogue, routes!(export))
        .scoped(Scope::Catalogue, routes!(outfits))
        .streaming(Scope::Catalogue, routes!(import))
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
    let found = search::customers_after(store, schema, &state.synonyms, words, after, n + 1);
    Page::collect(found, n, |customer| customer.id.to_string(), CustomerBody::from).await.map(Json)
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
    state: State<AppState>,
    id: Path<CustomerId>,
    conditions: Conditions,
) -> Result<Response, Problem> {
    resource::get::<Customer>(state, id, conditions).await
}

/// A customer to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CustomerPut, example = json!({
    "features": {"gender": "female", "age": 28, "preferred_colours": ["grey", "red"]},
}))]
pub(crate) struct CustomerPut {
    /// Optional; must be the id in the path.
    #[schema(value_type = Option<CustomerIdSchema>)]
    id: Option<String>,
    /// Features by name: a text, a number, or a list of texts, as the schema requires. A null is left out.
    #[schema(value_type = FeaturesSchema)]
    features: Map<String, Value>,
}

/// A stored customer, and warnings about them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CustomerStored {
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
async fn put(target: Target<CustomerId>, Json(body): Json<CustomerPut>) -> Result<Response, Problem> {
    resource::put::<Customer>(target, body).await
}

/// A change to a customer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CustomerPatch, example = json!({"features": {"age": 29, "fit": null}}))]
pub(crate) struct CustomerChange {
    /// Optional; must be the id in the path.
    #[schema(value_type = Option<CustomerIdSchema>)]
    id: Option<String>,
    /// Features to set, or to remove with null. The others stay.
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
    target: Target<CustomerId>,
    MergePatch(body): MergePatch<CustomerChange>,
) -> Result<Response, Problem> {
    resource::patch::<Customer>(target, body).await
}

impl Resource for Customer {
    type Deletion = Deletion<CustomerId>;
    type Body = CustomerBody;
    type StoredBody = CustomerStored;
    type PutBody = CustomerPut;
    type PatchBody = CustomerChange;

    fn unknown(id: &CustomerId) -> Problem {
        Problem::new(Kind::NotFound, format!("there is no customer {id:?}"))
    }

    fn read(body: CustomerPut, id: CustomerId, schema: &Schema) -> Result<(Self, Vec<Finding>), Problem> {
        check_id("/id", body.id.as_deref(), &id)?;
        let read = features::read(body.features, schema, "/features").map_err(Problem::invalid)?;
        Ok((Customer { id, features: read.features }, read.warnings))
    }

    fn read_patch(
        body: CustomerChange,
        id: CustomerId,
        schema: &Schema,
    ) -> Result<(CustomerPatch, Vec<Finding>), Problem> {
        check_id("/id", body.id.as_deref(), &id)?;
        let (removed, set): (Map<_, _>, Map<_, _>) =
            body.features.into_iter().partition(|(_, value)| value.is_null());
        let read = features::read(set, schema, "/features").map_err(Problem::invalid)?;
        let remove = removed.into_iter().map(|(name, _)| name).collect();
        Ok((CustomerPatch { id, set: read.features, remove }, read.warnings))
    }

    fn refuse(error: PatchError) -> Problem {
        Problem::invalid(vec![Finding::at("", error.to_string())])
    }

    fn stored(self, warnings: Vec<Finding>, _: Option<&LiveRelease>) -> CustomerStored {
        CustomerStored { customer: self.into(), warnings }
    }
}

/// Erase a customer
///
/// Deletes the profile, the outfits, the notes, the events and the purchases permanently, removes the customer from feedback, and blanks the audit log's entries
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
async fn erase(target: Target<CustomerId>) -> Result<StatusCode, Problem> {
    resource::delete::<Customer>(target).await
}

/// All data about a customer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the schema of the answer, which is streamed")]
struct CustomerExport {
    customer: CustomerBody,
    /// When the customer was stored first.
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
    events: Vec<StoredEvent>,
    /// What models see beside the profile's own list.
    purchases: Vec<Purchase>,
    /// Outcomes of suggestions in the arms of experiments.
    experiments: Vec<CustomerArmBody>,
    /// The audit log's entries about the customer.
    audit: Vec<AuditBody>,
}

/// A stylist's note about a customer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Note)]
struct NoteBody {
    /// When it was written.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// Who wrote it.
    #[schema(examples("Ada"))]
    by: String,
    /// What it says.
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
    /// When.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// A `person` with an account, a program with a `key`, or the `service` itself.
    #[schema(examples("key"))]
    by: &'static str,
    /// What was done.
    #[schema(examples("customer.put"))]
    action: String,
    /// The name or id of what was changed.
    #[schema(examples("c-000010"))]
    subject: String,
    #[schema(schema_with = describe_details, example = json!({"new": true}))]
    details: Map<String, Value>,
}

fn describe_details() -> openapi::Schema {
    free_object("What changed, or how much.")
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
/// stylists' notes, the feedback (rejections included), the events, what they bought, and the audit log's entries about them.
#[utoipa::path(get, path = "/customers/{id}/export", operation_id = "exportCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010")),
    responses(
        (status = 200, description = "All data about the customer", body = CustomerExport),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn export(State(state): State<AppState>, Path(id): Path<CustomerId>) -> Result<Response, Problem> {
    let data = state.store.customers().personal_data(&id).await?.ok_or_else(|| Customer::unknown(&id))?;
    let PersonalData {
        customer,
        created_at,
        updated_at,
        outfits,
        notes,
        feedback,
        events,
        purchases,
        arms,
        audit,
    } = data;
    let [created_at, updated_at] =
        [created_at, updated_at].map(|at| json_text(&calendar::moment(at.millis(), 1000, true)));
    let customer = json_text(&CustomerBody::from(customer));
    let head = format!("{{\"customer\":{customer},\"created_at\":{created_at},\"updated_at\":{updated_at}");
    let text = stream::once(ready(Ok(head)))
        .chain(json_list("outfits", outfits.map_ok(OutfitBody::from)))
        .chain(json_list("notes", notes.map_ok(NoteBody::from)))
        .chain(json_list("feedback", feedback.map_ok(FeedbackStored::from)))
        .chain(json_list("events", events))
        .chain(json_list("purchases", purchases))
        .chain(json_list("experiments", arms.map_ok(CustomerArmBody::from)))
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
    let items = rows.enumerate().map(|(index, row)| {
        let comma = if index == 0 { "" } else { "," };
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
    let found = state.store.saved_outfits().for_customer(&id, query.drafts, after.unwrap_or(0), n + 1);
    let page = Page::collect(found, n, |record| record.seq.to_string(), OutfitBody::from).await?;
    if page.items.is_empty() && state.store.customers().get(&id).await?.is_none() {
        return Err(Customer::unknown(&id));
    }
    Ok(Json(page))
}

/// Import customers
///
/// One customer per line, `{"id": …, "features": {…}}`, in the format of `atelier export`. Either all customers are
/// stored or none. With `mode=merge` a line changes a stored customer as PATCH does, or adds one.
/// With `mode=delete` a line is `{"id": …}`, and the customer is erased.
#[utoipa::path(post, path = "/customers/bulk", operation_id = "importCustomers",
    tag = "customers", params(TableQuery),
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"id\": \"c-new\", \"features\": {\"gender\": \"male\", \"fit\": \"slim\"}}\n"),
    responses((status = 200, description = "The customers are stored", body = ImportBody)),
)]
async fn import(
    state: State<AppState>,
    caller: Caller,
    query: Query<TableQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    resource::import::<Customer>(state, caller, query, request).await
}
