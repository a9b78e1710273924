//! `/customers`: the customers and their features.

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, PatchError, Schema};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{
    ToSchema,
    openapi::{self, RefOr},
};
use utoipa_axum::routes;

use super::features;
use crate::{
    catalogue::{
        resource::{self, Resource},
        search,
    },
    people::Scope,
    platform::http::{
        AppState, Finding, Kind, Problem,
        extract::{Json, Query},
        item::{Items, add_schema},
        paging::{self, Page, SearchQuery},
        resource::check_id,
        routes::Routes,
        schema::{CustomerIdSchema, FeaturesSchema},
    },
    releases::LiveRelease,
};

pub(crate) fn router() -> Routes {
    resource::router::<Customer>().scoped(Scope::Catalogue, routes!(list))
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
    let found = search::customers_after(store, schema, state.synonyms(), words, after, n + 1);
    Page::collect(found, n, |customer| customer.id.to_string(), CustomerBody::from).await.map(Json)
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

impl Resource for Customer {
    type Body = CustomerBody;
    type StoredBody = CustomerStored;
    type PutBody = CustomerPut;
    type PatchBody = CustomerChange;

    fn describe() -> (Items<'static>, Vec<(String, RefOr<openapi::Schema>)>) {
        let items = Items {
            plural: "customers",
            what: "customer",
            one: "a customer",
            key: resource::key("CustomerId", "c-000010"),
            shown: "Customer",
            put_body: "CustomerPut",
            patch_body: "CustomerPatch",
            stored: "CustomerStored",
            put: "Features that the body leaves out are deleted.",
            patch: (
                "Change a customer",
                "A JSON Merge Patch (RFC 7396): features that the body leaves out stay, and null removes one.",
            ),
            delete: (
                "Erase a customer",
                "Deletes the profile, the outfits, the notes, the events and the purchases permanently, removes the customer from feedback, \
                 and blanks the audit log's entries about them. With `SQLite` the id is soon in no file of the database either. Later \
                 feedback that names the customer is refused; a later PUT or import adds them again.",
            ),
            query: Vec::new(),
            may_try: false,
        };
        let mut schemas = Vec::new();
        add_schema::<CustomerBody>(&mut schemas);
        add_schema::<CustomerPut>(&mut schemas);
        add_schema::<CustomerChange>(&mut schemas);
        add_schema::<CustomerStored>(&mut schemas);
        (items, schemas)
    }

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

    async fn refresh(state: &AppState, id: &CustomerId) {
        state.forget_customer(id);
    }

    fn stored(self, warnings: Vec<Finding>, _: Option<&LiveRelease>) -> CustomerStored {
        CustomerStored { customer: self.into(), warnings }
    }
}
