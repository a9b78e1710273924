//! Opening a database: what a URL means, and the connections behind a [`Store`].

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use sqlx::{
    AnyConnection, ConnectOptions, Connection,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use tokio::time::{sleep, timeout};

use super::{Store, StoreError, migrate};

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
    let text = path.to_str().ok_or_else(|| unreachable(&"the path is not valid UTF-8"))?;
    let options = quiet(&format!("sqlite://{}?mode=rwc", percent_encoded(text)))?;

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
    let shown = without_password(url);
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
        .map_err(|error| StoreError::Url { reason: format!("{}: {error}", without_password(url)) })?;
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

/// What a database URL names.
#[derive(Debug, PartialEq)]
enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    fn parse(url: &str) -> Result<Self, StoreError> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" || path.contains('?') {
                return Err(StoreError::Url {
                    reason: format!("{url:?} names no file: write sqlite:PATH, without parameters"),
                });
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.into()));
        }
        Err(StoreError::Url { reason: format!("{:?} is of another kind", without_password(url)) })
    }
}

/// The URL as it may be shown: no password, and no parameters, which may hold one too.
///
/// The last `@` ends the password even where its owner forgot to encode a `/` or an `@` in it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.split(':').next().unwrap_or_default().into();
    };
    let (user, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (login.split(':').next(), place),
        None => (None, rest),
    };
    let place = place.split('?').next().unwrap_or_default();
    match user {
        Some(user) => format!("{scheme}://{user}@{place}"),
        None => format!("{scheme}://{place}"),
    }
}

/// A path as sqlx's `SQLite` URLs want it: it decodes what we encode.
fn percent_encoded(path: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02x}").expect("writing to a String never fails; this is a bug");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_or_a_server() {
        let parse = |url| Address::parse(url).map_err(|error| error.to_string());
        assert_eq!(parse("sqlite:data/a.db"), Ok(Address::Sqlite("data/a.db".into())));
        assert_eq!(parse("sqlite:///var/a b.db"), Ok(Address::Sqlite("/var/a b.db".into())));
        assert_eq!(parse("postgres://h/d"), Ok(Address::Postgres("postgres://h/d".into())));
        for refused in ["sqlite:", "sqlite::memory:", "sqlite:a.db?mode=ro", "mysql://h/d", "atelier.db"] {
            assert!(parse(refused).unwrap_err().contains("sqlite:PATH"), "{refused}");
        }
        assert!(!parse("mysql://u:secret@h/d").unwrap_err().contains("secret"));
    }

    #[tokio::test]
    async fn a_path_with_odd_characters_is_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new folder/Ä#%41&😀'.db");
        let store = open(&format!("sqlite:{}", path.display())).await.unwrap();
        assert_eq!(store.articles().count().await, Ok(0));
        assert!(path.is_file());
    }

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://ada:secret@db:5432/atelier", "postgres://ada@db:5432/atelier"),
            ("postgres://ada:sec/r@et@db/atelier?x=1", "postgres://ada@db/atelier"),
            ("postgres://db/atelier?user=ada&password=secret", "postgres://db/atelier"),
            ("postgres://ada@db/atelier", "postgres://ada@db/atelier"),
            ("postgres:ada:secret@db", "postgres"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }
}
