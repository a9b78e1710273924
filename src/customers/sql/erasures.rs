//! Completing erasures in the files of `SQLite`.
//!
//! `secure_delete` overwrites deleted rows, but not everything: the log has pages from before the deletion, and a page
//! that was split keeps copies of the rows that moved away in its free space, where nothing overwrites them. So after
//! erasures the file is rewritten (`vacuum`) and the log emptied. Readers go on; writes wait.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::platform::db::{Store, StoreError, connect::Dialect, revisions, values};

/// How often to look for erasures, of this process or another, and the wait after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Rewriting may take this share of the time: after a second of it comes a minute's pause.
const SHARE: u32 = 60;
/// Failures are logged if they last longer. A backup or an export may keep the log from being emptied.
const PATIENCE: Duration = Duration::from_mins(1);

impl Store {
    /// Removes what erasures leave in the files of `SQLite`, until it is aborted. On Postgres it returns at once.
    pub async fn complete_erasures(self) {
        if self.dialect == Dialect::Postgres {
            return;
        }
        let mut rewritten = 0;
        let mut failing: Option<Instant> = None;
        loop {
            sleep(PAUSE).await;
            let began = Instant::now();
            let error = match self.complete_once(&mut rewritten).await {
                Ok(took) => {
                    failing = None;
                    sleep_until(Instant::now() + took * SHARE).await;
                    continue;
                }
                Err(error) => error,
            };
            let since = *failing.get_or_insert_with(Instant::now);
            if since.elapsed() > PATIENCE {
                tracing::warn!(
                    %error,
                    "erased customers cannot be removed from the database's files yet; trying again"
                );
                failing = Some(Instant::now() + 60 * PATIENCE);
            }
            // A rewrite that fails, on a full disk say, holds writes up, too.
            sleep(began.elapsed() * SHARE).await;
        }
    }

    /// Completes the erasures, if there are any. `rewritten` is the number of erasures when the file was last rewritten.
    /// Gives how long writes had to wait.
    async fn complete_once(&self, rewritten: &mut i64) -> Result<Duration, StoreError> {
        let erasures = revisions::read(self, revisions::ERASURES).await?;
        if erasures == 0 {
            return Ok(Duration::ZERO);
        }
        let began = if *rewritten == erasures {
            Instant::now()
        } else {
            // This process's writes wait here, first come, first served, rather than for the file's lock.
            let _turn = self.writer.acquire().await?;
            let began = Instant::now();
            sqlx::raw_sql("vacuum").execute(&self.cleaner).await?;
            *rewritten = erasures;
            began
        };
        self.empty_log().await?;
        let took = began.elapsed();
        // An erasure in the meantime has counted on.
        let sql = "update revisions set value = 0 where name = $1 and value = $2";
        let done = sqlx::query_with(sql, values![revisions::ERASURES, erasures]);
        self.execute(done).await?;
        *rewritten = 0;
        Ok(took)
    }

    /// Moves the log into the file and truncates it.
    ///
    /// # Errors
    /// If another program reads an old state of the database (`Busy`), or the database fails.
    pub(crate) async fn empty_log(&self) -> Result<(), StoreError> {
        let _turn = self.writer.acquire().await?;
        let (busy, _, _): (i64, i64, i64) =
            sqlx::query_as("pragma wal_checkpoint(truncate)").fetch_one(&self.cleaner).await?;
        if busy == 0 {
            return Ok(());
        }
        Err(StoreError::Busy { reason: "another program reads it, such as a backup".into() })
    }
}
