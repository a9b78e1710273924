//! Opening a database on a Postgres server.

use std::time::Duration;

use sqlx::{Connection, any::AnyPoolOptions};

use super::{
    OpenError, Store, StoreError, address,
    connect::{Dialect, connect, quiet},
    migrate,
};

/// A sixth of a default server's hundred connections: several replicas fit beside each other.
const CONNECTIONS: u32 = 16;
/// How long anybody waits for one of them: a request must hear soon that the server is gone, and a connection that is
/// in use comes back in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn open(url: &str) -> Result<Store, OpenError> {
    let shown = address::shown(url);
    let failed = |error| match error {
        StoreError::Unreachable { reason } => OpenError::Server { database: shown.clone(), reason },
        error => OpenError::Other { database: shown.clone(), error },
    };
    let mut options = quiet(url)?;
    // sqlx would log them at every connection with all that they say, and what they say may be a password.
    let left_out = address::leave_out_unknown(&mut options);
    if left_out > 0 {
        tracing::warn!(database = shown, left_out, "parameters of the database's URL that nobody reads");
    }
    let mut first = connect(&options).await.map_err(|error| match error {
        sqlx::Error::Configuration(error) => {
            OpenError::Url { database: shown.clone(), reason: error.to_string() }
        }
        error => failed(error.into()),
    })?;
    migrate::postgres(&mut first).await.map_err(failed)?;
    first.close().await.map_err(|error| failed(error.into()))?;
    let pool = AnyPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE)
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
