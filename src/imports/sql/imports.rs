//! The list of imports that run in the background: what waits, what runs, and how the last ones ended.
//!
//! The rows themselves are in `import.rs`.

use std::time::Duration;

use atelier_core::{
    domain::Timestamp,
    named,
    util::json_fields::{write_optional_text, write_text},
};
use serde::Serialize;
use serde_json::Value;
use sqlx::{AnyConnection, AssertSqlSafe, FromRow, Row, any::AnyRow};
use utoipa::ToSchema;

use crate::{
    imports::jobs::{FeedOptions, JobResult},
    platform::db::{Store, StoreError, json, record::Record},
};

/// How many ended imports of each table are kept.
const KEPT: u32 = 30;
/// An import whose process has said nothing for this long was interrupted. A write may wait ten seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// Ends what a killed process left. Where the result is there, the rows were stored with it.
const INTERRUPT: &str = "update imports set state = case when result is null then 'interrupted' else 'done' end, ended_at = seen_at";

crate::platform::db::part! {
    /// The imports of a [`Store`].
    Imports, imports
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ImportId(pub i64);

/// An import in the background.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Import)]
pub struct ImportRecord {
    /// The id of the import.
    #[schema(value_type = i64, examples(17))]
    pub id: ImportId,
    /// Your name for the feed.
    #[schema(examples("shop"))]
    pub feed: String,
    pub options: FeedOptions,
    /// The key's label or the person's name; null if the service started it.
    #[schema(examples("nightly feed"))]
    pub started_by: Option<String>,
    /// `waiting` while another import runs, `running`, or how it ended: `done`, `undone` since, `unchanged` if a stored source has
    /// nothing new, `failed`, `cancelled`, or `interrupted` with its process. Only `done` has stored anything.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String, examples("done"))]
    pub state: ImportState,
    /// When it was asked for.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String, examples("2026-11-21T14:34:00Z"))]
    pub created_at: Timestamp,
    /// When it began to run; null while it waits.
    #[serde(serialize_with = "write_optional_text")]
    #[schema(value_type = Option<String>, examples("2026-11-21T14:34:00Z"))]
    pub started_at: Option<Timestamp>,
    /// When it ended; null until then.
    #[serde(serialize_with = "write_optional_text")]
    #[schema(value_type = Option<String>, examples("2026-11-21T14:34:20Z"))]
    pub ended_at: Option<Timestamp>,
    pub progress: Progress,
    /// Null until it has ended.
    pub result: Option<JobResult>,
}

/// How much of the file was read, and all of it: bytes, or rows in Parquet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ImportProgress)]
pub struct Progress {
    /// Bytes of the file that were read.
    pub read: u64,
    /// Bytes of the file.
    pub total: u64,
}

named! {
    "an import is waiting, running, done, undone, unchanged, failed, cancelled or interrupted"
    /// An import's state, or how it ended.
    pub enum ImportState {
        /// Another import runs.
        Waiting = "waiting",
        Running = "running",
        Done = "done",
        /// Its rows are what they were before it.
        Undone = "undone",
        /// The feed is the one that was read before, so nothing was read.
        Unchanged = "unchanged",
        Failed = "failed",
        Cancelled = "cancelled",
        /// Its process ended.
        Interrupted = "interrupted",
    }
}

impl Imports<'_> {
    /// Adds one that waits. The store's author has started it.
    pub async fn add(
        self,
        feed: &str,
        table: &str,
        options: &Value,
        total: u64,
        now: Timestamp,
    ) -> Result<ImportId, StoreError> {
        let (person, key) = self.store.author.actor.ids();
        let mut transaction = self.store.write().await?;
        let id = sqlx::query_scalar(
            "insert into imports (feed, table_name, options, person_id, key_id, state, created_at, seen_at, total)
             values ($1, $2, $3, $4, $5, 'waiting', $6, $6, $7) returning id",
        )
        .bind(feed)
        .bind(table)
        .bind(json::text(options))
        .bind(person)
        .bind(key)
        .bind(now.millis())
        .bind(count(total))
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(ImportId(id))
    }

    /// Says that the import's process is alive, and how far the import is. True if someone wants it to stop.
    pub async fn report(
        self,
        id: ImportId,
        state: ImportState,
        progress: Progress,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let cancelled: Option<i64> = sqlx::query_scalar(
            "update imports set state = $2, seen_at = $3, read = $4, total = $5, ended_at = null,
                started_at = case when $2 = 'running' then coalesce(started_at, $3) end
             where id = $1 returning cancelled",
        )
        .bind(id.0)
        .bind(state.as_str())
        .bind(now.millis())
        .bind(count(progress.read))
        .bind(count(progress.total))
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(cancelled.is_some_and(|cancelled| cancelled > 0))
    }

    /// Notes how an import ended. Of the table's ended ones, the last are kept.
    pub async fn end(
        self,
        id: ImportId,
        state: ImportState,
        progress: Progress,
        result: &Value,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "update imports set state = $2, ended_at = $3, read = $4, total = $5, result = $6 where id = $1",
        )
        .bind(id.0)
        .bind(state.as_str())
        .bind(now.millis())
        .bind(count(progress.read))
        .bind(count(progress.total))
        .bind(json::text(result))
        .execute(&mut *transaction)
        .await?;
        // One that found nothing new stands for those before it.
        sqlx::query(
            "delete from imports where state = 'unchanged' and id < $1
                and feed = (select feed from imports where id = $1 and state = 'unchanged')",
        )
        .bind(id.0)
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "delete from imports where ended_at is not null and id not in (
                select id from imports as others where others.table_name = imports.table_name and ended_at is not null
                order by id desc limit $1)",
        )
        .bind(i64::from(KEPT))
        .execute(&mut *transaction)
        .await?;
        Ok(transaction.commit().await?)
    }

    /// Asks the process of an import to stop it. False if there is none that has not ended.
    pub async fn cancel(self, id: ImportId) -> Result<bool, StoreError> {
        let update = sqlx::query("update imports set cancelled = 1 where id = $1 and ended_at is null");
        Ok(self.store.execute(update.bind(id.0)).await? > 0)
    }

    /// Marks the imports whose processes say nothing any more.
    pub async fn interrupt_silent(self, now: Timestamp) -> Result<(), StoreError> {
        let silent: Option<i64> =
            sqlx::query_scalar("select id from imports where ended_at is null and seen_at < $1 limit 1")
                .bind((now - SILENCE).millis())
                .fetch_optional(self.store.readers()?)
                .await?;
        if silent.is_some() {
            let sql = format!("{INTERRUPT} where ended_at is null and seen_at < $1");
            let update = sqlx::query(AssertSqlSafe(sql)).bind((now - SILENCE).millis());
            self.store.execute(update).await?;
        }
        Ok(())
    }

    pub async fn get(self, id: ImportId) -> Result<Option<ImportRecord>, StoreError> {
        self.select("where id = $1", id.0).await.map(|mut found| found.pop())
    }

    /// The newest first.
    pub async fn list(self) -> Result<Vec<ImportRecord>, StoreError> {
        self.select("where id > $1 order by id desc", 0).await
    }

    async fn select(self, which: &str, number: i64) -> Result<Vec<ImportRecord>, StoreError> {
        let sql = format!(
            "select imports.*, coalesce((select people.name from people where people.id = person_id),
                (select api_keys.label from api_keys where api_keys.id = key_id)) as started_by
             from imports {which}"
        );
        Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(number).fetch_all(self.store.readers()?).await?)
    }
}

/// Marks the running imports as interrupted. The caller holds the lock that a running one would hold.
pub(crate) async fn interrupt_running(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlx::query(AssertSqlSafe(format!("{INTERRUPT} where state = 'running'"))).execute(connection).await?;
    Ok(())
}

fn count(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl FromRow<'_, AnyRow> for ImportRecord {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id = row.try_get("id")?;
        let row = Record::new(row, "imports", &id);
        Ok(Self {
            id: ImportId(id),
            feed: row.get("feed")?,
            options: row.parse("options", serde_json::from_str)?,
            started_by: row.get("started_by")?,
            state: row.parse("state", |state: &str| state.parse())?,
            created_at: row.time("created_at")?,
            started_at: row.optional_time("started_at")?,
            ended_at: row.optional_time("ended_at")?,
            progress: Progress {
                read: row.get::<i64>("read")?.unsigned_abs(),
                total: row.get::<i64>("total")?.unsigned_abs(),
            },
            result: row.parse_optional("result", |result: &str| serde_json::from_str(result))?,
        })
    }
}
