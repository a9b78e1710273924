//! The database: articles, customers, outfits, feedback, settings, people and access.
//!
//! Data goes in and out as domain types and as the records defined beside each resource; errors are [`StoreError`]s. Each
//! resource is a file and a set of methods: `store.articles().get(&id)`. A `SQLite` file and a Postgres server behave the
//! same, which `tests/it/store` checks on both.
//!
//! This room must not know HTTP, models, passwords or tokens in plain text, or the time: `now` is an argument. It logs no
//! statement and no bound value.
//!
//! Every statement is written once, in SQL that both databases understand, through sqlx's `Any` driver: `$1` placeholders,
//! JSON as text, times as whole milliseconds. `sqlite.rs` and `postgres.rs` (opening), `upsert.rs` (placeholders) and
//! `migrations/` have the differences.

mod acceptance;
mod address;
mod articles;
mod audit;
mod backup;
mod connect;
mod customers;
mod documents;
mod erasures;
mod error;
mod events;
mod experiments;
mod feedback;
mod feeds;
mod growth;
mod import;
mod imports;
mod json;
mod keys;
mod migrate;
mod notes;
mod open_error;
mod outfits;
mod pages;
mod people;
mod personal_data;
mod postgres;
mod probe;
mod record;
mod resource;
mod revisions;
mod saved_outfits;
mod search;
mod sessions;
mod settings;
mod sign_in_links;
mod sqlite;
mod text;
mod token;
mod upsert;
mod version;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use atelier_core::domain::Timestamp;
use sqlx::{Any, AnyPool, SqlSafeStr, Transaction, any::AnyArguments, query::Query};

pub use self::experiments::{ArmCounts, ArmCustomer, ArmSums, ExperimentCounts};
pub use self::{
    acceptance::{
        CountedBy, CountedOnly, CountedRules, Outcomes, RuleOutcomes, Sales, SuggestedArticle, day_of,
    },
    articles::{ArticleFilter, Articles, UnparsedArticle, UnparsedArticles},
    audit::{Actor, Audit, AuditEntry, AuditFilter, Author, Entry, SIGN_IN_FAILED},
    backup::{BackupError, back_up, restore},
    customers::Customers,
    documents::{Consequence, DocumentName, Documents, Named, NewDocument},
    error::{Conflict, StoreError},
    events::{Attribution, Bought, Event, EventKind, EventRecorded, Events, Purchase, StoredEvent},
    feedback::{Feedback, FeedbackCounts, FeedbackEvent, FeedbackKind, Recorded, RefusalReason},
    feeds::{Feed, FeedSeen, FeedSource, Feeds},
    import::{Import, Outcome},
    imports::{ImportId, ImportRecord, ImportState, Imports, Progress},
    keys::{ApiKey, ApiKeys, KeyId, Publishable, SigningSecret},
    notes::{CustomerNote, Notes},
    open_error::OpenError,
    outfits::{Origin, OutfitRecord, Outfits},
    people::{People, Person, PersonId},
    personal_data::{PERSONAL_TABLES, PersonalData},
    resource::{Change, Resource, Resources},
    revisions::Revisions,
    saved_outfits::{KEPT, Reply, ReplyKind, SavedFilter, SavedOutfit, SavedOutfits},
    sessions::{NewSession, Proof, Session, Sessions},
    settings::Settings,
    sign_in_links::SignInLinks,
    text::{Name, NameError, Note, NoteError},
    token::TokenHash,
    upsert::{Counts, Put},
    version::{ChangeError, Expected, Stored, Version, Versions},
};
use self::{
    connect::{Dialect, IfMissing},
    import::PATIENCE,
    probe::Probe,
};

/// An open, migrated database. Cheap to clone: clones share the connections.
#[derive(Clone)]
pub struct Store {
    readers: AnyPool,
    /// On `SQLite` one connection, because there is only one writer: waiting for it here is first come, first served,
    /// and waiting for the file's lock is not. On Postgres the readers' pool.
    writer: AnyPool,
    /// On `SQLite` a connection that empties the log and rewrites the file, and soon gives up when others are in the way. On
    /// Postgres the readers' pool.
    cleaner: AnyPool,
    probe: Arc<Probe>,
    dialect: Dialect,
    /// The file that an import on `SQLite` locks.
    import_lock: PathBuf,
    /// Who makes the changes of this clone.
    author: Author,
    /// The most bytes of an article's type and attributes without the embedding, or of features, as JSON.
    row_bytes: u32,
    shown: String,
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

    /// The same database, for rows of at most this many bytes.
    pub fn with_row_bytes(self, row_bytes: u32) -> Self {
        Self { row_bytes, ..self }
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

    pub fn articles(&self) -> Articles<'_> {
        self.resources()
    }

    pub fn customers(&self) -> Customers<'_> {
        self.resources()
    }

    pub fn outfits(&self) -> Outfits<'_> {
        Outfits { store: self }
    }

    pub fn saved_outfits(&self) -> SavedOutfits<'_> {
        SavedOutfits { store: self }
    }

    pub fn notes(&self) -> Notes<'_> {
        Notes { store: self }
    }

    pub fn settings(&self) -> Settings<'_> {
        Settings { store: self }
    }

    pub fn feedback(&self) -> Feedback<'_> {
        Feedback { store: self }
    }

    pub fn events(&self) -> Events<'_> {
        Events { store: self }
    }

    pub fn feeds(&self) -> Feeds<'_> {
        Feeds { store: self }
    }

    pub fn people(&self) -> People<'_> {
        People { store: self }
    }

    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { store: self }
    }

    pub fn sign_in_links(&self) -> SignInLinks<'_> {
        SignInLinks { store: self }
    }

    pub fn api_keys(&self) -> ApiKeys<'_> {
        ApiKeys { store: self }
    }

    pub fn imports(&self) -> Imports<'_> {
        Imports { store: self }
    }

    pub fn audit(&self) -> Audit<'_> {
        Audit { store: self }
    }

    /// Begins an import, which stores all of its rows or none. One import runs at a time; another waits up to a minute, then
    /// fails with [`StoreError::Busy`]. Other writes wait for a slice of its rows at most.
    pub async fn import(&self, now: Timestamp) -> Result<Import, StoreError> {
        Import::begin(self, now, PATIENCE).await
    }

    /// Like [`Store::import`], but fails at once while another import runs.
    pub async fn try_import(&self, now: Timestamp) -> Result<Import, StoreError> {
        Import::begin(self, now, Duration::ZERO).await
    }

    /// The connections for reading.
    fn readers(&self) -> Result<&AnyPool, StoreError> {
        self.probe.pass()?;
        Ok(&self.readers)
    }

    async fn count(&self, sql: impl SqlSafeStr) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(self.readers()?).await?;
        Ok(count.unsigned_abs())
    }

    /// Runs one statement as a write without an audit entry, and gives the number of changed rows.
    async fn execute(&self, statement: Query<'_, Any, AnyArguments>) -> Result<u64, StoreError> {
        let mut transaction = self.write().await?;
        let done = statement.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }

    /// Commits a change with its entry in the audit log.
    async fn commit(
        &self,
        mut transaction: Transaction<'_, Any>,
        entry: &Entry<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        entry.write(&mut transaction, self.author, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Begins a write. Dropping it without `commit` rolls it back.
    async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
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
