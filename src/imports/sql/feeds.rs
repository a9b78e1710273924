//! Stored sources of feeds: addresses that the service fetches by itself, and the results.
//!
//! One replica at a time fetches a feed. It holds the feed's lease and renews it. Once the lease expires, another replica can
//! take it, and the feed is still due.

use std::{fmt, time::Duration};

use atelier_core::domain::Timestamp;
use serde_json::json;
use sqlx::{AnyConnection, FromRow, Row, any::AnyRow};

use super::imports::ImportId;
use crate::{
    imports::feeds::{ALERT, LACKS_CREDENTIALS},
    platform::db::{ChangeError, Entry, Expected, Put, Store, StoreError, Stored, Version, record::Record},
};

/// How long a lease is valid. A write may wait ten seconds.
const LEASE: Duration = Duration::from_secs(30);
/// The most feeds: each replica reads all of them every second.
const MOST: i64 = 100;

/// The stored sources of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Feeds<'a> {
    pub(crate) store: &'a Store,
}

/// What an admin says about a feed. Only the program understands the texts.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedSource {
    /// With the secrets that its query may have.
    pub url: String,
    /// The header's value.
    pub authorization: Option<String>,
    /// JSON: how the feed is read and stored.
    pub options: String,
    /// JSON: when it is fetched. None for only on request.
    pub schedule: Option<String>,
}

impl Store {
    pub fn feeds(&self) -> Feeds<'_> {
        Feeds { store: self }
    }
}

/// Says nothing of the secrets.
impl fmt::Debug for FeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, schedule, .. } = self;
        f.debug_struct("FeedSource")
            .field("options", options)
            .field("schedule", schedule)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    pub name: String,
    pub source: FeedSource,
    pub revision: i64,
    pub seen: FeedSeen,
    pub import: Option<ImportId>,
    /// When it was last tried, and when that last succeeded.
    pub tried_at: Option<Timestamp>,
    pub succeeded_at: Option<Timestamp>,
    /// How often in a row it failed, and why it did the last time.
    pub failures: u32,
    pub failure: Option<String>,
    pub due_at: Option<Timestamp>,
    /// A replica fetches it until then at least.
    pub leased_until: Option<Timestamp>,
}

/// By what a feed that has not changed is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedSeen {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub sha256: Option<String>,
    /// When the file was last read.
    pub read_at: Option<Timestamp>,
}

impl Feed {
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.leased_until.is_some_and(|until| until > now)
    }

    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due_at.is_some_and(|due| due <= now) && !self.is_leased(now)
    }
}

