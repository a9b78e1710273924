//! Counts of the changes of a table. A copy in memory is current while the count stays the same.

use sqlx::AnyConnection;

use super::{Store, StoreError};

pub(super) const ARTICLES: &str = "articles";
pub(super) const SETTINGS: &str = "settings";
pub(super) const ERASURES: &str = "erasures";

pub(super) async fn read(store: &Store, name: &'static str) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("select value from revisions where name = $1")
        .bind(name)
        .fetch_one(&store.readers)
        .await?)
}

/// Counts a change. It must be the last statement of its transaction: it takes a lock that all such transactions need, and
/// the holder must not wait for another lock.
pub(super) async fn increment(connection: &mut AnyConnection, name: &'static str) -> Result<(), StoreError> {
    sqlx::query("update revisions set value = value + 1 where name = $1")
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}
