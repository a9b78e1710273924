//! `/customers`: the customers and their features.

use std::fmt;

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
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
    service::access::Scope,
    store::Put,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{Json, Path, PathParameter, Query},
        keys::Caller,
        paging::{self, Page, PageQuery, SearchQuery},
        routes::Routes,
        schema::free_object,
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
    Caller(actor): Caller,
    Path(id): Path<CustomerId>,
    Json(body): Json<CustomerPut>,
) -> Result<(StatusCode, Json<CustomerStored>), Problem> {
    let (customer, warnings) = body.read(id, &state.schema())?;
    let put = state.store.customers().put(&customer, state.now()).await;
    // Also after an error: the customer may have been stored.
    state.profiles.forget(&customer.id);
    let put = put?;
    if put != Put::Unchanged {
        let details = json!({"new": put == Put::Added});
        state.note_about(&customer.id, actor, "customer.put", customer.id.as_str(), details).await?;
    }
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
/// Deletes the profile and the outfits permanently, and removes the customer from feedback and completions.
#[utoipa::path(delete, path = "/customers/{id}", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    responses(
        (status = 204, description = "The customer is erased"),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn erase(
    State(state): State<AppState>,
    Caller(actor): Caller,
    Path(id): Path<CustomerId>,
) -> Result<StatusCode, Problem> {
    let erased = state.store.customers().erase(&id).await;
    state.profiles.forget(&id);
    if !erased? {
        return Err(unknown(&id));
    }
    // The audit log must not say which customer was erased.
    state.note(actor, "customer.erase", "erased customer", json!({})).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All data about a customer.
#[derive(Debug, Serialize, ToSchema)]
struct CustomerExport {
    customer: CustomerBody,
    outfits: Vec<OutfitBody>,
    feedback: Vec<FeedbackStored>,
}

/// Export a customer's data
///
/// The profile, outfits and feedback: what a shop must give a customer who asks for their data.
#[utoipa::path(get, path = "/customers/{id}/export", tag = "customers",
    params(("id" = String, Path, description = "The customer's id", example = "c-17")),
    responses(
        (status = 200, description = "All data about the customer", body = CustomerExport),
        (status = 404, description = "There is no such customer"),
    ),
)]
async fn export(
    State(state): State<AppState>,
    Path(id): Path<CustomerId>,
) -> Result<Json<CustomerExport>, Problem> {
    let store = &state.store;
    let customer = store.customers().get(&id).await?.ok_or_else(|| unknown(&id))?.into();
    let feedback = store.feedback().for_customer(&id).await?.into_iter().map(FeedbackStored::from).collect();
    let (mut outfits, page) = (Vec::<OutfitBody>::new(), state.limits.page);
    let mut after = 0;
    loop {
        let found = store.outfits().for_customer(&id, after, page).await?;
        let Some(last) = found.last() else { break };
        after = last.seq;
        outfits.extend(found.into_iter().map(OutfitBody::from));
    }
    Ok(Json(CustomerExport { customer, outfits, feedback }))
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
    Caller(actor): Caller,
    Query(query): Query<BulkQuery>,
    request: Request,
) -> Result<Json<ImportBody>, Problem> {
    bulk::import::<Customer>(&state, actor, &query, request).await.map(Json)
}

pub(crate) fn unknown(id: &CustomerId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no customer {id:?}"))
}
