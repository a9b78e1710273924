//! Importing whole files, all or nothing.
//!
//! An import writes slices of rows in transactions of their own, so that other writes wait for one slice at most. No reader sees
//! them before the import counts; `migrations/sqlite/0001_atelier.sql` says how. The next import, or the next start, removes what a
//! killed import left. An import that can be undone leaves what its rows were in them; undoing it is taking it back as if it had
//! been killed.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{File, TryLockError},
    io,
    pin::pin,
    time::Duration,
};

use atelier_core::domain::{Article, ArticleId, Customer, CustomerId, Outfit, Timestamp};
use futures_util::{Stream, TryStreamExt};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sqlx::{
    Any, AnyConnection, AssertSqlSafe, Connection, Row as _, Transaction,
    any::{AnyArguments, AnyRow},
    pool::PoolConnection,
    query::Query,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::imports::{self, ImportId};
use crate::{
    catalogue::article_id,
    customers::customer_id,
    outfits::OutfitRow,
    platform::db::{
        Counts, Entry, Resource, Store, StoreError,
        connect::Dialect,
        json,
        memory::{self, Held},
        overtaking::{WRITING, overtaken},
        pages::{self, PARSED_TOGETHER},
        resource::{ResourceRow, by_id, forget_retired, remove},
        revisions::{self, Changed},
        upsert::{self, Row, Written},
    },
};

/// How long an import waits for another import, or on `SQLite` for any write.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// The key of the advisory lock that an import holds on Postgres: "atel" in ASCII.
const LOCK: i64 = 0x6174_656c;
/// Rows that are cleaned up in one transaction. Others get as much time between two of them.
const STEP: u64 = 2000;
/// How long an import can be undone.
const UNDOABLE: Duration = Duration::from_hours(7 * 24);

/// A running import. Nothing is visible if it is dropped without [`Import::commit`], or the process is killed.
///
/// Pass it slices of a few thousand rows, so that a file need not fit into memory and other writes do not wait long.
pub struct Import {
    store: Store,
    lock: Lock,
    number: i64,
    /// The catalogue's memory before it.
    memory: i64,
    now: Timestamp,
    /// How often each outfit, by half of its digest, appeared so far. A file may contain an outfit several times, and an
    /// export must write it as often.
    repeated: HashMap<[u8; 16], u32>,
    /// The changes of each table's rows, for the audit log.
    tables: BTreeMap<&'static str, TableCounts>,
    /// The articles that were added, changed or retired.
    changed: Changed,
    /// Its record's text once it is committed.
    result: Option<(ImportId, String)>,
    /// Whether it can be undone.
    is_kept: bool,
    /// Customers who are erased at the end.
    erased: BTreeSet<CustomerId>,
}

/// A table that imports write, its key, and the columns that they change. A row of the running import whose first old column is
/// null is new.
struct Table {
    name: &'static str,
    key: (&'static str, &'static str),
    /// Before the first key.
    first: &'static str,
    columns: &'static [&'static str],
}

/// In the order in which an import is taken back: deleting a customer deletes their outfits, however many.
const TABLES: [Table; 3] = [
    Table { name: "outfits", key: ("seq", "bigint"), first: "0", columns: &["split"] },
    Table {
        name: "customers",
        key: ("id", "text"),
        first: "",
        columns: &["features", "name_key", "updated_at"],
    },
    Table {
        name: "articles",
        key: ("id", "text"),
        first: "",
        columns: &["type", "attributes", "name_key", "memory"],
    },
];

#[derive(Debug, Clone, Copy, Default)]
struct TableCounts {
    stored: Counts,
    retired: u64,
    bad: u64,
}

#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub counts: Counts,
    /// Those that were not stored, by their indices, and why.
    pub refused: Vec<(usize, String)>,
}

/// An attribute that an import takes away from articles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub attribute: String,
    /// How many lose it, and how many had it.
    pub lost: u64,
    pub had: u64,
}

/// An import by its own number, or by that of its record.
#[derive(Debug, Clone, Copy)]
pub enum Undo {
    Number(i64),
    Record(ImportId),
}

/// Effects of undoing an import: the rows that are as before, and the new ones that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undone {
    pub restored: u64,
    pub removed: u64,
}

const ARTICLES: &str = "articles";
const CUSTOMERS: &str = "customers";
const OUTFITS: &str = "outfits";

