//! Settings that all replicas share: the active release, the routing, the keys that sign tickets.

use atelier_core::domain::{ExperimentName, Timestamp};
use sqlx::AnyConnection;

use super::{Entry, Named, Store, StoreError, documents, revisions, values};

crate::platform::db::part! {
    Settings, settings
}

impl Settings<'_> {
    pub async fn get(self, name: &'static str) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar_with("select value from settings where name = $1", values![name])
            .fetch_optional(self.store.readers()?)
            .await?)
    }

    /// Sets the value. The caller describes the change, because only it knows what the value means.
    pub async fn set(
        self,
        name: &'static str,
        value: &str,
        entry: &Entry<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.set_unless(name, value, entry, now, |_: &[_]| None::<()>).await.map(drop)
    }

    /// The same, unless `refuse` says why not: it gets the experiments, which do not change while it decides.
    pub async fn set_unless<E>(
        self,
        name: &'static str,
        value: &str,
        entry: &Entry<'_>,
        now: Timestamp,
        refuse: impl FnOnce(&[Named<ExperimentName>]) -> Option<E>,
    ) -> Result<Result<(), E>, StoreError> {
        let mut transaction = self.store.write().await?;
        if let Some(reason) = refuse(&documents::in_turn(self.store, &mut transaction).await?) {
            return Ok(Err(reason));
        }
        write(&mut transaction, name, value).await?;
        entry.write(&mut transaction, self.store.author, now).await?;
        revisions::increment(&mut transaction, revisions::SETTINGS).await?;
        Ok(Ok(transaction.commit().await?))
    }

    /// The stored value; if there is none, stores this one. Replicas that start together get the same value.
    pub async fn get_or_set(self, name: &'static str, value: &str) -> Result<String, StoreError> {
        if let Some(stored) = self.get(name).await? {
            return Ok(stored);
        }
        let mut transaction = self.store.write().await?;
        let sql = "insert into settings (name, value) values ($1, $2) on conflict (name) do nothing";
        sqlx::query_with(sql, values![name, value]).execute(&mut *transaction).await?;
        let stored = sqlx::query_scalar_with("select value from settings where name = $1", values![name])
            .fetch_one(&mut *transaction)
            .await?;
        revisions::increment(&mut transaction, revisions::SETTINGS).await?;
        transaction.commit().await?;
        Ok(stored)
    }

    /// Replaces the value `old`. False if the setting has another value by now, as when another replica replaced it.
    pub async fn replace(self, name: &'static str, old: &str, new: &str) -> Result<bool, StoreError> {
        let sql = "update settings set value = $1 where name = $2 and value = $3";
        let statement = sqlx::query_with(sql, values![new, name, old]);
        Ok(self.store.execute(statement).await? > 0)
    }

    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, revisions::SETTINGS).await
    }
}

/// Deletes a setting that no replica has read yet.
pub(crate) async fn delete_setting(connection: &mut AnyConnection, name: &str) -> Result<(), StoreError> {
    sqlx::query("delete from settings where name = $1").bind(name).execute(connection).await?;
    Ok(())
}

pub(crate) async fn write(connection: &mut AnyConnection, name: &str, value: &str) -> Result<(), StoreError> {
    let sql = "insert into settings (name, value) values ($1, $2)
         on conflict (name) do update set value = excluded.value";
    sqlx::query_with(sql, values![name, value]).execute(connection).await?;
    Ok(())
}
