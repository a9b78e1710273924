//! The database: opening and migrating it, transactions, and what all statements share. Each feature's statements are in its `sql`,
//! which adds methods to [`Store`]: `store.articles().get(&id)`. A `SQLite` file and a Postgres server behave the same, which
//! the folders `sql` of `tests/it` check on both. Errors are [`StoreError`]s.
//!
//! Statements must not know HTTP, models, passwords or tokens in plain text, or the time: `now` is an argument. Nothing logs a
//! statement or a bound value.
//!
//! Every statement is written once, in SQL that both databases understand, through sqlx's `Any` driver: `$1` placeholders,
//! JSON as text, times as whole milliseconds. `sqlite.rs` and `postgres.rs` (opening), `upsert.rs` (placeholders) and
//! `migrations/` have the differences.

mod address;
mod audit;
mod backup;
pub(crate) mod connect;
mod documents;
mod error;
mod growth;
pub(crate) mod json;
pub(crate) mod memory;
mod migrate;
mod open_error;
pub(crate) mod overtaking;
pub(crate) mod pages;
mod postgres;
mod probe;
pub(crate) mod record;
pub(crate) mod resource;
pub(crate) mod revisions;
pub(crate) mod search;
mod settings;
mod sqlite;
pub(crate) mod text;
mod token;
pub(crate) mod upsert;
mod version;

use std::{fmt, path::PathBuf, sync::Arc};

use atelier_core::domain::Timestamp;
use sqlx::{Any, AnyPool, SqlSafeStr, Transaction, any::AnyArguments, query::Query};

pub(crate) use self::settings::delete_setting;
pub use self::{
    audit::{Actor, Audit, AuditEntry, AuditFilter, Author, Entry, KeyId, PersonId, SIGN_IN_FAILED},
    backup::{BackupError, back_up, restore},
    documents::{Consequence, DocumentName, Documents, Named, NewDocument},
    error::{Conflict, StoreError},
    memory::{CatalogueMemory, Copies},
    open_error::OpenError,
    resource::{Change, Resource, Resources},
    revisions::Revisions,
    settings::Settings,
    text::{Name, NameError, Note, NoteError},
    token::TokenHash,
    upsert::{Counts, Put},
    version::{ChangeError, Expected, Stored, Version, Versions},
};
use self::{
    connect::{Dialect, IfMissing},
    probe::Probe,
    record::Readable,
};
use crate::config::Limits;

/// An open, migrated database. Cheap to clone: clones share the connections.
#[derive(Clone)]
pub struct Store {
    pub(crate) readers: AnyPool,
    /// On `SQLite` one connection, because there is only one writer: waiting for it here is first come, first served,
    /// and waiting for the file's lock is not. On Postgres the readers' pool.
    pub(crate) writer: AnyPool,
    /// On `SQLite` a connection that empties the log and rewrites the file, and soon gives up when others are in the way. On
    /// Postgres the readers' pool.
    pub(crate) cleaner: AnyPool,
    pub(crate) probe: Arc<Probe>,
    pub(crate) dialect: Dialect,
    pub(crate) import_lock: PathBuf,
    pub(crate) author: Author,
    /// The most bytes of an article's type and attributes without the embedding, or of features, as JSON.
    pub(crate) row_bytes: u32,
    pub(crate) catalogue_bytes: u64,
    pub(crate) shown: String,
}

