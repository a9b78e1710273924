//! How often a table changed: what a copy in memory is compared by.

use sqlx::AnyConnection;

use super::{Store, StoreError};

/// The catalogue's name in `revisions`.
pub(super) const ARTICLES: &str = "articles";
/// That of the settings.
pub(super) const SETTINGS: &str = "settings";

pub(super) async fn read(store: &Store, name: &'static str) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("select value from revisions where name = $1")
        .bind(name)
        .fetch_one(&store.readers)
        .await?)
}

/// Counts a change. It is the last statement of its transaction: it takes a lock that every other such
/// transaction needs, and whoever holds that must not be waiting for anything else.
pub(super) async fn count(connection: &mut AnyConnection, name: &'static str) -> Result<(), StoreError> {
    sqlx::query("update revisions set value = value + 1 where name = $1")
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}
