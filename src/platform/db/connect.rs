//! Opening a database. `sqlite.rs` and `postgres.rs` have the parts that differ.

use std::{io, str::FromStr, time::Duration};

use sqlx::{AnyConnection, ConnectOptions, any::AnyConnectOptions};
use tokio::time::timeout;

use super::{
    OpenError, Store,
    address::{self, Address},
    postgres, sqlite,
};

/// How long to wait for a connection, a lock, or a server that does not answer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// The SQL dialect, for the few statements that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Ends a `select` whose rows no other transaction may change before this one ends. Only one write runs at a time on
    /// `SQLite`.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " for update",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

pub(crate) async fn open(url: &str, if_missing: IfMissing) -> Result<Store, OpenError> {
    sqlx::any::install_default_drivers();
    match Address::parse(url) {
        Ok(Address::Sqlite(path)) => sqlite::open(&path, if_missing).await,
        Ok(Address::Postgres(url)) => postgres::open(&url).await,
        Err(reason) => Err(OpenError::Url { database: address::redact(url), reason }),
    }
}

/// Turns off sqlx's logging of statements, slow ones included, which does not belong into a shop's log.
pub(crate) fn connect_options(url: &str) -> Result<AnyConnectOptions, OpenError> {
    let options = AnyConnectOptions::from_str(url)
        .map_err(|error| OpenError::Url { database: address::redact(url), reason: error.to_string() })?;
    Ok(options.disable_statement_logging())
}

pub(crate) async fn connect(options: &AnyConnectOptions) -> sqlx::Result<AnyConnection> {
    timeout(DEADLINE, options.connect()).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} seconds", DEADLINE.as_secs());
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, reason)))
    })
}
