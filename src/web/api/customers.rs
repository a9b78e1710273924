//! `/customers`: the customers and their features.

use std::{fmt, future::ready};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{
    bulk::{self, BulkQuery, ImportBody},
    features,
    feedback::FeedbackStored,
    outfits::OutfitBody,
};
use crate::{
    domain::{Customer, CustomerId, Schema},
    service::{access::Scope, customers},
    store::{Actor, AuditEntry, PersonalData, Put, StoreError},
    util::calendar,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{Json, Path, PathParameter, Query},
        keys::Caller,
        paging::{self, Page, PageQuery, SearchQuery},
        routes::Routes,
        schema::free_object,
        uncancelled::uncancelled,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Catalogue, routes!(list))
        .scoped(Scope::Catalogue, routes!(get, put, erase))
        .streaming(Scope::Catalogue, routes!(export))
        .scoped(Scope::Catalogue, routes!(outfits))
        .streaming(Scope::Catalogue, routes!(bring_in))
        .also_at("/customers/{id}", "/customers/bulk", axum::routing::get(get).put(put).delete(erase))
}

/// A customer and their features.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Customer)]
pub(crate) struct CustomerBody {
    #[schema(examples("c-17"))]
    id: String,
    /// Features by name: a text, a number, or a list of texts.
    #[schema(schema_with = free_object, example = json!({"age": 28, "preferred_colours": ["grey", "red"]}))]
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
#[utoipa::path(get, path = "/customers", tag = "customers", params(SearchQuery), responses(
    (status = 200, description = "A page of customers", body = Page<CustomerBody>),
))]
async fn list(
    State(state): State<AppState>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Page<CustomerBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |id| CustomerId::new(id).ok())?;
    let found = state.store.customers().list(&query.search, after.as_ref(), n + 1).await?;
    Ok(Json(Page::new(found, n, |customer| customer.id.to_string(), CustomerBody::from)))
}

/// One customer
#[utoipa::path(get, path = "/customers/{id}", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    responses(
        (status = 200, description = "The customer", body = CustomerBody),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn get(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
) -> Result<Json<CustomerBody>, Problem> {
    let customer = state.store.customers().get(&id).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(customer.into()))
}

/// A customer to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CustomerPut)]
struct CustomerPut {
    /// Optional; must be the id in the path.
    id: Option<String>,
    /// Features by name: a text, a number, or a list of texts, as the schema requires. A null is left out.
    #[schema(schema_with = free_object, example = json!({"age": 28, "preferred_colours": ["grey", "red"]}))]
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
#[utoipa::path(put, path = "/customers/{id}", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    request_body = CustomerPut,
    responses(
        (status = 200, description = "The customer existed; this is the stored one now", body = CustomerStored),
        (status = 201, description = "The customer is new", body = CustomerStored),
    ),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<CustomerId>,
    Json(body): Json<CustomerPut>,
) -> Result<(StatusCode, Json<CustomerStored>), Problem> {
    let (customer, warnings) = body.read(id, &state.schema())?;
    let (customer, put) = uncancelled(async move {
        let put = customers::put(&state.store, &state.profiles, author, &customer, state.now()).await;
        (customer, put)
    })
    .await;
    let put = put?;
    let status = if put == Put::Added { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(CustomerStored { customer: customer.into(), warnings })))
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
/// Deletes the profile and the outfits permanently, removes the customer from feedback, and blanks the audit log's entries
/// about them. With `SQLite` the id is soon in no file of the database either. Later feedback that names the customer is
/// refused; a later PUT or import adds them again.
#[utoipa::path(delete, path = "/customers/{id}", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    responses(
        (status = 204, description = "The customer is erased"),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn erase(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(id): Path<CustomerId>,
) -> Result<StatusCode, Problem> {
    uncancelled(async move {
        let erased = customers::erase(&state.store, &state.profiles, author, &id, state.now()).await?;
        if erased { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(&id)) }
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
    outfits: Vec<OutfitBody>,
    feedback: Vec<FeedbackStored>,
    /// The audit log's entries about the customer.
    audit: Vec<AuditBody>,
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
    #[schema(examples("c-17"))]
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
/// the feedback (rejections included), and the audit log's entries about them.
#[utoipa::path(get, path = "/customers/{id}/export", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    responses(
        (status = 200, description = "All data about the customer", body = CustomerExport),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn export(State(state): State<AppState>, Path(id): Path<CustomerId>) -> Result<Response, Problem> {
    let data = state.store.customers().personal_data(&id).await?.ok_or_else(|| unknown(&id))?;
    let PersonalData { customer, created_at, updated_at, outfits, feedback, audit } = data;
    let [created_at, updated_at] =
        [created_at, updated_at].map(|at| json_text(&calendar::moment(at.millis(), 1000, true)));
    let customer = json_text(&CustomerBody::from(customer));
    let head = format!("{{\"customer\":{customer},\"created_at\":{created_at},\"updated_at\":{updated_at}");
    let text = stream::once(ready(Ok(head)))
        .chain(json_list("outfits", outfits.map_ok(OutfitBody::from)))
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

/// A customer's outfits
///
/// In the order in which they were stored.
#[utoipa::path(get, path = "/customers/{id}/outfits", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17"), PageQuery),
    responses(
        (status = 200, description = "A page of outfits", body = Page<OutfitBody>),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn outfits(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<OutfitBody>>, Problem> {
    let n = paging::size(query.n, state.limits)?;
    let after = paging::cursor(query.cursor.as_deref(), |seq| seq.parse().ok())?;
    let found = state.store.outfits().for_customer(&id, after.unwrap_or(0), n + 1).await?;
    if found.is_empty() && state.store.customers().get(&id).await?.is_none() {
        return Err(unknown(&id));
    }
    Ok(Json(Page::new(found, n, |record| record.seq.to_string(), OutfitBody::from)))
}

/// Import customers
///
/// One customer per line, `{"id": …, "features": {…}}`, in the format of `atelier export`. Either all customers are
/// stored or none.
#[utoipa::path(post, path = "/customers/bulk", tag = "customers", params(BulkQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, description = "The customers are stored", body = ImportBody)),
)]
async fn bring_in(
    State(state): State<AppState>,
    Caller(author): Caller,
    Query(query): Query<BulkQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    bulk::import::<Customer>(&state, author, &query, request).await.map(Json)
}

pub(crate) fn unknown(id: &CustomerId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no customer {id:?}"))
}
