//! Customers and their profiles.

use std::collections::HashSet;

use atelier_core::domain::{Customer, CustomerId, CustomerPatch, Timestamp};
use futures_util::Stream;
use serde_json::json;
use sqlx::{AnyConnection, Arguments, AssertSqlSafe, any::AnyArguments};

use super::{
    ChangeError, Entry, Expected, Put, Store, StoreError, Stored, Version, json,
    pages::{self, PAGE},
    search, upsert,
};

const SELECT_STORED: &str = "select id, features, revision, created_at from customers where id = $1";
type StoredColumns = (String, String, i64, i64);

/// The customers of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Customers<'a> {
    pub(super) store: &'a Store,
}

impl<'a> Customers<'a> {
    pub async fn get(self, id: &CustomerId) -> Result<Option<Customer>, StoreError> {
        let row = sqlx::query_as("select id, features from customers where id = $1")
            .bind(id.as_str())
            .fetch_optional(&self.store.readers)
            .await?;
        row.map(parse).transpose()
    }

    /// The customer with their version.
    pub async fn get_stored(self, id: &CustomerId) -> Result<Option<Stored<Customer>>, StoreError> {
        let row = sqlx::query_as(SELECT_STORED).bind(id.as_str()).fetch_optional(&self.store.readers).await?;
        row.map(parse_stored).transpose()
    }

    /// Adds the customer, or replaces the one with this id.
    ///
    /// # Errors
    /// If a feature is NaN or infinite (`Unfit`), or the database fails.
    pub async fn put(self, customer: &Customer, now: Timestamp) -> Result<Put, StoreError> {
        match self.put_expected(customer, &Expected::default(), now).await {
            Ok((put, _)) => Ok(put),
            Err(ChangeError::Store(error)) => Err(error),
            Err(error) => unreachable!("every row is expected, but {error}; this is a bug"),
        }
    }

    /// Adds the customer, or replaces the one with this id if they are as expected. Also gives their version.
    ///
    /// # Errors
    /// If a feature is NaN or infinite (`Unfit`), the customer is not as expected, or the database fails.
    pub async fn put_expected(
        self,
        customer: &Customer,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<(Put, Version), ChangeError> {
        let row = CustomerRow::new(customer, now.millis())?;
        let mut transaction = self.store.write().await?;
        let mut found = false;
        if !expected.is_anything() {
            let current = self.lock(&mut transaction, &customer.id).await?;
            expected.check(current.as_ref().map(|stored| &stored.version))?;
            found = current.is_some();
        }
        let written = self.write(&mut transaction, row, now).await?;
        expected.check_put(written.0, found)?;
        transaction.commit().await?;
        Ok(written)
    }

    /// Changes the customer with the patch's id, if they are as expected. No other change comes between reading and
    /// writing.
    pub async fn patch(
        self,
        patch: &CustomerPatch,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<Stored<Customer>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let stored = self.lock(&mut transaction, &patch.id).await?.ok_or(ChangeError::Missing)?;
        expected.check(Some(&stored.version))?;
        let value = patch.apply(Some(stored.value));
        let row = CustomerRow::new(&value, now.millis())?;
        let (_, version) = self.write(&mut transaction, row, now).await?;
        transaction.commit().await?;
        Ok(Stored { value, version })
    }

    /// The customer, which no other transaction changes before this one ends.
    pub(super) async fn lock(
        self,
        connection: &mut AnyConnection,
        id: &CustomerId,
    ) -> Result<Option<Stored<Customer>>, StoreError> {
        let sql = format!("{SELECT_STORED}{}", self.store.dialect.for_update());
        let row =
            sqlx::query_as(AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(&mut *connection).await?;
        row.map(parse_stored).transpose()
    }

    /// Writes the customer at the end of a transaction.
    async fn write(
        self,
        connection: &mut AnyConnection,
        row: CustomerRow<'_>,
        now: Timestamp,
    ) -> Result<(Put, Version), StoreError> {
        let id = row.customer.id.clone();
        let put = upsert::write_one(&mut *connection, self.store.dialect, row).await?;
        let written: StoredColumns =
            sqlx::query_as(SELECT_STORED).bind(id.as_str()).fetch_one(&mut *connection).await?;
        if put != Put::Unchanged {
            let details = json!({"new": put == Put::Added});
            let entry = Entry::new("customer.put", id.as_str(), details).about(&id);
            entry.write(&mut *connection, self.store.author, now).await?;
        }
        Ok((put, version(&written)))
    }

    /// Up to `n` customers after the id `after`, in the byte order of their ids.
    pub async fn list(self, after: Option<&CustomerId>, n: u32) -> Result<Vec<Customer>, StoreError> {
        let rows = sqlx::query_as("select id, features from customers where id > $1 order by id limit $2")
            // Every id comes after the empty string.
            .bind(after.map_or("", CustomerId::as_str))
            .bind(i64::from(n))
            .fetch_all(&self.store.readers)
            .await?;
        rows.into_iter().map(parse).collect()
    }

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

    /// The customers after the id `after` whose id or text features contain a text of each group, in the order of their
    /// ids. The texts are in lower case.
    pub fn with_words(
        self,
        groups: Vec<Vec<String>>,
        after: Option<&CustomerId>,
    ) -> impl Stream<Item = Result<Customer, StoreError>> + Send + use<'a> {
        let after = after.map_or("", CustomerId::as_str);
        let select = "select id, features from customers";
        pages::with_words(self.store, select, groups, after, parse, |row| row.id.as_str())
    }

    pub async fn count(self) -> Result<u64, StoreError> {
        self.store.count("select count(*) from customers").await
    }

    /// The ids that have a customer.
    pub async fn existing_ids(self, ids: &[CustomerId]) -> Result<HashSet<CustomerId>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let rows: Vec<(String,)> =
            pages::by_ids(self.store, "select id from customers where id in", &ids).await?;
        rows.into_iter().map(|(id,)| customer_id(id)).collect()
    }

