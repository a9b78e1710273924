//! Settings that live in the database because every replica shares them: what is activated, how traffic is
//! routed, what signs tickets.

use sqlx::AnyConnection;

use super::{Store, StoreError};
use crate::domain::Timestamp;

/// The settings of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub(super) store: &'a Store,
}

impl Settings<'_> {
    pub async fn get(self, name: &'static str) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar("select value from settings where name = $1")
            .bind(name)
            .fetch_optional(&self.store.readers)
            .await?)
    }

    pub async fn set(self, name: &'static str, value: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "insert into settings (name, value, changed) values ($1, $2, $3)
             on conflict (name) do update set value = excluded.value, changed = excluded.changed",
        )
        .bind(name)
        .bind(value)
        .bind(now.millis())
        .execute(&mut *transaction)
        .await?;
        count(&mut transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// The value that is there; else this one, from now on. Of replicas that start together, all get the
    /// same.
    pub async fn get_or_set(
        self,
        name: &'static str,
        value: &str,
        now: Timestamp,
    ) -> Result<String, StoreError> {
        if let Some(there) = self.get(name).await? {
            return Ok(there);
        }
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "insert into settings (name, value, changed) values ($1, $2, $3) on conflict (name) do nothing",
        )
        .bind(name)
        .bind(value)
        .bind(now.millis())
        .execute(&mut *transaction)
        .await?;
        let there = sqlx::query_scalar("select value from settings where name = $1")
            .bind(name)
            .fetch_one(&mut *transaction)
            .await?;
        count(&mut transaction).await?;
        transaction.commit().await?;
        Ok(there)
    }

    /// How often any of them changed: what a copy in memory is compared by.
    pub async fn revision(self) -> Result<i64, StoreError> {
        super::revisions::read(self.store, super::revisions::SETTINGS).await
    }
}

async fn count(connection: &mut AnyConnection) -> Result<(), StoreError> {
    super::revisions::count(connection, super::revisions::SETTINGS).await
}
