//! Importing whole files, all or nothing.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use atelier_core::domain::{ArticleId, CustomerId, Outfit, Timestamp};
use futures_util::TryStreamExt;
use serde_json::json;
use sqlx::{Any, AssertSqlSafe, Transaction};
use tokio::time::{Instant, timeout_at};

use super::{
    Author, Counts, Entry, Resource, Store, StoreError,
    articles::article_id,
    connect::Dialect,
    customers::customer_id,
    outfits::OutfitRow,
    pages::{self, PARSED_TOGETHER},
    resource::{ResourceRow, by_id},
    revisions::{self, Changed},
    upsert,
};

/// How long an import waits for another import, or on `SQLite` for any write. Imports take long.
const PATIENCE: Duration = Duration::from_mins(1);
/// The key of the advisory lock that imports take on Postgres: "atel" in ASCII. Without the lock, two imports of the
/// same rows would wait for each other's rows, with a shorter timeout, or deadlock.
const LOCK: i64 = 0x6174_656c;

/// A running import, which is one transaction. Nothing is stored if it is dropped without [`Import::commit`], or the
/// process is killed.
///
/// Pass it slices of a few thousand rows, so that a file need not fit into memory.
pub struct Import {
    transaction: Transaction<'static, Any>,
    dialect: Dialect,
    author: Author,
    row_bytes: u32,
    now: Timestamp,
    /// How often each outfit, by half of its digest, appeared so far. A file may contain an outfit several times, and an
    /// export must write it as often.
    repeated: HashMap<[u8; 16], u32>,
    /// What happened to each table's rows, for the audit log.
    tables: BTreeMap<&'static str, TableCounts>,
    /// The articles that were added, changed or retired.
    changed: Changed,
}

#[derive(Debug, Clone, Copy, Default)]
struct TableCounts {
    stored: Counts,
    retired: u64,
    bad: u64,
}

/// What became of rows or patches.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub counts: Counts,
    /// Those that were not stored, by their indices, and why.
    pub refused: Vec<(usize, String)>,
}

const ARTICLES: &str = "articles";
const OUTFITS: &str = "outfits";