impl Store {
    /// Begins an import, which stores all of its rows or none. One import runs at a time; another waits up to a minute, then
    /// fails with [`StoreError::Busy`]. Other writes wait for a slice of its rows at most.
    pub async fn import(&self, now: Timestamp) -> Result<Import, StoreError> {
        Import::begin(self, now, PATIENCE).await
    }
}

impl Import {
    pub(crate) async fn begin(store: &Store, now: Timestamp, patience: Duration) -> Result<Self, StoreError> {
        let mut lock = Lock::take(store, patience).await?;
        clean(store, &mut lock, now).await?;
        let mut transaction = lock.begin(store).await?;
        let number = count_on(&mut transaction).await?;
        let memory = Held::Catalogue.read(&mut transaction).await?;
        transaction.commit().await?;
        Ok(Self {
            store: store.clone(),
            lock,
            number,
            memory,
            now,
            repeated: HashMap::new(),
            tables: BTreeMap::new(),
            changed: Changed::default(),
            result: None,
            is_kept: false,
            erased: BTreeSet::new(),
        })
    }

    /// Whether the database has no articles and no customers. No other import can change that before this one ends.
    pub async fn is_empty(&mut self) -> Result<bool, StoreError> {
        let any: Option<(String,)> = sqlx::query_as(
            "select id from visible_articles union all select id from visible_customers limit 1",
        )
        .fetch_optional(self.store.readers()?)
        .await?;
        Ok(any.is_none())
    }

    /// The id of every article that readers see, which are those before the import.
    pub async fn article_ids(&mut self) -> Result<Vec<ArticleId>, StoreError> {
        sqlx::query_scalar("select id from visible_articles order by id")
            .fetch(self.store.readers()?)
            .map_err(StoreError::from)
            .and_then(async |id| article_id(id))
            .try_collect()
            .await
    }

    /// The id of every variant, with that of its article.
    pub async fn variants(&mut self) -> Result<Vec<(ArticleId, ArticleId)>, StoreError> {
        let rows: Vec<(String, String)> =
            sqlx::query_as("select id, article_id from variants where is_old = 0")
                .fetch_all(self.store.readers()?)
                .await?;
        rows.into_iter().map(|(id, article)| Ok((article_id(id)?, article_id(article)?))).collect()
    }

    /// The id of every customer that readers see.
    pub async fn customer_ids(&mut self) -> Result<Vec<CustomerId>, StoreError> {
        sqlx::query_scalar("select id from visible_customers order by id")
            .fetch(self.store.readers()?)
            .map_err(StoreError::from)
            .and_then(async |id| customer_id(id))
            .try_collect()
            .await
    }

    /// Adds values, or replaces those with their ids. Refuses those that have too many bytes.
    pub async fn put<R: Resource>(&mut self, values: &[R]) -> Result<Outcome, StoreError> {
        let mut transaction = self.lock.begin(&self.store).await?;
        let (written, refused) = write(&mut transaction, &self.store, values, self.now, self.number).await?;
        transaction.commit().await?;
        Ok(Outcome { counts: self.note::<R>(written), refused })
    }

    /// Changes values, or adds those that a patch says enough of: of an article, its type.
    pub async fn merge<R: Resource>(&mut self, patches: &[R::Patch]) -> Result<Outcome, StoreError> {
        // With what this import wrote: rows about several variants of an article need not be together.
        let select = format!("select {} from {} where id in", R::COLUMNS, R::TABLE);
        let mut all = Outcome { counts: Counts::default(), refused: Vec::new() };
        for (first, patches) in (0..).step_by(PARSED_TOGETHER).zip(patches.chunks(PARSED_TOGETHER)) {
            let mut transaction = self.lock.begin(&self.store).await?;
            let targets: Vec<&R::Id> = patches.iter().map(R::target).collect();
            let aliases = R::aliases(&self.store, &mut transaction, &targets).await?;
            let ids: Vec<&R::Id> =
                targets.into_iter().map(|id| aliases.get::<R::Id>(id).unwrap_or(id)).collect();
            let texts: Vec<&str> = ids.iter().map(|id| (*id).borrow()).collect();
            forget_retired::<R>(&mut transaction, self.store.dialect, &texts).await?;
            let rows = pages::lock_by_ids(&mut transaction, self.store.dialect, &select, &texts).await?;
            let mut stored = by_id::<R>(rows)?;
            let (mut changed, mut indices) = (Vec::<R>::with_capacity(patches.len()), Vec::new());
            let mut places = HashMap::new();
            for ((index, patch), id) in (first..).zip(patches).zip(ids) {
                // Several variants may be of one article.
                let place = places.get(id).copied();
                let before = place
                    .map(|place: usize| changed[place].clone())
                    .or_else(|| stored.remove::<str>(id.borrow()));
                match (R::apply(patch, before), place) {
                    (Ok(value), Some(place)) => changed[place] = value,
                    (Ok(value), None) => {
                        places.insert(id, changed.len());
                        changed.push(value);
                        indices.push(index);
                    }
                    (Err(error), _) => all.refused.push((index, error.to_string())),
                }
            }
            let (written, unfit) =
                write(&mut transaction, &self.store, &changed, self.now, self.number).await?;
            transaction.commit().await?;
            all.counts += self.note::<R>(written);
            all.refused.extend(unfit.into_iter().map(|(index, reason)| (indices[index], reason)));
        }
        Ok(all)
    }

