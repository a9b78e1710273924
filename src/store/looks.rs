//! The shop's looks. What is in one, only the service knows.

use atelier_core::domain::{LookName, Timestamp};
use serde_json::{Value, json};
use sqlx::{Any, AnyConnection, AssertSqlSafe, FromRow, Row, Transaction, any::AnyRow};

use super::{
    ChangeError, Counts, Entry, Expected, Put, Store, StoreError, Stored, Version, json, record::Record,
    revisions,
};

/// The most looks: each replica holds all that are published.
const MOST: i64 = 10_000;

/// The looks of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct StoredLooks<'a> {
    pub(super) store: &'a Store,
}

/// A look's name, and the look as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedLook {
    pub name: LookName,
    pub body: Value,
    revision: i64,
}

impl StoredLooks<'_> {
    /// All looks, by name.
    pub async fn list(self) -> Result<Vec<Stored<NamedLook>>, StoreError> {
        Ok(sqlx::query_as("select * from looks order by name").fetch_all(self.store.readers()?).await?)
    }

    pub async fn get(self, name: &LookName) -> Result<Option<Stored<NamedLook>>, StoreError> {
        find(&mut *self.store.readers()?.acquire().await?, name, "").await
    }

    /// How often looks have changed.
    pub async fn revision(self) -> Result<i64, StoreError> {
        revisions::read(self.store, revisions::LOOKS).await
    }

    /// Stores what `make` makes of the look as it is. The same look again is no change.
    pub async fn change<E>(
        self,
        name: &LookName,
        expected: &Expected,
        now: Timestamp,
        make: impl FnOnce(Option<Value>) -> Result<Value, E> + Send,
    ) -> Result<Result<(Put, Version), E>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let stored = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        expected.check(stored.as_ref().map(|stored| &stored.version))?;
        let before = stored.as_ref().map(|stored| stored.value.body.clone());
        let body = match make(before.clone()) {
            Ok(body) => body,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(stored) = stored.filter(|stored| stored.value.body == body) {
            return Ok(Ok((Put::Unchanged, stored.version)));
        }
        let (put, version) = self.write(&mut transaction, name, &body, now).await?;
        expected.check_put(put, before.is_some())?;
        let details = json!({"before": before, "after": body});
        self.commit(transaction, &Entry::new("look.put", name.as_str(), details), now).await?;
        Ok(Ok((put, version)))
    }

    /// Adds or replaces looks, all or none. `file` is where they come from, for the audit log.
    pub async fn import(
        self,
        looks: &[(LookName, Value)],
        file: &str,
        now: Timestamp,
    ) -> Result<Counts, StoreError> {
        let mut transaction = self.store.write().await?;
        let mut counts = Counts::default();
        for (name, body) in looks {
            let stored = find(&mut transaction, name, self.store.dialect.for_update()).await?;
            if stored.is_some_and(|stored| stored.value.body == *body) {
                counts.unchanged += 1;
                continue;
            }
            match self.write(&mut transaction, name, body, now).await?.0 {
                Put::Added => counts.added += 1,
                Put::Changed | Put::Unchanged => counts.changed += 1,
            }
        }
        let Counts { added, changed, .. } = counts;
        if added + changed > 0 {
            let details = json!({"added": added, "changed": changed});
            self.commit(transaction, &Entry::new("look.import", file, details), now).await?;
        }
        Ok(counts)
    }

    async fn write(
        self,
        connection: &mut AnyConnection,
        name: &LookName,
        body: &Value,
        now: Timestamp,
    ) -> Result<(Put, Version), StoreError> {
        let text = json::text(body);
        json::check_row("the look", text.len(), self.store.row_bytes)?;
        let row: Stored<NamedLook> = sqlx::query_as(
            "insert into looks (name, body, created_at) values ($1, $2, $3)
             on conflict (name) do update set body = excluded.body, revision = looks.revision + 1 returning *",
        )
        .bind(name.as_str())
        .bind(text)
        .bind(now.millis())
        .fetch_one(&mut *connection)
        .await?;
        if row.value.revision > 1 {
            return Ok((Put::Changed, row.version));
        }
        let count: i64 = sqlx::query_scalar("select count(*) from looks").fetch_one(connection).await?;
        if count > MOST {
            let reason = format!("there are {MOST} already; delete one first");
            return Err(StoreError::Unfit { what: "the look", reason });
        }
        Ok((Put::Added, row.version))
    }

    /// False if there is no such look.
    pub async fn delete(
        self,
        name: &LookName,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<bool, ChangeError> {
        let mut transaction = self.store.write().await?;
        let before = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        expected.check(before.as_ref().map(|stored| &stored.version))?;
        let Some(before) = before else { return Ok(false) };
        sqlx::query("delete from looks where name = $1")
            .bind(name.as_str())
            .execute(&mut *transaction)
            .await?;
        let details = json!({"before": before.value.body});
        self.commit(transaction, &Entry::new("look.delete", name.as_str(), details), now).await?;
        Ok(true)
    }

    /// Replicas read the looks again when their count has changed.
    async fn commit(
        self,
        mut transaction: Transaction<'static, Any>,
        entry: &Entry<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        entry.write(&mut transaction, self.store.author, now).await?;
        revisions::increment(&mut transaction, revisions::LOOKS).await?;
        Ok(transaction.commit().await?)
    }
}

async fn find(
    connection: &mut AnyConnection,
    name: &LookName,
    lock: &str,
) -> Result<Option<Stored<NamedLook>>, StoreError> {
    let sql = format!("select * from looks where name = $1{lock}");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(name.as_str()).fetch_optional(connection).await?)
}

impl FromRow<'_, AnyRow> for Stored<NamedLook> {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let name: String = row.try_get("name")?;
        let (created_at, revision) = (row.try_get("created_at")?, row.try_get("revision")?);
        let record = Record::new(row, "looks", &name);
        let body: String = record.get("body")?;
        let version = Version::new(created_at, revision, &[&name, &body]);
        let value = NamedLook {
            name: record.parse("name", |name: String| LookName::new(name))?,
            body: record.parse("body", |body: String| json::parse(&body))?,
            revision,
        };
        Ok(Self { value, version })
    }
}
