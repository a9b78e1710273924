//! Bringing whole files in, all or nothing.

use std::{collections::HashMap, time::Duration};

use futures_util::TryStreamExt;
use sqlx::{Any, Transaction};
use tokio::time::{Instant, timeout_at};

use super::{
    Counts, Origin, Store, StoreError,
    articles::{ArticleRow, article_id},
    connect::Dialect,
    customers::{CustomerRow, customer_id},
    outfits::OutfitRow,
    revisions, upsert,
};
use crate::domain::Timestamp;
use crate::domain::{Article, ArticleId, Customer, CustomerId, Outfit};

/// How long an import waits for the one before it, or for any other write on `SQLite`: imports are long.
const PATIENCE: Duration = Duration::from_mins(1);
/// Postgres's advisory lock that imports take, within their database: "atel" in ASCII. Without it two
/// imports of the same rows would meet at those rows, where a wait is shorter, or lock each other out.
const LOCK: i64 = 0x6174_656c;

/// An import under way: one transaction. Dropped without [`Import::commit`], it leaves nothing behind; so
/// does a process that is killed meanwhile.
///
/// Give it slices of a few thousand, so that the file need not fit in memory.
pub struct Import {
    transaction: Transaction<'static, Any>,
    dialect: Dialect,
    millis: i64,
    /// How often each outfit, by its digest, came in this import: a file may hold one more than once, and
    /// is to come back as it was.
    repeated: HashMap<[u8; 32], u32>,
    /// Whether an article came or changed.
    articles_changed: bool,
}

impl Import {
    pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let transaction = match store.dialect {
            Dialect::Sqlite => sqlite(store).await?,
            Dialect::Postgres => postgres(store).await?,
        };
        Ok(Self {
            transaction,
            dialect: store.dialect,
            millis: now.millis(),
            repeated: HashMap::new(),
            articles_changed: false,
        })
    }

    /// Whether there is neither an article nor a customer. No other import can change that until this one
    /// ends.
    pub async fn is_empty(&mut self) -> Result<bool, StoreError> {
        let any: Option<(String,)> =
            sqlx::query_as("select id from articles union all select id from customers limit 1")
                .fetch_optional(&mut *self.transaction)
                .await?;
        Ok(any.is_none())
    }

    /// Every article's id, those of this import among them.
    pub async fn article_ids(&mut self) -> Result<Vec<ArticleId>, StoreError> {
        sqlx::query_scalar("select id from articles order by id")
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .and_then(async |id| article_id(id))
            .try_collect()
            .await
    }

    /// Every customer's id, those of this import among them.
    pub async fn customer_ids(&mut self) -> Result<Vec<CustomerId>, StoreError> {
        sqlx::query_scalar("select id from customers order by id")
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .and_then(async |id| customer_id(id))
            .try_collect()
            .await
    }

    pub async fn articles(&mut self, articles: &[Article]) -> Result<Counts, StoreError> {
        let rows = articles.iter().map(|article| Ok(ArticleRow { article, millis: self.millis }));
        let counts = upsert::many(&mut self.transaction, self.dialect, rows).await?;
        self.articles_changed |= counts.added + counts.changed > 0;
        Ok(counts)
    }

    pub async fn customers(&mut self, customers: &[Customer]) -> Result<Counts, StoreError> {
        let rows = customers.iter().map(|customer| CustomerRow::new(customer, self.millis));
        upsert::many(&mut self.transaction, self.dialect, rows).await
    }

    /// # Errors
    /// Among others if a customer is neither here nor in this import (`Conflict`). Articles are not
    /// looked at: whether an outfit may name one that the catalogue lacks is the caller's to say.
    pub async fn outfits(&mut self, outfits: &[Outfit]) -> Result<Counts, StoreError> {
        let (repeated, millis) = (&mut self.repeated, self.millis);
        let rows = outfits.iter().map(|outfit| {
            let row = OutfitRow::new(outfit, Origin::Imported, None, millis)?;
            let times = repeated.entry(row.digest()).or_insert(0);
            *times += 1;
            Ok(if *times == 1 { row } else { row.again(*times - 1) })
        });
        upsert::many(&mut self.transaction, self.dialect, rows).await
    }

    /// Makes all of it visible at once.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        if self.articles_changed {
            revisions::count(&mut self.transaction, revisions::ARTICLES).await?;
        }
        Ok(self.transaction.commit().await?)
    }
}

/// As every write, which gives up sooner, but again and again.
async fn sqlite(store: &Store) -> Result<Transaction<'static, Any>, StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match timeout_at(deadline, store.write()).await {
            Ok(Err(StoreError::Busy { .. })) => {}
            Ok(done) => return done,
            Err(_) => return Err(behind_another()),
        }
    }
}

async fn postgres(store: &Store) -> Result<Transaction<'static, Any>, StoreError> {
    // Whatever the server's default: an import must see what the one before it brought, and a stricter
    // level would show it the moment when it began to wait.
    let mut transaction = store.writer.begin_with("begin isolation level read committed").await?;
    let patience = format!("set local lock_timeout = '{}s'", PATIENCE.as_secs());
    sqlx::raw_sql(sqlx::AssertSqlSafe(patience)).execute(&mut *transaction).await?;
    let locked = sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await;
    locked.map_err(|error| match error.into() {
        StoreError::Busy { .. } => behind_another(),
        error => error,
    })?;
    sqlx::raw_sql("set local lock_timeout = '10s'").execute(&mut *transaction).await?;
    Ok(transaction)
}

fn behind_another() -> StoreError {
    StoreError::Busy {
        reason: format!("another import or write has held it for {} seconds", PATIENCE.as_secs()),
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