    /// Gives an article that this import wrote a variant back that it had before.
    pub async fn keep_variant(&mut self, id: &ArticleId, variant: &str) -> Result<(), StoreError> {
        let select = "select type, attributes, old_attributes from articles
            where id = $1 and import = $2 and old_attributes is not null";
        let row: Option<(String, String, String)> = sqlx::query_as(select)
            .bind(id.as_str())
            .bind(self.number)
            .fetch_optional(self.store.readers()?)
            .await?;
        let Some((kind, attributes, old)) = row else { return Ok(()) };
        let parse = |attributes| Article::parse((id.to_string(), kind.clone(), attributes));
        let (article, before) = (parse(attributes)?, parse(old)?);
        let lost = before.attribute("variants").and_then(Value::as_array).into_iter().flatten();
        let lost = lost.filter(|lost| lost["id"] == variant).take(1).cloned();
        let mut attributes = article.kept_attributes().into_owned();
        if let Some(Value::Array(variants)) = attributes.get_mut("variants") {
            variants.extend(lost);
        }
        if let Ok(mut article) = Article::new(id.clone(), kind, attributes)
            && article.normalise().is_ok()
        {
            self.put(&[article]).await?;
        }
        Ok(())
    }

    /// Erases customers at the end, as a single erasure does, and gives how many there are.
    pub async fn erase(&mut self, ids: &[CustomerId]) -> Result<u64, StoreError> {
        let texts: Vec<&str> = ids.iter().map(CustomerId::as_str).collect();
        let select = "select id from visible_customers where id in";
        let found: Vec<(String,)> = pages::by_ids(&self.store, select, &texts).await?;
        self.erased.extend(ids.iter().cloned());
        let found = found.len() as u64;
        self.tables.entry(CUSTOMERS).or_default().retired += found;
        Ok(found)
    }

