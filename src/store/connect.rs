//! Opening a database: the connections behind a [`Store`].

use std::{path::Path, str::FromStr, time::Duration};

use sqlx::{
    AnyConnection, ConnectOptions, Connection,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use tokio::time::{sleep, timeout};

use super::{
    Store, StoreError,
    address::{self, Address, sqlite_url},
    migrate,
};

/// How long anybody waits for a connection, a lock, or a server that does not answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// Enough that one slow export does not hold up the pages.
const SQLITE_READERS: u32 = 8;
/// A sixth of a default server's hundred connections: several replicas fit beside each other.
const POSTGRES_CONNECTIONS: u32 = 16;

/// Which SQL a database speaks, for the few statements that cannot be common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

pub(super) async fn open(url: &str) -> Result<Store, StoreError> {
    sqlx::any::install_default_drivers();
    match Address::parse(url)? {
        Address::Sqlite(path) => open_sqlite(&path).await,
        Address::Postgres(url) => open_postgres(&url).await,
    }
}

async fn open_sqlite(path: &Path) -> Result<Store, StoreError> {
    let shown = format!("sqlite:{}", path.display());
    let unreachable =
        |reason: &dyn std::fmt::Display| StoreError::Unreachable { reason: format!("{shown}: {reason}") };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| unreachable(&error))?;
    }
    let path = std::path::absolute(path).map_err(|error| unreachable(&error))?;
    let url = sqlite_url(&path).ok_or_else(|| unreachable(&"the path is not valid UTF-8"))?;
    let options = quiet(&format!("{url}?mode=rwc"))?;

    let mut first = connect(&options, &shown).await?;
    set_write_ahead(&mut first).await?;
    migrate::sqlite(&mut first).await?;
    first.close().await?;

    let pool = |connections| {
        AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(DEADLINE)
            // A file does not go away as a server does: connections stay, and need no test.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(|connection, _| Box::pin(async { sqlite_settings(connection).await }))
            .connect_lazy_with(options.clone())
    };
    Ok(Store { readers: pool(SQLITE_READERS), writer: pool(1), dialect: Dialect::Sqlite, shown })
}

async fn open_postgres(url: &str) -> Result<Store, StoreError> {
    let shown = address::shown(url);
    let options = quiet(url)?;
    let mut first = connect(&options, &shown).await?;
    migrate::postgres(&mut first).await?;
    first.close().await?;
    let pool = AnyPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(DEADLINE)
        .after_connect(|connection, _| {
            Box::pin(async {
                // As SQLite's busy_timeout: waiting for another's row has the same end on both.
                sqlx::raw_sql("set lock_timeout = '10s'").execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options);
    Ok(Store { readers: pool.clone(), writer: pool, dialect: Dialect::Postgres, shown })
}

/// sqlx logs statements by default, slow ones as warnings; a shop's log is no place for them.
fn quiet(url: &str) -> Result<AnyConnectOptions, StoreError> {
    let options = AnyConnectOptions::from_str(url)
        .map_err(|error| StoreError::Url { reason: format!("{}: {error}", address::shown(url)) })?;
    Ok(options.disable_statement_logging())
}

async fn connect(options: &AnyConnectOptions, shown: &str) -> Result<AnyConnection, StoreError> {
    let reason = match timeout(DEADLINE, options.connect()).await {
        Ok(Ok(connection)) => return Ok(connection),
        Ok(Err(sqlx::Error::Configuration(error))) => {
            return Err(StoreError::Url { reason: format!("{shown}: {error}") });
        }
        // The message alone: the whole text adds the line of Postgres's own source.
        Ok(Err(sqlx::Error::Database(error))) => error.message().to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} seconds", DEADLINE.as_secs()),
    };
    Err(StoreError::Unreachable { reason: format!("{shown}: {reason}") })
}

/// What holds for one `SQLite` connection, rather than for the file.
async fn sqlite_settings(connection: &mut AnyConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(
        // Committed is on disk, also after a power cut: WAL's default would lose the last moments.
        "pragma synchronous = full;
         pragma foreign_keys = on;
         pragma busy_timeout = 10000;
         -- What is erased is overwritten in the file, not merely unlinked.
         pragma secure_delete = on;
         -- A large import lets the log grow to its own size; this gives the disk back afterwards.
         pragma journal_size_limit = 67108864;",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Turns write-ahead logging on. It stays on: the mode is written in the file.
///
/// While another process does the same, `SQLite` may answer "locked" without waiting, so this waits.
async fn set_write_ahead(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlite_settings(connection).await?;
    let started = tokio::time::Instant::now();
    loop {
        let set = sqlx::raw_sql("pragma journal_mode = wal").execute(&mut *connection).await;
        match set.map_err(StoreError::from) {
            Err(StoreError::Busy { .. }) if started.elapsed() < DEADLINE => {
                sleep(Duration::from_millis(20)).await;
            }
            done => return done.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_with_odd_characters_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new folder/Ä#%41&😀'.db");
        let store = open(&format!("sqlite:{}", path.display())).await.unwrap();
        assert_eq!(store.articles().count().await, Ok(0));
        assert!(path.is_file());
    }
}
