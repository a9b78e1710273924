//! Rows that a request changes while an import runs, which the import then leaves alone.

use std::collections::{HashMap, HashSet};

use atelier_core::util::digest::sha256;
use sqlx::AnyConnection;

use super::{StoreError, connect::Dialect, pages, values};

/// The key of the advisory lock that a slice of an import holds, and that changes of articles and customers share. A slice
/// would not see that a change which is not yet committed is about its row. One write runs at a time on `SQLite`.
pub(crate) const WRITING: i64 = 0x6174_656d;

/// Notes that a row is changed by a request, which a running import then leaves alone.
pub(crate) async fn overtake(
    connection: &mut AnyConnection,
    dialect: Dialect,
    table: &'static str,
    id: &str,
) -> Result<(), StoreError> {
    let running = match dialect {
        Dialect::Sqlite => sqlx::query_scalar("select number from running_import"),
        Dialect::Postgres => sqlx::query_scalar_with(
            "select number from running_import, pg_advisory_xact_lock_shared($1)",
            values![WRITING],
        ),
    };
    let number: i64 = running.fetch_one(&mut *connection).await?;
    if number % 2 == 1 {
        let sql = "insert into import_skips (row_hash) values ($1) on conflict do nothing";
        sqlx::query_with(sql, values![row_hash(table, id)]).execute(connection).await?;
    }
    Ok(())
}

/// Those of the ids that were changed by requests since the import began.
pub(crate) async fn overtaken<'i>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    table: &'static str,
    ids: &[&'i str],
) -> Result<HashSet<&'i str>, StoreError> {
    let any: Option<i64> = sqlx::query_scalar("select cast(1 as bigint) from import_skips limit 1")
        .fetch_optional(&mut *connection)
        .await?;
    if any.is_none() {
        return Ok(HashSet::new());
    }
    let by_hash: HashMap<String, &str> = ids.iter().map(|id| (row_hash(table, id), *id)).collect();
    let hashes: Vec<&str> = by_hash.keys().map(String::as_str).collect();
    let select = "select row_hash from import_skips where row_hash in";
    let found: Vec<(String,)> = pages::lock_by_ids(connection, dialect, select, &hashes).await?;
    Ok(found.iter().filter_map(|(hash,)| by_hash.get(hash).copied()).collect())
}

fn row_hash(table: &str, id: &str) -> String {
    sha256(format!("{table}\0{id}").as_bytes())
}
