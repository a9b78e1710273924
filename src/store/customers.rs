//! Customers and their profiles.

use std::collections::HashSet;

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, FeatureValue, PatchError};
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{Conflict, Resource, Resources, StoreError, json, pages, search, upsert};

/// The customers of a [`Store`](super::Store).
pub type Customers<'a> = Resources<'a, Customer>;

impl Customers<'_> {
    /// Up to `n` customers after the first `skip`, in the byte order of their ids.
    pub async fn page(self, skip: usize, n: usize) -> Result<Vec<Customer>, StoreError> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let rows =
            sqlx::query_as("select id, features from visible_customers order by id limit $1 offset $2")
                .bind(number(n))
                .bind(number(skip))
                .fetch_all(self.store.readers()?)
                .await?;
        rows.into_iter().map(parse).collect()
    }

    /// The ids that have a customer.
    pub async fn existing_ids(self, ids: &[CustomerId]) -> Result<HashSet<CustomerId>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let rows: Vec<(String,)> =
            pages::by_ids(self.store, "select id from visible_customers where id in", &ids).await?;
        rows.into_iter().map(|(id,)| customer_id(id)).collect()
    }
}

impl Resource for Customer {
    type Id = CustomerId;
    type Patch = CustomerPatch;
    type Columns = (String, String);

    const TABLE: &'static str = "customers";
    const VISIBLE: &'static str = "visible_customers";
    const COLUMNS: &'static str = "id, features";
    const INSERT: &'static str =
        "insert into customers (id, features, name_key, created_at, updated_at, import) values";
    const VALUES: usize = 6;
    const ON_CONFLICT: &'static str = upsert::on_conflict!(
        "customers",
        "(customers.features, customers.name_key) <> (excluded.features, excluded.name_key)",
        "features", "name_key", "updated_at"; "old_features"
    );
    const OLD: &'static str = "old_features";
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

/// Checks that there is such a customer. The foreign keys would also take one that a running import added and may take back.
/// `lock` is empty or that of `Dialect::for_update`.
///
/// # Errors
/// If there is none (`Conflict`).
pub(super) async fn check_known(
    connection: &mut AnyConnection,
    id: &CustomerId,
    lock: &str,
) -> Result<(), StoreError> {
    let sql = format!("select id from visible_customers where id = $1{lock}");
    let found = sqlx::query(AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(connection).await?;
    found.map(drop).ok_or(StoreError::Conflict(Conflict::UnknownCustomer))
}

pub(super) fn name_key(customer: &Customer) -> String {
    let words = customer.features.iter().flat_map(|(_, value)| value.words()).map(String::as_str);
    let numbers = customer.features.iter().filter_map(|(_, value)| match value {
        FeatureValue::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let numbers: Vec<String> = numbers.collect();
    let id = std::iter::once(customer.id.as_str());
    search::name_key(id.chain(words).chain(numbers.iter().map(String::as_str)))
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