    /// Removes articles from the catalogue, but not from outfits, and gives how many there were.
    pub async fn retire(&mut self, ids: &[ArticleId]) -> Result<u64, StoreError> {
        let (dialect, mut all) = (self.store.dialect, 0);
        for ids in ids.chunks(upsert::ROWS) {
            let mut transaction = self.lock.begin(&self.store).await?;
            let ids: Vec<&str> = ids.iter().map(ArticleId::as_str).collect();
            let overtaken = overtaken(&mut transaction, dialect, ARTICLES, &ids).await?;
            let ids: Vec<&str> = ids.into_iter().filter(|id| !overtaken.contains(id)).collect();
            if ids.is_empty() {
                continue;
            }
            let sql = format!(
                "update articles set old_type = type, old_attributes = attributes, old_name_key = name_key,
                    old_memory = memory, type = '', memory = 0, import = {}, revision = revision + 1
                 where id in {} and type <> '' returning id",
                self.number,
                upsert::placeholders(dialect, 1, ids.len())
            );
            let mut update = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false);
            for id in ids {
                update = update.bind(id);
            }
            let retired: Vec<String> = update.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            all += retired.len() as u64;
            self.changed.add(retired);
        }
        self.tables.entry(ARTICLES).or_default().retired += all;
        Ok(all)
    }

    /// Adds outfits. It does not check whether the catalogue has their articles.
    /// `Conflict` if the database has no such customer.
    pub async fn outfits(&mut self, outfits: &[Outfit]) -> Result<Outcome, StoreError> {
        let mut transaction = self.lock.begin(&self.store).await?;
        let (repeated, millis, number) = (&mut self.repeated, self.now.millis(), self.number);
        let (row_bytes, mut refused) = (self.store.row_bytes, Vec::new());
        let rows = outfits.iter().map(|outfit| {
            let row = OutfitRow::imported(outfit, row_bytes, millis, number)?;
            let half = *row.digest().first_chunk().expect("16 is less than 32");
            let times = repeated.entry(half).or_insert(0);
            *times += 1;
            Ok(if *times == 1 { row } else { row.repeated(*times - 1) })
        });
        let rows = without_unfit(rows, &mut refused);
        let written = upsert::write_all(&mut transaction, self.store.dialect, rows).await?;
        transaction.commit().await?;
        Ok(Outcome { counts: self.count(OUTFITS, written.counts), refused })
    }

    /// The attributes that it takes away from more than this percentage of the articles that had them, and those of `proposed` that it
    /// takes away at all. What few articles have may go, as a campaign does.
    pub async fn losses(&mut self, percent: u8, proposed: &[&str]) -> Result<Vec<Loss>, StoreError> {
        /// An attribute of less than one article in twenty is one of few.
        const FEW: u64 = 20;
        if percent >= 100 {
            return Ok(Vec::new());
        }
        let percent = u64::from(percent);
        let changed = format!(
            "select id, old_attributes, attributes from articles
             where import = {} and old_type <> '' and type <> '' and id > $1 order by id limit $2",
            self.number
        );
        let (mut lost, mut had) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
        let mut rows = pin!(self.read_attributes(changed, |row| {
            Ok(find_lost(attribute_names(row, 1)?, &attribute_names(row, 2)?))
        }));
        while let Some(names) = rows.try_next().await? {
            for name in names {
                *lost.entry(name).or_default() += 1;
            }
        }
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let is_proposed = |name: &str| proposed.contains(&name);
        let articles = self.store.articles().count().await?;
        lost.retain(|name, lost| is_proposed(name) || *lost * 100 * FEW > articles * percent);
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let all = "select id, attributes from visible_articles where id > $1 order by id limit $2".to_owned();
        let mut rows = pin!(self.read_attributes(all, |row| attribute_names(row, 1)));
        while let Some(names) = rows.try_next().await? {
            for name in names.into_iter().filter(|name| lost.contains_key(name)) {
                *had.entry(name).or_default() += 1;
            }
        }
        let losses = lost.into_iter().map(|(attribute, lost)| Loss {
            had: had.get(&attribute).copied().unwrap_or(lost),
            attribute,
            lost,
        });
        let is_refused = |Loss { attribute, lost, had }: &Loss| {
            is_proposed(attribute) || *had * FEW >= articles && *lost * 100 > *had * percent
        };
        Ok(losses.filter(is_refused).collect())
    }

    /// The names of attributes that rows have, part by part.
    fn read_attributes(
        &self,
        sql: String,
        parse: fn(&AnyRow) -> Result<Vec<String>, StoreError>,
    ) -> impl Stream<Item = Result<Vec<String>, StoreError>> + Send + use<> {
        let query = move |after: String| {
            sqlx::query(AssertSqlSafe(sql.clone())).bind(after).bind(i64::from(pages::PART))
        };
        pages::stream(&self.store, String::new(), pages::PART, query, |row| row.try_get(0), parse)
    }

    /// Notes for the audit log that bad rows of a table are left out.
    pub fn leave_out(&mut self, table: &'static str, rows: u64) {
        self.tables.entry(table).or_default().bad += rows;
    }

    fn note<R: Resource>(&mut self, written: Written) -> Counts {
        if R::IS_FOLLOWED {
            self.changed.add(written.names);
        }
        self.count(R::TABLE, written.counts)
    }

    fn count(&mut self, table: &'static str, counts: Counts) -> Counts {
        self.tables.entry(table).or_default().stored += counts;
        counts
    }

    /// Makes all rows visible at once. The audit log has an entry for each table that changed.
    ///
    /// A [noted](Self::note_result) result is stored with them.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let ended = self.end().await;
        if ended.is_ok() && !self.erased.is_empty() {
            self.store.empty_log_soon().await;
        }
        // If this fails, the next import begins with it.
        let _ = self.abandon().await;
        ended
    }

    /// Takes back what it wrote. An import that is dropped leaves that to the next one.
    pub async fn abandon(mut self) -> Result<(), StoreError> {
        clean(&self.store, &mut self.lock, self.now).await?;
        self.lock.release().await
    }

    /// Notes what the import will have done, for its record.
    pub fn note_result(&mut self, id: ImportId, result: &Value) {
        self.result = Some((id, json::text(result)));
        self.keep();
    }

    /// Lets the import be undone for a week, and gives its number; none if it changed nothing, or erased customers.
    pub fn keep(&mut self) -> Option<i64> {
        self.is_kept = self.erased.is_empty() && self.tables.values().any(TableCounts::is_change);
        self.is_kept.then_some(self.number)
    }

    async fn end(&mut self) -> Result<(), StoreError> {
        let mut transaction = self.lock.begin(&self.store).await?;
        let record = self.result.as_ref().map(|(id, _)| id.0);
        if let Some((id, result)) = self.result.take() {
            let update = sqlx::query("update imports set result = $2 where id = $1").bind(id.0).bind(result);
            update.execute(&mut *transaction).await?;
        }
        if self.is_kept {
            let sql = "insert into undoable_imports (number, import_id, ended_at) values ($1, $2, $3)";
            let insert = sqlx::query(sql).bind(self.number).bind(record).bind(self.now.millis());
            insert.execute(&mut *transaction).await?;
        }
        for (table, TableCounts { stored, retired, bad }) in
            self.tables.iter().filter(|(_, table)| table.is_change())
        {
            let action = format!("{table}.bulk");
            let mut details = json!({"added": stored.added, "changed": stored.changed, "bad": bad});
            if *retired > 0 {
                details[if *table == CUSTOMERS { "erased" } else { "retired" }] = (*retired).into();
            }
            let entry = Entry::new(&action, table, details);
            entry.write(&mut transaction, self.store.author, self.now).await?;
        }
        let mut forgotten = false;
        for id in &self.erased {
            forgotten |= remove::<Customer>(&mut transaction, &self.store, id).await?.forgotten;
        }
        count_on(&mut transaction).await?;
        if self.tables.get(ARTICLES).is_some_and(TableCounts::is_change) {
            let articles = std::mem::take(&mut self.changed);
            revisions::change_articles(&mut transaction, self.store.dialect, articles).await?;
            Held::Catalogue.check(&self.store, &mut transaction, self.memory).await?;
        }
        if forgotten {
            revisions::increment(&mut transaction, revisions::ERASURES).await?;
        }
        Ok(transaction.commit().await?)
    }
}

