//! The limit of the demo's database: it takes some rows to try things out, and never becomes a shop's.

use sqlx::AssertSqlSafe;

use super::{Store, StoreError};

/// The rows that each table takes beyond those that it has when it is limited.
const MORE: u64 = 2000;
/// The triggers' message.
pub(crate) const FULL: &str = "the demo is full";

/// Every table that callers and people add rows to. What the service notes by itself, such as the audit log, has no limit.
const TABLES: [&str; 8] =
    ["articles", "customers", "customer_notes", "outfits", "feedback_events", "events", "people", "api_keys"];

impl Store {
    /// Limits the growth of a `SQLite` database from now on; a limited one keeps its limits.
    ///
    /// Triggers count a table's rows in the transaction that writes, so every way to write is limited, bulk writes included.
    /// Counting a few thousand rows takes some ten microseconds.
    pub async fn limit_growth(&self) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        for table in TABLES {
            let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")))
                .fetch_one(&mut *transaction)
                .await?;
            // A `before` trigger would also refuse an upsert that changes a row.
            let trigger = format!(
                "create trigger if not exists demo_{table} after insert on {table}
                 when (select count(*) from {table}) > {}
                 begin select raise(abort, '{FULL}'); end",
                rows.unsigned_abs() + MORE
            );
            sqlx::query(AssertSqlSafe(trigger)).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }
}
