//! The common part of articles and customers: rows that are read, put, changed and deleted by their ids, each with a
//! version.

use std::{borrow::Borrow, collections::HashMap, hash::Hash, marker::PhantomData, time::Duration};

use atelier_core::domain::{CustomerId, PatchError, Timestamp};
use futures_util::Stream;
use serde_json::json;
use sqlx::{
    Any, AnyConnection, Arguments, AssertSqlSafe, FromRow, Row, Transaction, any::AnyArguments, any::AnyRow,
};
use tokio::time::timeout;

use super::{
    ChangeError, Entry, Expected, Put, Store, StoreError, Stored, Version,
    audit::{self, ERASED},
    connect::Dialect,
    memory::Held,
    overtaking,
    pages::{self, PART},
    revisions::{self, Changed},
    search, upsert, values,
};

/// How long an erasure waits for the log to be emptied; [`Store::complete_erasures`] tries again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many articles an import retired that it can still give back.
const RETIRED: &str = "(select count(*) from articles where type = '')";

/// The key of the advisory lock that changes with aliases hold on Postgres; those of imports are next to it.
const NAMES: i64 = 0x6174_656e;

/// A domain type whose values are the rows of a table.
pub trait Resource: Clone + Send + Sync + 'static {
    type Id: Borrow<str> + Clone + Eq + Hash + Send + Sync;
    type Patch: Send + Sync;
    /// The texts that a value is read from, its id first.
    type Columns: for<'r> FromRow<'r, AnyRow> + Send + Unpin;

    const TABLE: &'static str;
    /// The view of it that all readers use.
    const VISIBLE: &'static str;
    const COLUMNS: &'static str;
    /// `insert into … (…) values`, for the id, the texts of [`Resource::texts`], the memory, times, and the number of an import.
    const INSERT: &'static str;
    /// How many values that takes.
    const VALUES: usize;
    const ON_CONFLICT: &'static str;
    /// The actions of entries in the audit log.
    const PUT: &'static str;
    const DELETE: &'static str;
    /// Whether copies in memory follow the table, so each change is counted and names its rows.
    const IS_FOLLOWED: bool;

    fn id(&self) -> &Self::Id;
    fn parse(columns: Self::Columns) -> Result<Self, StoreError>;
    /// # Errors
    /// If the value has too many bytes, or the database cannot hold it (`Unfit`).
    fn texts(&self, row_bytes: u32) -> Result<Vec<String>, StoreError>;
    /// The bytes that it takes in each replica's memory, if replicas hold all values.
    fn memory(&self) -> Option<i64> {
        None
    }
    /// The id of the value that a patch changes.
    fn target(patch: &Self::Patch) -> &Self::Id;
    fn apply(patch: &Self::Patch, stored: Option<Self>) -> Result<Self, PatchError>;
    /// The customer whose data a row is.
    fn owner(id: &Self::Id) -> Option<&CustomerId>;
    /// Removes what names the customer in rows that stay.
    fn forget(
        _connection: &mut AnyConnection,
        _customer: &CustomerId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }
    /// The ids of the values that some of these ids are aliases of: an article's, by its variant's.
    fn aliases(
        _store: &Store,
        _connection: &mut AnyConnection,
        _ids: &[&Self::Id],
    ) -> impl Future<Output = Result<HashMap<Self::Id, Self::Id>, StoreError>> + Send {
        async { Ok(HashMap::new()) }
    }
    /// Whether a value, or a change of one, may take an id that another transaction takes as well.
    fn takes_aliases(_change: Change<'_, Self>) -> bool {
        false
    }
    /// Checks that no other value has its ids.
    fn check_aliases(
        &self,
        _store: &Store,
        _connection: &mut AnyConnection,
    ) -> impl Future<Output = Result<(), ChangeError>> + Send {
        async { Ok(()) }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Change<'a, R: Resource> {
    Value(&'a R),
    Patch(&'a R::Patch),
}

#[derive(Debug)]
pub struct Resources<'a, R> {
    pub(crate) store: &'a Store,
    kind: PhantomData<fn() -> R>,
}

impl<'a, R: Resource> Resources<'a, R> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, kind: PhantomData }
    }

    pub async fn get(self, id: &R::Id) -> Result<Option<R>, StoreError> {
        self.get_unparsed(id).await?.map(R::parse).transpose()
    }

    pub async fn get_unparsed(self, id: &R::Id) -> Result<Option<R::Columns>, StoreError> {
        let sql = format!("select {} from {} where id = $1", R::COLUMNS, R::VISIBLE);
        let row = sqlx::query_as(AssertSqlSafe(sql)).bind(id.borrow());
        Ok(row.fetch_optional(self.store.readers()?).await?)
    }

    /// The values with these ids, in the order of the ids, without duplicates. Unknown ids are skipped.
    pub async fn get_many(self, ids: &[R::Id]) -> Result<Vec<R>, StoreError> {
        let select = format!("select {} from {} where id in", R::COLUMNS, R::VISIBLE);
        let texts: Vec<&str> = ids.iter().map(Borrow::borrow).collect();
        let mut found = by_id::<R>(pages::by_ids(self.store, &select, &texts).await?)?;
        Ok(ids.iter().filter_map(|id| found.remove::<str>(id.borrow())).collect())
    }

    /// The value with its version, by its id or an alias.
    pub async fn get_stored(self, id: &R::Id) -> Result<Option<Stored<R>>, StoreError> {
        let mut connection = self.store.readers()?.acquire().await?;
        let aliases = R::aliases(self.store, &mut connection, &[id]).await?;
        let row = sqlx::query_with(
            AssertSqlSafe(select_stored::<R>()),
            values![aliases.get::<R::Id>(id).unwrap_or(id).borrow()],
        )
        .fetch_optional(&mut *connection)
        .await?;
        row.as_ref().map(parse_stored).transpose()
    }

    /// The values after the id `after`, in the byte order of their ids, read in parts of up to `part` rows as needed.
    pub fn after(
        self,
        after: Option<&R::Id>,
        part: u32,
    ) -> impl Stream<Item = Result<R, StoreError>> + Send + use<R> {
        self.with_condition("", Vec::new(), after, part)
    }

    /// Every value in the byte order of their ids.
    pub fn all(self) -> impl Stream<Item = Result<R, StoreError>> + Send + use<R> {
        self.after(None, PART)
    }

    /// The values after the id `after` whose id or texts contain a text of each group, in the order of their ids. The texts
    /// are folded.
    pub fn with_words(
        self,
        groups: &[Vec<String>],
        after: Option<&R::Id>,
    ) -> impl Stream<Item = Result<R, StoreError>> + Send + use<R> {
        let patterns = groups.iter().flatten().map(|text| search::part_pattern(text)).collect();
        self.with_condition(&search::any_of(3, groups.iter().map(Vec::len)), patterns, after, PART)
    }

    /// The condition takes the texts from `$3` on.
    pub(crate) fn with_condition(
        self,
        condition: &str,
        texts: Vec<String>,
        after: Option<&R::Id>,
        part: u32,
    ) -> impl Stream<Item = Result<R, StoreError>> + Send + use<R> {
        let (columns, table) = (R::COLUMNS, R::VISIBLE);
        let sql = format!("select {columns} from {table} where id > $1{condition} order by id limit $2");
        let query = move |after: String| {
            let query = sqlx::query_with(AssertSqlSafe(sql.clone()), values![after, i64::from(part)]);
            texts.iter().cloned().fold(query, sqlx::query::Query::bind)
        };
        // Every id comes after the empty string.
        let first = after.map_or("", Borrow::borrow).to_owned();
        let id = |row: &AnyRow| row.try_get("id");
        pages::stream(self.store, first, part, query, id, |row| R::parse(R::Columns::from_row(row)?))
    }

    /// While no import runs, indices count the rows in a fraction of the time.
    pub async fn count(self) -> Result<u64, StoreError> {
        let (table, visible) = (R::TABLE, R::VISIBLE);
        let retired = if R::IS_FOLLOWED { RETIRED } else { "0" };
        let sql = format!(
            "select case when (select number from running_import) % 2 = 0
             then (select count(*) from {table}) - {retired} else (select count(*) from {visible}) end"
        );
        self.store.count(AssertSqlSafe(sql)).await
    }

    /// Adds the value, or replaces the one with its id if that is as expected. Also gives its version.
    pub async fn put(
        self,
        value: &R,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<(Put, Version), ChangeError> {
        let row = ResourceRow::new(value, self.store.row_bytes, now.millis(), 0)?;
        let mut transaction = self.begin(Some(Change::Value(value))).await?;
        overtaking::overtake(&mut transaction, self.store.dialect, R::TABLE, value.id().borrow()).await?;
        let mut found = false;
        if !expected.is_anything() {
            let current = self.lock(&mut transaction, value.id()).await?;
            expected.check(current.as_ref().map(|stored| &stored.version))?;
            found = current.is_some();
        }
        value.check_aliases(self.store, &mut transaction).await?;
        let written = self.write(&mut transaction, row, now).await?;
        expected.check_put(written.0, found)?;
        transaction.commit().await?;
        Ok(written)
    }

    /// Changes the value with the patch's id or alias, if it is as expected. No other change comes between reading and
    /// writing.
    pub async fn patch(
        self,
        patch: &R::Patch,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<Stored<R>, ChangeError> {
        let mut transaction = self.begin(Some(Change::Patch(patch))).await?;
        let aliases = R::aliases(self.store, &mut transaction, &[R::target(patch)]).await?;
        let id = aliases.get::<R::Id>(R::target(patch)).unwrap_or_else(|| R::target(patch));
        overtaking::overtake(&mut transaction, self.store.dialect, R::TABLE, id.borrow()).await?;
        let stored = self.lock(&mut transaction, id).await?.ok_or(ChangeError::Missing)?;
        expected.check(Some(&stored.version))?;
        let value = R::apply(patch, Some(stored.value))?;
        value.check_aliases(self.store, &mut transaction).await?;
        let row = ResourceRow::new(&value, self.store.row_bytes, now.millis(), 0)?;
        let (_, version) = self.write(&mut transaction, row, now).await?;
        transaction.commit().await?;
        Ok(Stored { value, version })
    }

    /// Deletes the value, if it is as expected. False if there is none.
    ///
    /// Outfits keep an article that is deleted. A customer is erased: outfits and notes are deleted, feedback loses the
    /// customer, and the audit log's entries about them are blanked, also if there is no such customer. On `SQLite` it then
    /// empties the log, unless another program reads the database; the rest of the files follows in
    /// [`Store::complete_erasures`].
    pub async fn delete(self, id: &R::Id, expected: &Expected, now: Timestamp) -> Result<bool, ChangeError> {
        let mut transaction = self.begin(None).await?;
        overtaking::overtake(&mut transaction, self.store.dialect, R::TABLE, id.borrow()).await?;
        if !expected.is_anything()
            && let Some(stored) = self.lock(&mut transaction, id).await?
        {
            expected.check(Some(&stored.version))?;
        }
        let Removed { found, forgotten } = remove::<R>(&mut transaction, self.store, id).await?;
        let is_customer = R::owner(id).is_some();
        if found {
            // The log must not say which customer was erased.
            let subject = if is_customer { ERASED } else { id.borrow() };
            let entry = Entry::new(R::DELETE, subject, json!({}));
            entry.write(&mut transaction, self.store.author, now).await?;
            self.count_change(&mut transaction, id).await?;
        }
        if forgotten {
            revisions::increment(&mut transaction, revisions::ERASURES).await?;
        }
        transaction.commit().await?;
        if found && is_customer {
            self.store.empty_log_soon().await;
        }
        Ok(found)
    }

    /// Begins a transaction. No other one takes aliases while this one does. That is the first lock that any of them takes, so
    /// none waits for another in a circle.
    async fn begin(self, change: Option<Change<'_, R>>) -> Result<Transaction<'static, Any>, StoreError> {
        let mut transaction = self.store.write().await?;
        if self.store.dialect == Dialect::Postgres && change.is_some_and(R::takes_aliases) {
            sqlx::query("select pg_advisory_xact_lock($1)").bind(NAMES).execute(&mut *transaction).await?;
        }
        Ok(transaction)
    }

    /// The value, which no other transaction changes before this one ends.
    async fn lock(self, connection: &mut AnyConnection, id: &R::Id) -> Result<Option<Stored<R>>, StoreError> {
        let sql = format!("{}{}", select_stored::<R>(), self.store.dialect.for_update());
        let row = sqlx::query(AssertSqlSafe(sql)).bind(id.borrow()).fetch_optional(&mut *connection).await?;
        row.as_ref().map(parse_stored).transpose()
    }

    /// Writes the value at the end of a transaction.
    async fn write(
        self,
        connection: &mut AnyConnection,
        row: ResourceRow<'_, R>,
        now: Timestamp,
    ) -> Result<(Put, Version), StoreError> {
        let id = row.value.id();
        let before = if R::IS_FOLLOWED { Held::Catalogue.read(connection).await? } else { i64::MAX };
        forget_retired::<R>(connection, self.store.dialect, &[id.borrow()]).await?;
        let put = upsert::write_one(&mut *connection, self.store.dialect, row).await?;
        let written = sqlx::query_with(AssertSqlSafe(select_stored::<R>()), values![id.borrow()])
            .fetch_one(&mut *connection)
            .await?;
        if put != Put::Unchanged {
            let details = json!({"new": put == Put::Added});
            let entry = Entry { customer: R::owner(id), ..Entry::new(R::PUT, id.borrow(), details) };
            entry.write(&mut *connection, self.store.author, now).await?;
            self.count_change(&mut *connection, id).await?;
            Held::Catalogue.check(self.store, connection, before).await?;
        }
        Ok((put, version(&written)?))
    }

    async fn count_change(self, connection: &mut AnyConnection, id: &R::Id) -> Result<(), StoreError> {
        if !R::IS_FOLLOWED {
            return Ok(());
        }
        let changed = Changed::Articles([id.borrow().to_owned()].into());
        revisions::change_articles(connection, self.store.dialect, changed).await
    }
}

pub(crate) struct Removed {
    /// Whether readers saw it.
    pub(crate) found: bool,
    /// Whether something about a customer is gone.
    pub(crate) forgotten: bool,
}

/// Deletes a value with all that is known of a customer, in the transaction of the caller, who logs it.
pub(crate) async fn remove<R: Resource>(
    connection: &mut AnyConnection,
    store: &Store,
    id: &R::Id,
) -> Result<Removed, StoreError> {
    let sql = format!("select id from {} where id = $1{}", R::VISIBLE, store.dialect.for_update());
    let visible = sqlx::query(AssertSqlSafe(sql)).bind(id.borrow()).fetch_optional(&mut *connection);
    let found = visible.await?.is_some();
    if let Some(customer) = R::owner(id) {
        R::forget(connection, customer).await?;
    }
    // A running import's row, too. The foreign keys of outfits, notes and feedback events do the rest.
    let sql = format!("delete from {} where id = $1", R::TABLE);
    let deleted = sqlx::query(AssertSqlSafe(sql)).bind(id.borrow()).execute(&mut *connection).await?;
    let customer = R::owner(id);
    let mut forgotten = deleted.rows_affected() > 0 && customer.is_some();
    if let Some(customer) = customer {
        forgotten |= audit::erase_customer(connection, customer).await? > 0;
    }
    Ok(Removed { found, forgotten })
}

impl Store {
    /// Empties `SQLite`'s log after an erasure. A failure is tried again in the background.
    pub(crate) async fn empty_log_soon(&self) {
        if self.dialect == Dialect::Sqlite {
            let _ = timeout(PATIENCE, self.empty_log()).await;
        }
    }
}

/// A value as it is written.
pub(crate) struct ResourceRow<'a, R> {
    value: &'a R,
    texts: Vec<String>,
    millis: i64,
    /// The number of the import that writes it, or 0.
    import: i64,
}

impl<'a, R: Resource> ResourceRow<'a, R> {
    pub(crate) fn new(value: &'a R, row_bytes: u32, millis: i64, import: i64) -> Result<Self, StoreError> {
        Ok(Self { value, texts: value.texts(row_bytes)?, millis, import })
    }
}

impl<R: Resource> upsert::Row for ResourceRow<'_, R> {
    const INSERT: &'static str = R::INSERT;
    const COLUMNS: usize = R::VALUES;
    const ON_CONFLICT: &'static str = R::ON_CONFLICT;
    const NAME: &'static str = if R::IS_FOLLOWED { "id" } else { "''" };
    type Key = R::Id;

    fn key(&self) -> R::Id {
        self.value.id().clone()
    }

    fn bind(self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        values.add(self.value.id().borrow())?;
        let memory = self.value.memory();
        let times = R::VALUES - 2 - self.texts.len() - usize::from(memory.is_some());
        for text in self.texts {
            values.add(text)?;
        }
        memory.map_or(Ok(()), |memory| values.add(memory))?;
        (0..times).try_for_each(|_| values.add(self.millis))?;
        values.add(self.import)
    }
}