impl TableCounts {
    fn is_change(&self) -> bool {
        self.stored.added + self.stored.changed + self.retired > 0
    }
}

impl Store {
    /// Makes the rows of an import of the last week what they were before it, at once for all readers. Rows that were changed or
    /// deleted since stay as they are. Customers that it added stay, because they may have outfits by now. None if the import
    /// cannot be undone.
    ///
    /// `Busy` if another import runs all the time.
    pub async fn undo_import(
        &self,
        undo: Undo,
        now: Timestamp,
        patience: Duration,
    ) -> Result<Option<Undone>, StoreError> {
        let mut lock = Lock::take(self, patience).await?;
        clean(self, &mut lock, now).await?;
        let (column, value) = match undo {
            Undo::Number(number) => ("number", number),
            Undo::Record(ImportId(id)) => ("import_id", id),
        };
        let sql = format!("select number, import_id from undoable_imports where {column} = $1");
        let found = sqlx::query_as(AssertSqlSafe(sql)).bind(value).fetch_optional(self.readers()?).await?;
        let Some((number, record)): Option<(i64, Option<i64>)> = found else {
            lock.release().await?;
            return Ok(None);
        };
        check_names(self, number).await?;
        let [_, customers, _] = &TABLES;
        let stay = "update customers set import = 0 where {rows} and old_features is null".to_owned();
        customers.in_pages(self, &mut lock, number, &[stay]).await?;
        let mut transaction = lock.begin(self).await?;
        let undone = reopen(self, &mut transaction, number, record, now).await?;
        transaction.commit().await?;
        // If this fails, the next import begins with it.
        if clean(self, &mut lock, now).await.is_ok() {
            lock.release().await?;
        }
        Ok(Some(undone))
    }

    /// Whether an import can no longer be undone, and what its rows were is to be removed.
    pub async fn has_old_imports(&self, now: Timestamp) -> Result<bool, StoreError> {
        let select = "select number from undoable_imports where ended_at < $1 limit 1";
        let old: Option<i64> = sqlx::query_scalar(select)
            .bind((now - UNDOABLE).millis())
            .fetch_optional(self.readers()?)
            .await?;
        Ok(old.is_some())
    }