impl Import {
    pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let transaction = match store.dialect {
            Dialect::Sqlite => begin_sqlite(store).await?,
            Dialect::Postgres => begin_postgres(store).await?,
        };
        Ok(Self {
            transaction,
            dialect: store.dialect,
            author: store.author,
            row_bytes: store.row_bytes,
            now,
            repeated: HashMap::new(),
            tables: BTreeMap::new(),
            changed: Changed::default(),
        })
    }

    /// Whether the database has no articles and no customers. No other import can change that before this one ends.
    pub async fn is_empty(&mut self) -> Result<bool, StoreError> {
        let any: Option<(String,)> =
            sqlx::query_as("select id from articles union all select id from customers limit 1")
                .fetch_optional(&mut *self.transaction)
                .await?;
        Ok(any.is_none())
    }

    /// Every article's id, including this import's.
    pub async fn article_ids(&mut self) -> Result<Vec<ArticleId>, StoreError> {
        sqlx::query_scalar("select id from articles order by id")
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .and_then(async |id| article_id(id))
            .try_collect()
            .await
    }

    /// Every customer's id, including this import's.
    pub async fn customer_ids(&mut self) -> Result<Vec<CustomerId>, StoreError> {
        sqlx::query_scalar("select id from customers order by id")
            .fetch(&mut *self.transaction)
            .map_err(StoreError::from)
            .and_then(async |id| customer_id(id))
            .try_collect()
            .await
    }

    /// Adds values, or replaces those with their ids. Refuses those that have too many bytes.
    pub async fn put<R: Resource>(&mut self, values: &[R]) -> Result<Outcome, StoreError> {
        let (row_bytes, millis) = (self.row_bytes, self.now.millis());
        let mut refused = Vec::new();
        let rows = values.iter().map(|value| ResourceRow::new(value, row_bytes, millis));
        let rows = without_unfit(rows, &mut refused);
        let written = upsert::write_all(&mut self.transaction, self.dialect, rows).await?;
        if R::IS_FOLLOWED {
            self.changed.add(written.names);
        }
        Ok(Outcome { counts: self.count(R::TABLE, written.counts), refused })
    }

    /// Changes values, or adds those that a patch says enough of: of an article, its type.
    pub async fn merge<R: Resource>(&mut self, patches: &[R::Patch]) -> Result<Outcome, StoreError> {
        let select = format!("select {} from {} where id in", R::COLUMNS, R::TABLE);
        let mut all = Outcome { counts: Counts::default(), refused: Vec::new() };
        for (first, patches) in (0..).step_by(PARSED_TOGETHER).zip(patches.chunks(PARSED_TOGETHER)) {
            let ids: Vec<&str> = patches.iter().map(|patch| R::target(patch).borrow()).collect();
            let rows = pages::lock_by_ids(&mut self.transaction, self.dialect, &select, &ids).await?;
            let mut stored = by_id::<R>(rows)?;
            let (mut changed, mut indices) = (Vec::with_capacity(patches.len()), Vec::new());
            for (index, patch) in (first..).zip(patches) {
                match R::apply(patch, stored.remove::<str>(R::target(patch).borrow())) {
                    Ok(value) => {
                        changed.push(value);
                        indices.push(index);
                    }
                    Err(error) => all.refused.push((index, error.to_string())),
                }
            }
            let put = self.put(&changed).await?;
            all.counts += put.counts;
            all.refused.extend(put.refused.into_iter().map(|(index, reason)| (indices[index], reason)));
        }
        Ok(all)
    }

    /// Removes articles from the catalogue, but not from outfits.
    pub async fn retire(&mut self, ids: &[ArticleId]) -> Result<(), StoreError> {
        self.changed.add(ids.iter().map(ToString::to_string));
        for ids in ids.chunks(upsert::ROWS) {
            let places = upsert::placeholders(self.dialect, 1, ids.len());
            let sql = format!("delete from articles where id in {places}");
            let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(ids.len() == upsert::ROWS);
            for id in ids {
                query = query.bind(id.as_str());
            }
            let deleted = query.execute(&mut *self.transaction).await?.rows_affected();
            self.tables.entry(ARTICLES).or_default().retired += deleted;
        }
        Ok(())
    }

    /// Adds outfits, and refuses those whose features have too many bytes. It does not check whether the catalogue has their
    /// articles.
    ///
    /// # Errors
    /// If the database has no such customer (`Conflict`), or fails.
    pub async fn outfits(&mut self, outfits: &[Outfit]) -> Result<Outcome, StoreError> {
        let (repeated, row_bytes, millis) = (&mut self.repeated, self.row_bytes, self.now.millis());
        let mut refused = Vec::new();
        let rows = outfits.iter().map(|outfit| {
            let row = OutfitRow::imported(outfit, row_bytes, millis)?;
            let half = *row.digest().first_chunk().expect("16 is less than 32; this is a bug");
            let times = repeated.entry(half).or_insert(0);
            *times += 1;
            Ok(if *times == 1 { row } else { row.repeated(*times - 1) })
        });
        let rows = without_unfit(rows, &mut refused);
        let written = upsert::write_all(&mut self.transaction, self.dialect, rows).await?;
        Ok(Outcome { counts: self.count(OUTFITS, written.counts), refused })
    }

    /// Notes for the audit log that bad rows of a table are left out.
    pub fn leave_out(&mut self, table: &'static str, rows: u64) {
        self.tables.entry(table).or_default().bad += rows;
    }

    fn count(&mut self, table: &'static str, counts: Counts) -> Counts {
        self.tables.entry(table).or_default().stored += counts;
        counts
    }

    /// Makes all rows visible at once. The audit log has an entry for each table that changed.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let tables = std::mem::take(&mut self.tables);
        let changes = |table: &TableCounts| table.stored.added + table.stored.changed + table.retired > 0;
        for (table, TableCounts { stored, retired, bad }) in tables.iter().filter(|(_, table)| changes(table))
        {
            let action = format!("{table}.bulk");
            let mut details = json!({"added": stored.added, "changed": stored.changed, "bad": bad});
            if *retired > 0 {
                details["retired"] = (*retired).into();
            }
            let entry = Entry::new(&action, table, details);
            entry.write(&mut self.transaction, self.author, self.now).await?;
        }
        if tables.get(ARTICLES).is_some_and(changes) {
            revisions::change_articles(
                &mut self.transaction,
                self.dialect,
                std::mem::take(&mut self.changed),
            )
            .await?;
        }
        Ok(self.transaction.commit().await?)
    }
}

/// The rows without those that do not fit, which are noted by their indices.
fn without_unfit<Row>(
    rows: impl Iterator<Item = Result<Row, StoreError>>,
    refused: &mut Vec<(usize, String)>,
) -> impl Iterator<Item = Result<Row, StoreError>> {
    rows.enumerate().filter_map(|(index, row)| match row {
        Err(error @ StoreError::Unfit { .. }) => {
            refused.push((index, error.to_string()));
            None
        }
        row => Some(row),
    })
}

/// Begins a write again and again: one attempt waits less long than imports should.
async fn begin_sqlite(store: &Store) -> Result<Transaction<'static, Any>, StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match timeout_at(deadline, store.write()).await {
            Ok(Err(StoreError::Busy { .. })) => {}
            Ok(done) => return done,
            Err(_) => return Err(behind_another()),
        }
    }
}

async fn begin_postgres(store: &Store) -> Result<Transaction<'static, Any>, StoreError> {
    // An import must see the rows of the one before it. A stricter level, which may be the server's default, would show
    // the database from before the wait.
    let mut transaction = store.writer.begin_with("begin isolation level read committed").await?;
    let patience = format!("set local lock_timeout = '{}s'", PATIENCE.as_secs());
    sqlx::raw_sql(AssertSqlSafe(patience)).execute(&mut *transaction).await?;
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
        reason: format!("another import or write has been running for {} seconds", PATIENCE.as_secs()),
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