    /// The customers with these ids, in any order. Unknown ids are skipped.
    pub async fn get_many(self, ids: &[CustomerId]) -> Result<Vec<Customer>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let rows = pages::by_ids(self.store, "select id, features from customers where id in", &ids).await?;
        rows.into_iter().map(parse).collect()
    }

    /// Every customer in the byte order of their ids, read page by page as needed.
    pub fn all(self) -> impl Stream<Item = Result<Customer, StoreError>> + Send + use<'a> {
        pages::stream(None::<CustomerId>, move |after| async move {
            let page = self.list(after.as_ref(), PAGE).await?;
            Ok(page.into_iter().map(|customer| (Some(customer.id.clone()), customer)).collect())
        })
    }
}

pub(super) struct CustomerRow<'a> {
    customer: &'a Customer,
    features: String,
    millis: i64,
}

impl<'a> CustomerRow<'a> {
    pub(super) fn new(customer: &'a Customer, millis: i64) -> Result<Self, StoreError> {
        Ok(Self { customer, features: json::features_text(&customer.features)?, millis })
    }
}

impl upsert::Row for CustomerRow<'_> {
    const INSERT: &'static str =
        "insert into customers (id, features, name_key, created_at, updated_at) values";
    const COLUMNS: usize = 5;
    const ON_CONFLICT: &'static str = "
        on conflict (id) do update set
            features = excluded.features,
            name_key = excluded.name_key,
            revision = customers.revision + 1,
            updated_at = excluded.updated_at
        where (customers.features, customers.name_key) <> (excluded.features, excluded.name_key)";
    const NAME: &'static str = "''";
    type Key = CustomerId;

    fn key(&self) -> CustomerId {
        self.customer.id.clone()
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(self.customer.id.as_str())?;
        values.add(self.features)?;
        values.add(name_key(self.customer))?;
        values.add(self.millis)?;
        values.add(self.millis)
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

fn version((_, features, revision, created_at): &StoredColumns) -> Version {
    Version::new(*created_at, *revision, &[features])
}

fn parse_stored(columns: StoredColumns) -> Result<Stored<Customer>, StoreError> {
    let version = version(&columns);
    let (id, features, ..) = columns;
    Ok(Stored { value: parse((id, features))?, version })
}

pub(super) fn customer_id(id: String) -> Result<CustomerId, StoreError> {
    CustomerId::new(&id).map_err(|error| StoreError::Damaged {
        table: "customers",
        id,
        reason: error.to_string(),
    })
}
