//! Customers and their profiles.

use std::collections::HashSet;

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, PatchError};

use super::{Resource, Resources, StoreError, json, pages, search};

/// The customers of a [`Store`](super::Store).
pub type Customers<'a> = Resources<'a, Customer>;

impl Customers<'_> {
    /// Up to `n` customers after the first `skip`, in the byte order of their ids.
    pub async fn page(self, skip: usize, n: usize) -> Result<Vec<Customer>, StoreError> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = sqlx::query_as("select id, features from customers order by id limit $1 offset $2")
            .bind(number(n))
            .bind(number(skip))
            .fetch_all(&self.store.readers)
            .await?;
        rows.into_iter().map(parse).collect()
    }

    /// The ids that have a customer.
    pub async fn existing_ids(self, ids: &[CustomerId]) -> Result<HashSet<CustomerId>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let rows: Vec<(String,)> =
            pages::by_ids(self.store, "select id from customers where id in", &ids).await?;
        rows.into_iter().map(|(id,)| customer_id(id)).collect()
    }
}

impl Resource for Customer {
    type Id = CustomerId;
    type Patch = CustomerPatch;
    type Columns = (String, String);

    const TABLE: &'static str = "customers";
    const COLUMNS: &'static str = "id, features";
    const INSERT: &'static str =
        "insert into customers (id, features, name_key, created_at, updated_at) values";
    const VALUES: usize = 5;
    const ON_CONFLICT: &'static str = "
        on conflict (id) do update set
            features = excluded.features,
            name_key = excluded.name_key,
            revision = customers.revision + 1,
            updated_at = excluded.updated_at
        where (customers.features, customers.name_key) <> (excluded.features, excluded.name_key)";
    const PUT: &'static str = "customer.put";
    const DELETE: &'static str = "customer.erase";
    const IS_FOLLOWED: bool = false;

    fn id(&self) -> &CustomerId {
        &self.id
    }

    fn parse(columns: Self::Columns) -> Result<Self, StoreError> {
        parse(columns)
    }

    fn texts(&self, row_bytes: u32) -> Result<Vec<String>, StoreError> {
        let features = json::features_text(&self.features)?;
        json::check_row("the customer", features.len(), row_bytes)?;
        Ok(vec![features, name_key(self)])
    }

    fn target(patch: &CustomerPatch) -> &CustomerId {
        &patch.id
    }

    fn apply(patch: &CustomerPatch, stored: Option<Self>) -> Result<Self, PatchError> {
        Ok(patch.apply(stored))
    }

    fn owner(id: &CustomerId) -> Option<&CustomerId> {
        Some(id)
    }
}

pub(super) fn name_key(customer: &Customer) -> String {
    let words = customer.features.iter().flat_map(|(_, value)| value.words());
    search::name_key(std::iter::once(customer.id.as_str()).chain(words.map(String::as_str)))
}

pub(super) fn parse((id, features): (String, String)) -> Result<Customer, StoreError> {
    let features = json::parse_features(&features).map_err(|reason| StoreError::Damaged {
        table: "customers",
        id: id.clone(),
        reason,
    })?;
    Ok(Customer { id: customer_id(id)?, features })
}

pub(super) fn customer_id(id: String) -> Result<CustomerId, StoreError> {
    CustomerId::new(&id).map_err(|error| StoreError::Damaged {
        table: "customers",
        id,
        reason: error.to_string(),
    })
}