impl Feeds<'_> {
    /// All feeds, by name.
    pub async fn list(self) -> Result<Vec<Stored<Feed>>, StoreError> {
        Ok(sqlx::query_as("select * from feeds order by name").fetch_all(&self.store.readers).await?)
    }

    pub async fn get(self, name: &str) -> Result<Option<Stored<Feed>>, StoreError> {
        Ok(sqlx::query_as("select * from feeds where name = $1")
            .bind(name)
            .fetch_optional(&self.store.readers)
            .await?)
    }

    /// Adds or replaces a feed, and forgets what was seen of an earlier one. `shown` is the address without secrets.
    pub async fn put(
        self,
        name: &str,
        source: &FeedSource,
        shown: &str,
        due_at: Option<Timestamp>,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<(Put, Version), ChangeError> {
        let mut transaction = self.store.write().await?;
        let current = find_version(&mut transaction, name).await?;
        expected.check(current.as_ref())?;
        let row: Stored<Feed> = sqlx::query_as(
            "insert into feeds (name, url, authorization_header, options, schedule, due_at, created_at)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (name) do update set url = excluded.url, authorization_header = excluded.authorization_header,
                options = excluded.options, schedule = excluded.schedule, due_at = excluded.due_at,
                revision = feeds.revision + 1, etag = null, last_modified = null, sha256 = null, read_at = null,
                failures = 0, failure = null
             returning *",
        )
        .bind(name)
        .bind(&source.url)
        .bind(&source.authorization)
        .bind(&source.options)
        .bind(&source.schedule)
        .bind(due_at.map(Timestamp::millis))
        .bind(now.millis())
        .fetch_one(&mut *transaction)
        .await?;
        let put = if row.value.revision == 1 { Put::Added } else { Put::Changed };
        expected.check_put(put, current.is_some())?;
        let count: i64 =
            sqlx::query_scalar("select count(*) from feeds").fetch_one(&mut *transaction).await?;
        if count > MOST {
            let reason = format!("there are {MOST} already; delete one first");
            return Err(StoreError::Unfit { what: "the feed", reason }.into());
        }
        let details = json!({"url": shown, "credentials": source.authorization.is_some()});
        self.store.commit(transaction, &Entry::new("feed.put", name, details), now).await?;
        Ok((put, row.version))
    }

    /// False if there is no such feed.
    pub async fn delete(self, name: &str, expected: &Expected, now: Timestamp) -> Result<bool, ChangeError> {
        let mut transaction = self.store.write().await?;
        expected.check(find_version(&mut transaction, name).await?.as_ref())?;
        let deleted =
            sqlx::query("delete from feeds where name = $1").bind(name).execute(&mut *transaction).await?;
        if deleted.rows_affected() == 0 {
            return Ok(false);
        }
        self.store.commit(transaction, &Entry::new("feed.delete", name, json!({})), now).await?;
        Ok(true)
    }

    /// Takes the feed's lease. None if another holder has it, the feed is gone, or only one that is due is meant. Until
    /// [`Feeds::finish`] the feed is due.
    pub async fn claim(
        self,
        name: &str,
        holder: &str,
        is_due: bool,
        now: Timestamp,
    ) -> Result<Option<Feed>, StoreError> {
        let mut transaction = self.store.write().await?;
        let claimed: Option<Stored<Feed>> = sqlx::query_as(
            "update feeds set lease_holder = $2, leased_until = $4, tried_at = $3,
                due_at = case when due_at < $3 then due_at else $3 end
             where name = $1 and coalesce(leased_until, 0) <= $3 and coalesce(due_at, $3) <= $5 returning *",
        )
        .bind(name)
        .bind(holder)
        .bind(now.millis())
        .bind((now + LEASE).millis())
        // Another replica may have fetched it since it was found due.
        .bind(if is_due { now.millis() } else { i64::MAX })
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(claimed.map(|stored| stored.value))
    }

    /// Renews the lease, and notes the import that it is for.
    pub async fn renew(
        self,
        name: &str,
        holder: &str,
        import: ImportId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query(
            "update feeds set leased_until = case when leased_until > $3 then leased_until else $3 end, import_id = $4
             where name = $1 and lease_holder = $2",
        )
        .bind(name)
        .bind(holder)
        .bind((now + LEASE).millis())
        .bind(import.0);
        self.store.execute(statement).await.map(drop)
    }

    /// Stores the result of the fetch that the holder claimed as `feed`, and gives the lease back. If the feed was replaced
    /// meanwhile, what was seen of the earlier one does not matter.
    pub async fn finish(
        self,
        feed: &Feed,
        holder: &str,
        ended: Result<&FeedSeen, Option<&str>>,
        due_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = match ended {
            Ok(seen) => sqlx::query(
                "update feeds set leased_until = null, lease_holder = null, succeeded_at = $4, failures = 0, failure = null,
                    due_at = case when revision = $3 then $5 else due_at end,
                    etag = case when revision = $3 then $6 end, last_modified = case when revision = $3 then $7 end,
                    sha256 = case when revision = $3 then $8 end, read_at = case when revision = $3 then $9 end
                 where name = $1 and lease_holder = $2",
            )
            .bind(&feed.name)
            .bind(holder)
            .bind(feed.revision)
            .bind(now.millis())
            .bind(due_at.map(Timestamp::millis))
            .bind(&seen.etag)
            .bind(&seen.last_modified)
            .bind(&seen.sha256)
            .bind(seen.read_at.map(Timestamp::millis)),
            Err(reason) => sqlx::query(
                "update feeds set leased_until = null, lease_holder = null, failures = failures + $6, failure = coalesce($4, failure),
                    due_at = case when revision = $3 then $5 else due_at end
                 where name = $1 and lease_holder = $2",
            )
            .bind(&feed.name)
            .bind(holder)
            .bind(feed.revision)
            .bind(reason)
            .bind(due_at.map(Timestamp::millis))
            .bind(i64::from(reason.is_some())),
        };
        self.store.execute(statement).await.map(drop)
    }
}

/// Hides the credentials of all feeds in a backup's copy of the database. Their failures say so once it is restored.
pub(crate) async fn hide_credentials(copy: &mut AnyConnection) -> Result<(), StoreError> {
    let feeds: Vec<Stored<Feed>> = sqlx::query_as("select * from feeds").fetch_all(&mut *copy).await?;
    for Stored { value: Feed { name, source, .. }, .. } in feeds {
        let hidden = source.without_credentials();
        if hidden.lacks_credentials() {
            let update = "update feeds set url = $2, authorization_header = $3, failures = $4, failure = $5 where name = $1";
            let update = sqlx::query(update).bind(name).bind(hidden.url).bind(hidden.authorization);
            update.bind(i64::from(ALERT)).bind(LACKS_CREDENTIALS).execute(&mut *copy).await?;
        }
    }
    Ok(())
}

async fn find_version(connection: &mut AnyConnection, name: &str) -> Result<Option<Version>, StoreError> {
    let row: Option<Stored<Feed>> =
        sqlx::query_as("select * from feeds where name = $1").bind(name).fetch_optional(connection).await?;
    Ok(row.map(|row| row.version))
}

/// The version follows from no secret: it is sent to callers.
impl FromRow<'_, AnyRow> for Stored<Feed> {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let name: String = row.try_get("name")?;
        let (created_at, revision) = (row.try_get("created_at")?, row.try_get("revision")?);
        let row = Record::new(row, "feeds", &name);
        let value = Feed {
            source: FeedSource {
                url: row.get("url")?,
                authorization: row.get("authorization_header")?,
                options: row.get("options")?,
                schedule: row.get("schedule")?,
            },
            revision,
            seen: FeedSeen {
                etag: row.get("etag")?,
                last_modified: row.get("last_modified")?,
                sha256: row.get("sha256")?,
                read_at: row.optional_time("read_at")?,
            },
            import: row.get::<Option<i64>>("import_id")?.map(ImportId),
            tried_at: row.optional_time("tried_at")?,
            succeeded_at: row.optional_time("succeeded_at")?,
            failures: row.parse("failures", |count: i64| u32::try_from(count))?,
            failure: row.get("failure")?,
            due_at: row.optional_time("due_at")?,
            leased_until: row.optional_time("leased_until")?,
            name: name.clone(),
        };
        Ok(Self { version: Version::new(created_at, revision, &[&name]), value })
    }
}
