//! The demo's mark: a setting that says that the database holds only the demo world and what was tried on it.
//!
//! Every import clears it unless told otherwise, and so does the first API key, each in its own transaction.

use sqlx::{Any, AnyConnection, any::AnyArguments, query::Query};

use super::{StoreError, revisions};

/// The name of the setting.
pub(super) const NAME: &str = "demo";

/// The most rows that all trials together may add or change. More of them are a shop's own data.
const TRIALS: u64 = 20;

/// What an import does to the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoMark {
    /// The rows are the demo world. There is no mark if there was ever an API key.
    Set,
    /// The rows were sent over HTTP, and may be a trial, as the guide's examples are.
    Count,
    Clear,
}

impl DemoMark {
    /// `rows` is how many rows the import added or changed. Like a change of any setting, it ends with the count of changes:
    /// nothing may follow it in the transaction.
    pub(super) async fn apply(
        self,
        connection: &mut AnyConnection,
        rows: u64,
        millis: i64,
    ) -> Result<(), StoreError> {
        let change = match self {
            Self::Count => {
                // The mark's value is the number of trial rows so far; earlier versions wrote `true`.
                let stored: Option<String> = sqlx::query_scalar("select value from settings where name = $1")
                    .bind(NAME)
                    .fetch_optional(&mut *connection)
                    .await?;
                let Some(stored) = stored.filter(|_| rows > 0) else { return Ok(()) };
                let rows = rows.saturating_add(stored.parse().unwrap_or(0));
                if rows > TRIALS { clear() } else { count(rows, millis) }
            }
            // A database with API keys has been used by a shop.
            Self::Set => sqlx::query(
                "insert into settings (name, value, changed)
                 select cast($1 as text), 'true', cast($2 as bigint)
                 where not exists (select 1 from api_keys)
                 on conflict (name) do nothing",
            )
            .bind(NAME)
            .bind(millis),
            Self::Clear => clear(),
        };
        if change.execute(&mut *connection).await?.rows_affected() > 0 {
            revisions::increment(connection, revisions::SETTINGS).await?;
        }
        Ok(())
    }
}

type Change = Query<'static, Any, AnyArguments>;

fn clear() -> Change {
    sqlx::query("delete from settings where name = $1").bind(NAME)
}

fn count(rows: u64, millis: i64) -> Change {
    sqlx::query("update settings set value = $2, changed = $3 where name = $1")
        .bind(NAME)
        .bind(rows.to_string())
        .bind(millis)
}
