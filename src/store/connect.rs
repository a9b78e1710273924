//! Opening a database: what both kinds have in common. `sqlite.rs` and `postgres.rs` hold the rest.

use std::{io, str::FromStr, time::Duration};

use sqlx::{AnyConnection, ConnectOptions, any::AnyConnectOptions};
use tokio::time::timeout;

use super::{
    OpenError, Store,
    address::{self, Address},
    postgres, sqlite,
};

/// How long anybody waits for a connection, a lock, or a server that does not answer.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// Which SQL a database speaks, for the few statements that cannot be common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// What to do where there is no `SQLite` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfMissing {
    Create,
    Refuse,
}

pub(super) async fn open(url: &str, if_missing: IfMissing) -> Result<Store, OpenError> {
    sqlx::any::install_default_drivers();
    match Address::parse(url) {
        Ok(Address::Sqlite(path)) => sqlite::open(&path, if_missing).await,
        Ok(Address::Postgres(url)) => postgres::open(&url).await,
        Err(reason) => Err(OpenError::Url { database: address::shown(url), reason }),
    }
}

/// sqlx logs statements by default, slow ones as warnings; a shop's log is no place for them.
pub(super) fn quiet(url: &str) -> Result<AnyConnectOptions, OpenError> {
    let options = AnyConnectOptions::from_str(url)
        .map_err(|error| OpenError::Url { database: address::shown(url), reason: error.to_string() })?;
    Ok(options.disable_statement_logging())
}

pub(super) async fn connect(options: &AnyConnectOptions) -> sqlx::Result<AnyConnection> {
    timeout(DEADLINE, options.connect()).await.unwrap_or_else(|_| {
        let silence = format!("no answer within {} seconds", DEADLINE.as_secs());
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, silence)))
    })
}