/// Deletes articles that an import retired, before others get their ids.
pub(crate) async fn forget_retired<R: Resource>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    ids: &[&str],
) -> Result<(), StoreError> {
    let ids = if R::IS_FOLLOWED { ids } else { &[] };
    for ids in ids.chunks(upsert::ROWS) {
        let sql = format!(
            "delete from articles where type = '' and import <> (select number from running_import) and id in {}",
            upsert::placeholders(dialect, 1, ids.len())
        );
        let delete = sqlx::query(AssertSqlSafe(sql)).persistent(ids.len() == 1);
        ids.iter().fold(delete, |delete, id| delete.bind(*id)).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(crate) fn by_id<R: Resource>(rows: Vec<R::Columns>) -> Result<HashMap<R::Id, R>, StoreError> {
    rows.into_iter().map(|row| R::parse(row).map(|value| (value.id().clone(), value))).collect()
}

fn select_stored<R: Resource>() -> String {
    format!("select {}, revision, created_at from {} where id = $1", R::COLUMNS, R::VISIBLE)
}

fn parse_stored<R: Resource>(row: &AnyRow) -> Result<Stored<R>, StoreError> {
    Ok(Stored { version: version(row)?, value: R::parse(R::Columns::from_row(row)?)? })
}

/// The version of a row of [`select_stored`].
fn version(row: &AnyRow) -> Result<Version, StoreError> {
    let texts = 1..row.len() - 2;
    let contents: Vec<&str> = texts.map(|column| row.try_get(column)).collect::<Result<_, _>>()?;
    Ok(Version::new(row.try_get("created_at")?, row.try_get("revision")?, &contents))
}

impl<R> Clone for Resources<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Resources<'_, R> {}