impl Store {
    /// Opens the database at `url` (`sqlite:PATH` or `postgres://…`) and migrates it. Creates a missing `SQLite` file and
    /// its folder.
    ///
    /// A current database opens without waiting for writers, and may be read-only.
    ///
    /// # Errors
    /// If the database cannot be reached within ten seconds, belongs to a newer Atelier, or was migrated by other
    /// migrations.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        connect::open(url, IfMissing::Create).await
    }

    /// Like [`Store::open`], but does not create a `SQLite` file: a mistyped path should be an error, not an empty
    /// database.
    pub async fn open_existing(url: &str) -> Result<Self, OpenError> {
        connect::open(url, IfMissing::Refuse).await
    }

    /// The same database, for changes by this author. Without it, changes are the service's own.
    pub fn by(&self, author: Author) -> Self {
        Self { author, ..self.clone() }
    }

    /// The same database, for rows and a catalogue within these limits.
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { row_bytes: limits.row_bytes, catalogue_bytes: limits.catalogue_bytes(), ..self }
    }

    pub fn author(&self) -> Author {
        self.author
    }

    /// The database system, for people.
    pub fn kind(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "SQLite",
            Dialect::Postgres => "Postgres",
        }
    }

    /// Checks that the database answers within three seconds, and that its file is still there and can be read.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.probe.check().await
    }

    /// Whether the database counts as gone: it did not answer, and has not answered a [`ping`](Self::ping) since. Whatever needs
    /// it fails at once.
    pub fn is_gone(&self) -> bool {
        self.probe.pass().is_err()
    }

    /// Waits for a read, but not long if the database may be gone.
    pub async fn soon<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.probe.soon(read).await
    }

    /// Waits for the statements in flight and closes all connections.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
        self.cleaner.close().await;
        self.probe.pool.close().await;
    }

    pub fn resources<R: Resource>(&self) -> Resources<'_, R> {
        Resources::new(self)
    }

    pub(crate) fn readers(&self) -> Result<&AnyPool, StoreError> {
        self.probe.pass()?;
        Ok(&self.readers)
    }

    pub(crate) async fn find<Row: Readable>(
        &self,
        sql: &'static str,
        values: AnyArguments,
    ) -> Result<Option<Row>, StoreError> {
        Ok(sqlx::query_as_with(sql, values).fetch_optional(self.readers()?).await?)
    }

    pub(crate) async fn find_all<Row: Readable>(
        &self,
        sql: &'static str,
        values: AnyArguments,
    ) -> Result<Vec<Row>, StoreError> {
        Ok(sqlx::query_as_with(sql, values).fetch_all(self.readers()?).await?)
    }

    pub(crate) async fn count(&self, sql: impl SqlSafeStr) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(self.readers()?).await?;
        Ok(count.unsigned_abs())
    }

    /// Runs one statement as a write without an audit entry, and gives the number of changed rows.
    pub(crate) async fn execute(&self, statement: Query<'_, Any, AnyArguments>) -> Result<u64, StoreError> {
        let mut transaction = self.write().await?;
        let done = statement.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn commit(
        &self,
        mut transaction: Transaction<'_, Any>,
        entry: &Entry<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        entry.write(&mut transaction, self.author, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Begins a write. Dropping it without `commit` rolls it back.
    pub(crate) async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.probe.pass()?;
        let begun = match self.dialect {
            Dialect::Sqlite => sqlite::begin(&self.writer).await,
            Dialect::Postgres => self.writer.begin().await,
        };
        begun.map_err(|error| match (self.dialect, error) {
            (Dialect::Sqlite, sqlx::Error::PoolTimedOut) => {
                StoreError::Busy { reason: "another write has been running for ten seconds".into() }
            }
            (_, error) => error.into(),
        })
    }
}

/// The statements of a feature, and the method of [`Store`] that gives them.
macro_rules! part {
    ($(#[$about:meta])* $part:ident, $method:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub struct $part<'a> {
            pub(crate) store: &'a Store,
        }

        impl Store {
            pub fn $method(&self) -> $part<'_> {
                $part { store: self }
            }
        }
    };
}

pub(crate) use part;

/// The values of a statement, in the order of its placeholders.
macro_rules! values {
    ($($value:expr),+ $(,)?) => {{
        let mut values = sqlx::any::AnyArguments::default();
        $(sqlx::Arguments::add(&mut values, $value).expect("a column has such values");)+
        values
    }};
}

pub(crate) use values;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.shown).finish()
    }
}

impl fmt::Display for Store {
    /// The database's URL, without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
