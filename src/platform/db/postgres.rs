//! Opening a database on a Postgres server.

use std::{path::PathBuf, sync::Arc, time::Duration};

use atelier_core::domain::ROW_BYTES;
use sqlx::{Connection, any::AnyPoolOptions};

use super::{
    Author, OpenError, Store, StoreError, address,
    connect::{Dialect, connect, connect_options},
    migrate,
    probe::Probe,
};
use crate::config::Limits;

/// A sixth of a default server's hundred connections, so that several replicas fit.
const CONNECTIONS: u32 = 16;
/// How long to wait for a connection. A request should soon learn that the server is gone, and a connection in use is
/// returned within milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn open(url: &str) -> Result<Store, OpenError> {
    let shown = address::redact(url);
    let failed = |error| match error {
        StoreError::Unreachable { reason } => OpenError::Server { database: shown.clone(), reason },
        error => OpenError::Other { database: shown.clone(), error },
    };
    let mut options = connect_options(url)?;
    // sqlx would log unknown parameters with their values, which may be passwords, at every connection.
    let removed = address::remove_unknown_parameters(&mut options);
    if removed > 0 {
        tracing::warn!(
            database = shown,
            left_out = removed,
            "ignored unknown parameters of the database URL"
        );
    }
    let mut first = connect(&options).await.map_err(|error| match error {
        sqlx::Error::Configuration(error) => {
            OpenError::Url { database: shown.clone(), reason: error.to_string() }
        }
        error => failed(error.into()),
    })?;
    migrate::run(&mut first, Dialect::Postgres).await.map_err(failed)?;
    first.close().await.map_err(|error| failed(error.into()))?;
    let probe = AnyPoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
    let pool = AnyPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE)
        .after_connect(|connection, _| {
            Box::pin(async {
                // The same as SQLite's busy_timeout.
                sqlx::raw_sql("set lock_timeout = '10s'").execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options);
    Ok(Store {
        readers: pool.clone(),
        cleaner: pool.clone(),
        writer: pool,
        probe: Arc::new(Probe::new(probe, None)),
        dialect: Dialect::Postgres,
        import_lock: PathBuf::new(),
        author: Author::SERVICE,
        row_bytes: ROW_BYTES,
        catalogue_bytes: Limits::default().catalogue_bytes(),
        shown,
    })
}