    /// Cleans up after an import that was killed, and those that are a week old.
    pub async fn clean_up_imports(&self, now: Timestamp) -> Result<(), StoreError> {
        match Lock::take(self, Duration::ZERO).await {
            Ok(mut lock) => {
                clean(self, &mut lock, now).await?;
                let mut transaction = lock.begin(self).await?;
                imports::interrupt_running(&mut transaction).await?;
                transaction.commit().await?;
                lock.release().await
            }
            // It runs, in another process.
            Err(StoreError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// An import's hold, so that one runs at a time, until its process ends at the latest.
enum Lock {
    File(#[expect(dead_code, reason = "closing it unlocks it")] File),
    /// It also writes through this connection: when that breaks, another import may begin. None after it is released.
    Connection(Option<PoolConnection<Any>>),
}

impl Lock {
    /// # Errors
    /// If another import runs all the time (`Busy`), or the database fails.
    async fn take(store: &Store, patience: Duration) -> Result<Self, StoreError> {
        match store.dialect {
            Dialect::Sqlite => lock_file(store, patience).await.map(Self::File),
            Dialect::Postgres => {
                let mut held = Self::Connection(Some(store.writer.acquire().await?));
                let connection = held.connection();
                // 0 would be no limit.
                let set = format!("set lock_timeout = '{}ms'", patience.as_millis().max(1));
                sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut *connection).await?;
                let lock = sqlx::query("select pg_advisory_lock($1)").bind(LOCK);
                lock.execute(&mut *connection).await.map_err(|error| match error.into() {
                    StoreError::Busy { .. } => behind_another(),
                    error => error,
                })?;
                sqlx::raw_sql("set lock_timeout = '10s'").execute(connection).await?;
                Ok(held)
            }
        }
    }

    fn connection(&mut self) -> &mut AnyConnection {
        let Self::Connection(Some(connection)) = self else {
            unreachable!("Postgres has a connection until it is released")
        };
        connection
    }

    async fn release(mut self) -> Result<(), StoreError> {
        if let Self::Connection(held) = &mut self
            && let Some(connection) = held
        {
            sqlx::query("select pg_advisory_unlock($1)").bind(LOCK).execute(&mut **connection).await?;
            *held = None;
        }
        Ok(())
    }

    async fn begin(&mut self, store: &Store) -> Result<Transaction<'_, Any>, StoreError> {
        match self {
            Self::File(_) => {
                // One attempt waits less long than imports should.
                let deadline = Instant::now() + PATIENCE;
                loop {
                    match timeout_at(deadline, store.write()).await {
                        Ok(Err(StoreError::Busy { .. })) => {}
                        Ok(done) => return done,
                        Err(_) => return Err(behind_another()),
                    }
                }
            }
            Self::Connection(_) => {
                // A stricter level, which may be the server's default, would show the database from before the wait.
                let mut transaction =
                    self.connection().begin_with("begin isolation level read committed").await?;
                let turn = sqlx::query("select pg_advisory_xact_lock($1)").bind(WRITING);
                turn.execute(&mut *transaction).await?;
                Ok(transaction)
            }
        }
    }
}

/// The lock is the connection's, which may only go back to the pool without it.
impl Drop for Lock {
    fn drop(&mut self) {
        if let Self::Connection(Some(connection)) = self {
            connection.close_on_drop();
        }
    }
}

async fn lock_file(store: &Store, patience: Duration) -> Result<File, StoreError> {
    let unfit = |error: &io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Unreachable { reason: format!("{}: {error}", store.import_lock.display()) },
    };
    let opened = File::options().create(true).append(true).open(&store.import_lock);
    let file = opened.map_err(|error| unfit(&error))?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(unfit(&error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(behind_another()),
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(20)).await,
        }
    }
}

fn behind_another() -> StoreError {
    StoreError::Busy {
        reason: format!("another import or write has been running for {} seconds", PATIENCE.as_secs()),
    }
}

/// Refuses to undo an import after which ids that its articles and variants had went to others.
async fn check_names(store: &Store, number: i64) -> Result<(), StoreError> {
    let names = "(select variants.id, article_id, import, is_old from variants join articles on articles.id = article_id
        union all select id, id, import, case when type = '' then 1 else 0 end from articles)";
    let sql = format!(
        "select others.id from {names} as mine join {names} as others on others.id = mine.id
         where others.article_id <> mine.article_id and mine.import = {number} and others.import <> {number} and others.is_old = 0
         order by others.id limit 1"
    );
    let taken: Option<String> =
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_optional(store.readers()?).await?;
    taken.map_or(Ok(()), |id| {
        let reason = format!("{id:?} is the id of another article or variant by now; delete that one first");
        Err(StoreError::Unfit { what: "an article as it was before the import", reason })
    })
}

