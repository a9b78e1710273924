//! Customers and their profiles.

use std::collections::{HashMap, HashSet};

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, FeatureValue, PatchError};
use sqlx::{AnyConnection, AssertSqlSafe};

use crate::platform::db::{
    Conflict, Resource, Resources, Store, StoreError, connect::Dialect, json, pages, search, upsert, values,
};

/// The most articles of a profile: memory is limited.
const MOST_PURCHASES: u32 = 5000;

pub type Customers<'a> = Resources<'a, Customer>;

impl Store {
    pub fn customers(&self) -> Customers<'_> {
        self.resources()
    }
}

impl Customers<'_> {
    /// Up to `n` customers after the first `skip`, in the byte order of their ids.
    pub async fn page(self, skip: usize, n: usize) -> Result<Vec<Customer>, StoreError> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let sql = "select id, features from visible_customers order by id limit $1 offset $2";
        let rows = sqlx::query_as_with(sql, values![number(n), number(skip)])
            .fetch_all(self.store.readers()?)
            .await?;
        rows.into_iter().map(Customer::parse).collect()
    }

    /// The texts of a customer, and the articles that they bought and did not send back, each in a line: the latest of them.
    pub async fn get_with_purchases(
        self,
        id: &CustomerId,
    ) -> Result<Option<(String, String, String)>, StoreError> {
        let lines = match self.store.dialect {
            Dialect::Sqlite => "group_concat(article_id, char(10))",
            Dialect::Postgres => "string_agg(article_id, chr(10))",
        };
        let sql = format!(
            "select id, features, coalesce((select {lines} from (
                select article_id from purchases where customer_id = $1 and bought > returned
                order by at desc, article_id limit {MOST_PURCHASES}
             ) as latest), '') from visible_customers where id = $1"
        );
        let row = sqlx::query_as(AssertSqlSafe(sql)).bind(id.as_str());
        Ok(row.fetch_optional(self.store.readers()?).await?)
    }

    /// Each customer's purchases, less those sent back.
    pub async fn purchases_of(
        self,
        ids: &[CustomerId],
    ) -> Result<HashMap<CustomerId, Vec<String>>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let select =
            "select customer_id, article_id from purchases where bought > returned and customer_id in";
        let rows: Vec<(String, String)> = pages::by_ids(self.store, select, &ids).await?;
        let mut all: HashMap<CustomerId, Vec<String>> = HashMap::new();
        for (customer, article) in rows {
            all.entry(customer_id(customer)?).or_default().push(article);
        }
        Ok(all)
    }

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
    const PUT: &'static str = "customer.put";
    const DELETE: &'static str = "customer.erase";
    const IS_FOLLOWED: bool = false;

    fn id(&self) -> &CustomerId {
        &self.id
    }

    fn parse((id, features): Self::Columns) -> Result<Self, StoreError> {
        let damaged = |reason| StoreError::Damaged { table: "customers", id: id.clone(), reason };
        let features = json::parse_features(&features).map_err(damaged)?;
        Ok(Self { id: customer_id(id)?, features })
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

    async fn forget(connection: &mut AnyConnection, customer: &CustomerId) -> Result<(), StoreError> {
        // A completion that customers share keeps its id, without the customer's digest: a dot and 16 digits.
        let sql =
            "update feedback_events set completion_id = substr(completion_id, 1, length(completion_id) - 17)
             where customer_id = $1 and completion_id like '%.________________'";
        sqlx::query_with(sql, values![customer.as_str()]).execute(connection).await?;
        Ok(())
    }
}

/// Checks that there is such a customer. The foreign keys would also take one that a running import added and may take back.
/// `lock` is empty or that of `Dialect::for_update`.
pub(crate) async fn check_known(
    connection: &mut AnyConnection,
    id: &CustomerId,
    lock: &str,
) -> Result<(), StoreError> {
    let sql = format!("select id from visible_customers where id = $1{lock}");
    let found = sqlx::query(AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(connection).await?;
    found.map(drop).ok_or(StoreError::Conflict(Conflict::UnknownCustomer))
}

pub(crate) fn name_key(customer: &Customer) -> String {
    let words = customer.features.iter().flat_map(|(_, value)| value.words()).map(String::as_str);
    let numbers = customer.features.iter().filter_map(|(_, value)| match value {
        FeatureValue::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let numbers: Vec<String> = numbers.collect();
    let id = std::iter::once(customer.id.as_str());
    search::name_key(id.chain(words).chain(numbers.iter().map(String::as_str)))
}

pub(crate) fn customer_id(id: String) -> Result<CustomerId, StoreError> {
    CustomerId::new(&id).map_err(|error| StoreError::Damaged {
        table: "customers",
        id,
        reason: error.to_string(),
    })
}
