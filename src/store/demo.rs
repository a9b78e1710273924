//! The demo's mark: a setting that says that the database holds only the demo world and what was tried on it.
//!
//! Every import clears it unless told otherwise, and so does the first API key, each in its own transaction.

use sqlx::AnyConnection;

use super::{StoreError, revisions};

/// The name of the setting.
pub(super) const NAME: &str = "demo";

/// What an import does to the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoMark {
    /// The rows are the demo world. There is no mark if there was ever an API key.
    Set,
    /// The rows are a few, sent as a trial.
    Keep,
    Clear,
}

impl DemoMark {
    /// Like a change of any setting, it ends with the count of changes: nothing may follow it in the transaction.
    pub(super) async fn apply(self, connection: &mut AnyConnection, millis: i64) -> Result<(), StoreError> {
        let change = match self {
            Self::Keep => return Ok(()),
            // A database with API keys has been used by a shop.
            Self::Set => sqlx::query(
                "insert into settings (name, value, changed)
                 select cast($1 as text), 'true', cast($2 as bigint)
                 where not exists (select 1 from api_keys)
                 on conflict (name) do nothing",
            )
            .bind(NAME)
            .bind(millis),
            Self::Clear => sqlx::query("delete from settings where name = $1").bind(NAME),
        };
        if change.execute(&mut *connection).await?.rows_affected() > 0 {
            revisions::increment(connection, revisions::SETTINGS).await?;
        }
        Ok(())
    }
}