/// Makes an import that has ended the running one again, so that readers see the rows from before it.
async fn reopen(
    store: &Store,
    connection: &mut AnyConnection,
    number: i64,
    record: Option<i64>,
    now: Timestamp,
) -> Result<Undone, StoreError> {
    let memory = Held::Catalogue.read(connection).await?;
    for sql in [
        "update revisions set value = (select value - 1 from revisions where name = 'imports') where name = 'latest_import'".into(),
        format!("update revisions set value = {number} where name = 'imports'"),
        format!("delete from undoable_imports where number = {number}"),
        format!("update imports set state = 'undone' where id = {}", record.unwrap_or_default()),
    ] {
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *connection).await?;
    }
    let mut undone = Undone { restored: 0, removed: 0 };
    for table in &TABLES {
        let (name, old) = (table.name, table.old());
        let sql = format!("select count({old}), count(*) from {name} where import = {number}");
        let (restored, all): (i64, i64) =
            sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut *connection).await?;
        undone.restored += restored.unsigned_abs();
        undone.removed += (all - restored).unsigned_abs();
    }
    let details = json!({"restored": undone.restored, "removed": undone.removed});
    let subject = record.unwrap_or(number).to_string();
    Entry::new("import.undo", &subject, details).write(connection, store.author, now).await?;
    let mut changed = Changed::default();
    let ids = format!("select id from articles where import = {number}");
    changed.add(sqlx::query_scalar::<_, String>(AssertSqlSafe(ids)).fetch_all(&mut *connection).await?);
    revisions::change_articles(connection, store.dialect, changed).await?;
    memory::check_visible(store, connection, memory).await?;
    Ok(undone)
}

/// Takes back what an import wrote that did not end or is undone, and removes what ended ones left that cannot be undone. The
/// caller holds the lock.
async fn clean(store: &Store, lock: &mut Lock, now: Timestamp) -> Result<(), StoreError> {
    // As a writer: the last transaction of an import that was dropped may still be ending.
    let mut transaction = lock.begin(store).await?;
    let number: i64 =
        sqlx::query_scalar("select number from running_import").fetch_one(&mut *transaction).await?;
    let old = sqlx::query("delete from undoable_imports where ended_at < $1").bind((now - UNDOABLE).millis());
    old.execute(&mut *transaction).await?;
    transaction.commit().await?;
    if number % 2 == 1 {
        for table in &TABLES {
            table.take_back(store, lock, number).await?;
        }
        let mut transaction = lock.begin(store).await?;
        count_on(&mut transaction).await?;
        transaction.commit().await?;
    }
    let left = TABLES
        .each_ref()
        .map(|table| format!("select cast(1 as bigint) from {} where {}", table.name, table.is_over()));
    let left = format!("{} limit 1", left.join(" union all "));
    let left: Option<i64> = sqlx::query_scalar(AssertSqlSafe(left)).fetch_optional(store.readers()?).await?;
    if left.is_some() {
        for table in &TABLES {
            table.clear(store, lock).await?;
        }
    }
    Ok(())
}

/// Begins the next import, or ends the running one, and gives its number.
async fn count_on(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    sqlx::query("delete from import_skips").execute(&mut *connection).await?;
    let next = "update revisions set value = (
            select max(value) + 1 from revisions where name in ('imports', 'latest_import')
        ) where name = 'imports' returning value";
    Ok(sqlx::query_scalar(next).fetch_one(connection).await?)
}

impl Table {
    fn old(&self) -> String {
        format!("old_{}", self.columns[0])
    }

    /// The rows that still have what they were before an import that cannot be undone any more.
    fn is_over(&self) -> String {
        format!("{} is not null and import not in (select number from undoable_imports)", self.old())
    }

    async fn take_back(&self, store: &Store, lock: &mut Lock, number: i64) -> Result<(), StoreError> {
        let (name, old) = (self.name, self.old());
        let back: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{column} = old_{column}, old_{column} = null"))
            .collect();
        let delete = format!("delete from {name} where {{rows}} and {old} is null");
        let back = back.join(", ");
        let update = format!("update {name} set {back}, import = 0, revision = revision - 1 where {{rows}}");
        self.in_pages(store, lock, number, &[delete, update]).await
    }

