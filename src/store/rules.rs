//! The shop's rules, each as JSON whose meaning the service knows.

use atelier_core::domain::{RuleName, Timestamp};
use serde_json::{Value, json};
use sqlx::{Any, AnyConnection, AssertSqlSafe, FromRow, Row, Transaction, any::AnyRow};

use super::{
    ChangeError, Entry, Expected, Put, Store, StoreError, Stored, Version, json, record::Record, revisions,
};

/// The most rules: each is looked at with every request.
const MOST: i64 = 1000;
/// The actions of entries in the audit log.
const PUT: &str = "rule.put";
const DELETE: &str = "rule.delete";

/// The rules of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct StoredRules<'a> {
    pub(super) store: &'a Store,
}

/// A rule's name, and the rule as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRule {
    pub name: RuleName,
    pub body: Value,
    revision: i64,
}

impl StoredRules<'_> {
    /// All rules, by name.
    pub async fn list(self) -> Result<Vec<Stored<NamedRule>>, StoreError> {
        Ok(sqlx::query_as("select * from rules order by name").fetch_all(self.store.readers()?).await?)
    }

    pub async fn get(self, name: &RuleName) -> Result<Option<Stored<NamedRule>>, StoreError> {
        find(&mut *self.store.readers()?.acquire().await?, name, "").await
    }

    /// Stores what `make` makes of the rule as it is, or only checks whether it could be stored. The same rule again is no change.
    pub async fn change<E>(
        self,
        name: &RuleName,
        expected: &Expected,
        is_trial: bool,
        now: Timestamp,
        make: impl FnOnce(Option<Value>) -> Result<Value, E> + Send,
    ) -> Result<Result<(Put, Stored<NamedRule>), E>, ChangeError> {
        let mut transaction = self.store.write().await?;
        let stored = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        expected.check(stored.as_ref().map(|stored| &stored.version))?;
        let before = stored.as_ref().map(|stored| stored.value.body.clone());
        let body = match make(before.clone()) {
            Ok(body) => body,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(stored) = stored.filter(|stored| stored.value.body == body) {
            return Ok(Ok((Put::Unchanged, stored)));
        }
        let text = json::text(&body);
        json::check_row("the rule", text.len(), self.store.row_bytes)?;
        let row: Stored<NamedRule> = sqlx::query_as(
            "insert into rules (name, body, created_at) values ($1, $2, $3)
             on conflict (name) do update set body = excluded.body, revision = rules.revision + 1 returning *",
        )
        .bind(name.as_str())
        .bind(text)
        .bind(now.millis())
        .fetch_one(&mut *transaction)
        .await?;
        let put = if row.value.revision == 1 { Put::Added } else { Put::Changed };
        expected.check_put(put, before.is_some())?;
        let count: i64 =
            sqlx::query_scalar("select count(*) from rules").fetch_one(&mut *transaction).await?;
        if count > MOST {
            let reason = format!("there are {MOST} already; delete one first");
            return Err(StoreError::Unfit { what: "the rule", reason }.into());
        }
        if !is_trial {
            let details = json!({"before": before, "after": body});
            self.commit(transaction, &Entry::new(PUT, name.as_str(), details), now).await?;
        }
        Ok(Ok((put, row)))
    }

    /// False if there is no such rule.
    pub async fn delete(
        self,
        name: &RuleName,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<bool, ChangeError> {
        let mut transaction = self.store.write().await?;
        let before = find(&mut transaction, name, self.store.dialect.for_update()).await?;
        expected.check(before.as_ref().map(|stored| &stored.version))?;
        let Some(before) = before else { return Ok(false) };
        sqlx::query("delete from rules where name = $1")
            .bind(name.as_str())
            .execute(&mut *transaction)
            .await?;
        let details = json!({"before": before.value.body});
        self.commit(transaction, &Entry::new(DELETE, name.as_str(), details), now).await?;
        Ok(true)
    }

    /// Replicas read the rules again when the settings' count has changed.
    async fn commit(
        self,
        mut transaction: Transaction<'static, Any>,
        entry: &Entry<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        entry.write(&mut transaction, self.store.author, now).await?;
        revisions::increment(&mut transaction, revisions::SETTINGS).await?;
        Ok(transaction.commit().await?)
    }
}

async fn find(
    connection: &mut AnyConnection,
    name: &RuleName,
    lock: &str,
) -> Result<Option<Stored<NamedRule>>, StoreError> {
    let sql = format!("select * from rules where name = $1{lock}");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(name.as_str()).fetch_optional(connection).await?)
}

impl FromRow<'_, AnyRow> for Stored<NamedRule> {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let name: String = row.try_get("name")?;
        let (created_at, revision) = (row.try_get("created_at")?, row.try_get("revision")?);
        let record = Record::new(row, "rules", &name);
        let body: String = record.get("body")?;
        let version = Version::new(created_at, revision, &[&name, &body]);
        let value = NamedRule {
            name: record.parse("name", |name: String| RuleName::new(name))?,
            body: record.parse("body", |body: String| json::parse(&body))?,
            revision,
        };
        Ok(Self { value, version })
    }
}
