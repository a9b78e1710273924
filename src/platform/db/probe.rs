//! Checks whether the database answers, on a connection of its own: a busy database, or one whose other connections are all
//! taken, is healthy.
//!
//! This is a circuit breaker: after the database stops answering, no request waits for it until it answers a ping.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, any::AnyConnectOptions, pool::PoolConnection};
use tokio::time::timeout;

use super::{StoreError, connect::connect};

const DEADLINE: Duration = Duration::from_secs(3);
/// How long a read waits before the database counts as gone, unless it answers pings.
const PATIENCE: Duration = Duration::from_secs(1);
/// For how long an answer tells that the database answers.
const RECENT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Probe {
    /// One connection.
    pub(crate) pool: AnyPool,
    /// On `SQLite`.
    file: Option<File>,
    answered: Mutex<Option<Instant>>,
    /// The breaker is open.
    is_gone: AtomicBool,
}

/// A file that may be deleted, replaced or damaged while open connections go on with what they have.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    identity: (u64, u64),
    /// Reads the file itself, without the log next to it, in which its beginning may be as well.
    plain: AnyConnectOptions,
}

impl Probe {
    pub(crate) fn new(pool: AnyPool, file: Option<File>) -> Self {
        Self { pool, file, answered: Mutex::default(), is_gone: AtomicBool::default() }
    }

    pub(crate) fn pass(&self) -> Result<(), StoreError> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(StoreError::Unreachable { reason: "it does not answer (breaker open)".into() });
        }
        Ok(())
    }

    pub(crate) async fn soon<T>(
        &self,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut read = pin!(read);
        loop {
            let reason = match timeout(PATIENCE, &mut read).await {
                Ok(Err(StoreError::Unreachable { reason })) => reason,
                Ok(found) => return found,
                // This machine is busy.
                Err(_) if self.answers() => continue,
                Err(_) => "it did not answer within a second".into(),
            };
            if !self.answers() {
                self.open(&reason);
            }
            return Err(StoreError::Unreachable { reason });
        }
    }

    fn open(&self, reason: &str) {
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            tracing::error!(
                reason,
                "the database is gone (breaker open): until it answers, no request waits for it"
            );
        }
    }

    fn answers(&self) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.is_some_and(|at| at.elapsed() < RECENT)
    }

    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let check = async {
            let mut connection = self.pool.acquire().await?;
            let answer = match &self.file {
                Some(file) => file.check(&mut connection).await,
                None => Ok(sqlx::query_scalar("select cast(1 as bigint)")
                    .fetch_one(&mut *connection)
                    .await
                    .map(|_: i64| ())?),
            };
            // A file is opened anew each time.
            if self.file.is_some() || answer.is_err() {
                PoolConnection::detach(connection);
            }
            answer
        };
        let answer = timeout(DEADLINE, check).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} seconds", DEADLINE.as_secs());
            Err(StoreError::Unreachable { reason })
        });
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = answer.is_ok().then(Instant::now);
        match &answer {
            Ok(()) if self.is_gone.swap(false, Ordering::Relaxed) => {
                tracing::info!("the database answers again (breaker closed)");
            }
            Err(StoreError::Unreachable { reason }) => self.open(reason),
            _ => {}
        }
        answer
    }
}

impl File {
    pub(crate) fn new(path: &Path, found: &Metadata, plain: AnyConnectOptions) -> Self {
        Self { path: path.to_owned(), identity: (found.dev(), found.ino()), plain }
    }

    async fn check(&self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let unfit = |reason: &str| StoreError::Unreachable {
            reason: format!(
                "the file {} {reason}; stop the service and restore a backup",
                self.path.display()
            ),
        };
        let damaged = |error: &dyn ToString| unfit(&format!("is damaged ({})", error.to_string()));
        let found = tokio::fs::metadata(&self.path).await.map_err(|_| unfit("was deleted"))?;
        if (found.dev(), found.ino()) != self.identity {
            return Err(unfit("was replaced by another one"));
        }
        if found.len() == 0 {
            return Err(unfit("was emptied"));
        }
        let mut plain = connect(&self.plain).await?;
        let read = sqlx::query("select 1 from sqlite_schema").fetch_optional(&mut plain).await;
        // While the log is being copied into the file, other parts of it may not fit together.
        if let Err(error @ StoreError::NotSqlite) = read.map_err(StoreError::from) {
            return Err(damaged(&error));
        }
        let tables: Vec<String> = sqlx::query_scalar("select name from sqlite_schema where type = 'table'")
            .fetch_all(&mut *connection)
            .await
            .map_err(|error| damaged(&error))?;
        for table in tables {
            sqlx::query(AssertSqlSafe(format!("select 1 from {table} limit 1")))
                .fetch_optional(&mut *connection)
                .await
                .map_err(|error| damaged(&error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::db::Store;

    #[tokio::test]
    async fn nothing_waits_for_a_database_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(&format!("sqlite:{}", path.display())).await.unwrap();
        let slow = async {
            tokio::time::sleep(PATIENCE + PATIENCE / 10).await;
            Ok(10)
        };
        store.ping().await.unwrap();
        assert_eq!(store.soon(slow).await, Ok(10), "a read that waits for this machine is no outage");
        // As if the ping were long ago.
        *store.probe.answered.lock().unwrap() = Instant::now().checked_sub(RECENT);
        store.soon(std::future::pending::<Result<(), StoreError>>()).await.unwrap_err();
        let reads = [store.articles().count().await, store.customers().count().await];
        assert!(store.is_gone() && reads.iter().all(Result::is_err), "{reads:?}");
        store.ping().await.unwrap();
        assert_eq!((store.is_gone(), store.articles().count().await), (false, Ok(0)));
    }
}
