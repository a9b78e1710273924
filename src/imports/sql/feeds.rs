//! A replica's work with stored feeds: their documents with the state of their fetches.
//!
//! One replica at a time fetches a feed. It holds the feed's lease and renews it. Once the lease expires, another replica can
//! take it, and the feed is still due.

use std::time::Duration;

use atelier_core::domain::{FeedName, Timestamp};
use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, AssertSqlSafe, FromRow, Row, any::AnyRow};

use crate::{
    imports::feeds::{ALERT, FeedSource, LACKS_CREDENTIALS},
    platform::db::{Store, StoreError, json, record::Record},
};

/// How long a lease is valid. A write may wait ten seconds.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

crate::platform::db::part! {
    /// The stored feeds of a [`Store`]. `documents` changes them.
    Feeds, feeds
}

#[derive(Debug, Clone)]
pub struct Feed {
    pub name: FeedName,
    pub source: FeedSource,
    pub state: FeedState,
    /// Whether a fetch began and did not end.
    pub is_claimed: bool,
    /// A replica fetches it until then at least.
    pub leased_until: Option<Timestamp>,
}

/// The results of fetches. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedState {
    /// The document's. What an earlier one's fetches found says nothing of this one.
    pub revision: i64,
    pub seen: FeedSeen,
    pub import: Option<i64>,
    /// When it was last tried, when that ended, and when one last succeeded.
    pub tried_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub succeeded_at: Option<i64>,
    /// How often in a row it failed, and why it did the last time.
    pub failures: u32,
    pub failure: Option<String>,
}

/// By what a feed that has not changed is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSeen {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Of the file.
    pub sha256: Option<String>,
    /// When it was last imported.
    pub read_at: Option<i64>,
}

impl Feed {
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.leased_until.is_some_and(|until| until > now)
    }

    /// When it is fetched next. None without a schedule.
    pub fn due_at(&self) -> Option<Timestamp> {
        let times = self.source.schedule.as_ref()?.read().ok()?;
        let since = self.state.ended_at.or_else(|| self.source.stored_at());
        Some(times.next(Timestamp::from_millis(since?)))
    }

    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.is_leased(now) && (self.is_claimed || self.due_at().is_some_and(|due| due <= now))
    }
}

impl Feeds<'_> {
    /// All feeds, by name. One that cannot be read does not count: another version may have written it.
    pub async fn list(self) -> Result<Vec<Feed>, StoreError> {
        let rows = sqlx::query("select * from feeds order by name").fetch_all(self.store.readers()?).await?;
        let read =
            |row| Feed::from_row(row).inspect_err(|error| tracing::error!(%error, "a feed is ignored"));
        Ok(rows.iter().filter_map(|row| read(row).ok()).collect())
    }

    pub async fn get(self, name: &str) -> Result<Option<Feed>, StoreError> {
        let select = sqlx::query_as("select * from feeds where name = $1").bind(name);
        Ok(select.fetch_optional(self.store.readers()?).await?)
    }

    /// Takes the feed's lease. None if another holder has it, the feed is gone, or only one that is due is meant. Until the lease
    /// is given back the feed is due.
    pub async fn claim(
        self,
        name: &str,
        holder: &str,
        is_due: bool,
        now: Timestamp,
    ) -> Result<Option<Feed>, StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = format!("select * from feeds where name = $1{}", self.store.dialect.for_update());
        let found: Option<Feed> =
            sqlx::query_as(AssertSqlSafe(sql)).bind(name).fetch_optional(&mut *transaction).await?;
        // Another replica may have fetched it since it was found due.
        let free = |feed: &Feed| if is_due { feed.is_due(now) } else { !feed.is_leased(now) };
        let Some(feed) = found.filter(free) else { return Ok(None) };
        sqlx::query("update feeds set lease_holder = $2, leased_until = $3 where name = $1")
            .bind(name)
            .bind(holder)
            .bind((now + LEASE).millis())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Some(feed))
    }

    /// Stores the state of the fetch that the holder claimed. Its lease lasts until then; without a time it is given back.
    pub async fn note(
        self,
        Feed { name, state, .. }: &Feed,
        holder: &str,
        until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query(
            "update feeds set state = $3, leased_until = $4, lease_holder = case when $4 > 0 then lease_holder end
             where name = $1 and lease_holder = $2",
        )
        .bind(name.as_str())
        .bind(holder)
        .bind(json::text(state))
        .bind(until.map(Timestamp::millis));
        self.store.execute(statement).await.map(drop)
    }
}

/// Hides the credentials of all feeds in a backup's copy of the database. Their failures say so once it is restored.
pub(crate) async fn hide_credentials(copy: &mut AnyConnection) -> Result<(), StoreError> {
    for row in sqlx::query("select * from feeds").fetch_all(&mut *copy).await? {
        let Ok(Feed { name, source, state, .. }) = Feed::from_row(&row) else {
            // Another version may have written it, with secrets.
            let empty = sqlx::query("update feeds set body = 'null' where name = $1");
            empty.bind(row.try_get::<String, _>("name")?).execute(&mut *copy).await?;
            continue;
        };
        let hidden = source.without_credentials();
        if hidden.lacks_credentials() {
            let state = FeedState { failures: ALERT, failure: Some(LACKS_CREDENTIALS.to_owned()), ..state };
            let update =
                sqlx::query("update feeds set body = $2, state = $3 where name = $1").bind(name.as_str());
            update.bind(json::text(&hidden)).bind(json::text(&state)).execute(&mut *copy).await?;
        }
    }
    Ok(())
}

impl FromRow<'_, AnyRow> for Feed {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let (name, revision): (String, _) = (row.try_get("name")?, row.try_get("revision")?);
        let row = Record::new(row, "feeds", &name);
        let state: Option<FeedState> =
            row.parse_optional("state", |state: &str| serde_json::from_str(state))?;
        let state = state.unwrap_or_default();
        let state = if state.revision == revision {
            state
        } else {
            let FeedState { import, tried_at, succeeded_at, .. } = state;
            FeedState { revision, import, tried_at, succeeded_at, ..FeedState::default() }
        };
        Ok(Self {
            source: row.parse("body", |body: &str| serde_json::from_str(body))?,
            state,
            is_claimed: row.get::<Option<String>>("lease_holder")?.is_some(),
            leased_until: row.optional_time("leased_until")?,
            name: row.parse("name", |name: String| FeedName::new(name))?,
        })
    }
}