    /// Executes statements for the rows of an import, `{rows}`, part by part.
    async fn in_pages(
        &self,
        store: &Store,
        lock: &mut Lock,
        number: i64,
        statements: &[String],
    ) -> Result<(), StoreError> {
        let (name, (key, kind)) = (self.name, self.key);
        let mut after = self.first.to_owned();
        loop {
            // In the order of the keys: looking for the first ones again and again would read the table as often.
            let page = format!(
                "select cast(max({key}) as text) from (
                    select {key} from {name} where {key} > cast($1 as {kind}) order by {key} limit {STEP}) as page"
            );
            let page = sqlx::query_scalar(AssertSqlSafe(page)).bind(&after);
            let Some(last): Option<String> = page.fetch_one(store.readers()?).await? else { return Ok(()) };
            let rows =
                format!("import = {number} and {key} > cast($1 as {kind}) and {key} <= cast($2 as {kind})");
            let mut transaction = lock.begin(store).await?;
            let began = Instant::now();
            for sql in statements {
                let sql = AssertSqlSafe(sql.replace("{rows}", &rows));
                let change: Query<'_, Any, AnyArguments> = sqlx::query(sql);
                change.bind(&after).bind(&last).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            sleep(began.elapsed()).await;
            after = last;
        }
    }

    /// Forgets what rows were before an import that cannot be undone any more, and deletes retired ones.
    async fn clear(&self, store: &Store, lock: &mut Lock) -> Result<(), StoreError> {
        let (name, (key, _)) = (self.name, self.key);
        let nulls: Vec<String> = self.columns.iter().map(|column| format!("old_{column} = null")).collect();
        let rows = format!("select {key} from {name} where {}", self.is_over());
        let mut steps =
            vec![format!("update {name} set {} where {key} in ({rows} limit {STEP})", nulls.join(", "))];
        if name == ARTICLES {
            steps.insert(0, format!("delete from {name} where {key} in ({rows} and type = '' limit {STEP})"));
        }
        for step in steps {
            loop {
                let mut transaction = lock.begin(store).await?;
                let began = Instant::now();
                let done = sqlx::query(AssertSqlSafe(step.clone())).execute(&mut *transaction).await?;
                transaction.commit().await?;
                if done.rows_affected() < STEP {
                    break;
                }
                sleep(began.elapsed()).await;
            }
        }
        Ok(())
    }
}

/// Writes values that nobody else wrote since the import began; the others count as unchanged. Also gives those that do not fit.
async fn write<R: Resource>(
    connection: &mut AnyConnection,
    store: &Store,
    values: &[R],
    now: Timestamp,
    number: i64,
) -> Result<(Written, Vec<(usize, String)>), StoreError> {
    let ids: Vec<&str> = values.iter().map(|value| value.id().borrow()).collect();
    let overtaken = overtaken(connection, store.dialect, R::TABLE, &ids).await?;
    forget_retired::<R>(connection, store.dialect, &ids).await?;
    let mut refused = Vec::new();
    let rows = values.iter().map(|value| ResourceRow::new(value, store.row_bytes, now.millis(), number));
    let rows = without_unfit(rows, &mut refused).filter(|row| match row {
        Ok(row) => overtaken.is_empty() || !overtaken.contains(row.key().borrow()),
        Err(_) => true,
    });
    let mut written = upsert::write_all(connection, store.dialect, rows).await?;
    written.counts.unchanged += overtaken.len() as u64;
    Ok((written, refused))
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

/// A row's names of the articles' attributes, in the JSON of a column.
fn attribute_names(row: &AnyRow, column: usize) -> Result<Vec<String>, StoreError> {
    let said: BTreeMap<String, Option<IgnoredAny>> = serde_json::from_str(row.try_get(column)?)
        .map_err(|error| StoreError::Other(format!("attributes are no JSON object: {error}")))?;
    Ok(said.into_iter().filter_map(|(name, value)| value.map(|_| name)).collect())
}

/// The attributes that an article has no more.
fn find_lost(before: Vec<String>, after: &[String]) -> Vec<String> {
    /// A feed has the one only during a sale, and the other only of what can be ordered.
    const PASSING: [&str; 2] = ["regular_price", "availability"];
    /// One says what the other does. A feed counts only where sizes differ.
    const STOCK: [&str; 2] = ["stock", "in_stock"];
    let says_stock = after.iter().any(|name| STOCK.contains(&name.as_str()));
    let is_lost = |name: &String| {
        let is_said = STOCK.contains(&name.as_str()) && says_stock;
        !(after.contains(name) || is_said || PASSING.contains(&name.as_str()))
    };
    before.into_iter().filter(is_lost).collect()
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("number", &self.number).finish_non_exhaustive()
    }
}
