//! The database: articles, customers, outfits, feedback, settings, and who may do what.
//!
//! Data comes in and goes out as domain types and as the small records defined beside each resource;
//! what fails is a [`StoreError`]. One resource is one file, and one set of methods:
//! `store.articles().get(&id)`. It runs on `SQLite` in a file or on Postgres, with the same behaviour,
//! which `tests/it/store` holds on both.
//!
//! It must never know HTTP, passwords in the clear, tokens in the clear, models, or the time: `now` is an
//! argument. It logs no statement and no bound value.
//!
//! Every statement is written once, in the SQL that both databases understand, through sqlx's `Any`
//! driver: `$1` placeholders, JSON as text, times as whole milliseconds. What differs is in
//! `sqlite.rs` and `postgres.rs` (opening), `upsert.rs` (placeholders) and `migrations/`.

mod address;
mod articles;
mod audit;
mod connect;
mod customers;
mod error;
mod feedback;
mod import;
mod json;
mod keys;
mod migrate;
mod open_error;
mod outfits;
mod pages;
mod people;
mod postgres;
mod revisions;
mod search;
mod sessions;
mod settings;
mod sign_in_links;
mod sqlite;
mod text;
mod token;
mod upsert;

use std::{fmt, time::Duration};

use sqlx::{Any, AnyPool, Transaction};
use tokio::time::timeout;

use self::connect::{Dialect, IfMissing};
pub use self::{
    articles::Articles,
    audit::{Actor, Audit, AuditEntry, AuditFilter},
    customers::Customers,
    error::{Conflict, StoreError},
    feedback::{Feedback, FeedbackCounts, FeedbackEvent, FeedbackKind, Recorded},
    import::Import,
    keys::{ApiKey, ApiKeys, KeyId},
    open_error::OpenError,
    outfits::{Origin, OutfitRecord, Outfits},
    people::{People, Person, PersonId},
    sessions::{Session, Sessions},
    settings::Settings,
    sign_in_links::SignInLinks,
    text::{Name, NameError},
    token::TokenHash,
    upsert::{Counts, Put},
};
use crate::domain::Timestamp;

const PING_DEADLINE: Duration = Duration::from_secs(1);

/// A database, open and migrated. Cheap to clone: clones share the connections.
#[derive(Clone)]
pub struct Store {
    readers: AnyPool,
    /// On `SQLite` one connection, because it has one writer anyway: waiting for it here is first come
    /// first served, where waiting for the file's lock is not. On Postgres the readers' pool again.
    writer: AnyPool,
    dialect: Dialect,
    shown: String,
}

impl Store {
    /// Opens the database that `url` names (`sqlite:PATH` or `postgres://…`) and brings it up to date. A
    /// `SQLite` file is created where there is none, its folder too.
    ///
    /// One that is up to date is open at once, whoever is writing; and one that can only be read can be
    /// read.
    ///
    /// # Errors
    /// Among others if the database cannot be reached within ten seconds, belongs to a newer Atelier, or
    /// had a migration changed under it.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        connect::open(url, IfMissing::Create).await
    }

    /// As [`Store::open`], but for a `SQLite` file that is there already: reading from a mistyped path
    /// should say so, not find a new database empty.
    pub async fn open_existing(url: &str) -> Result<Self, OpenError> {
        connect::open(url, IfMissing::Refuse).await
    }

    /// Which database it is, for people.
    pub fn kind(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "SQLite",
            Dialect::Postgres => "Postgres",
        }
    }

    /// Asks the database for nothing but an answer, within a second: whoever asks whether the service is
    /// ready wants to know now, and does not wait as long as work does.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let answer = sqlx::query_scalar("select cast(1 as bigint)").fetch_one(&self.readers);
        match timeout(PING_DEADLINE, answer).await {
            Ok(answer) => Ok(answer.map(|_: i64| ())?),
            Err(_) => Err(StoreError::Unreachable { reason: "no answer within a second".into() }),
        }
    }

    /// Waits for the statements in flight and closes all connections.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    pub fn articles(&self) -> Articles<'_> {
        Articles { store: self }
    }

    pub fn customers(&self) -> Customers<'_> {
        Customers { store: self }
    }

    pub fn outfits(&self) -> Outfits<'_> {
        Outfits { store: self }
    }

    pub fn settings(&self) -> Settings<'_> {
        Settings { store: self }
    }

    pub fn feedback(&self) -> Feedback<'_> {
        Feedback { store: self }
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

    pub fn audit(&self) -> Audit<'_> {
        Audit { store: self }
    }

    /// Begins an import: everything given to it until `commit` arrives together or not at all. Imports
    /// follow each other; one waits up to a minute for its turn, then gives up with [`StoreError::Busy`].
    ///
    /// On `SQLite` it is the one writer until it ends; other writes wait, and give up with
    /// [`StoreError::Busy`] after ten seconds.
    pub async fn import(&self, now: Timestamp) -> Result<Import, StoreError> {
        Import::begin(self, now).await
    }

    /// Begins a write. Dropping it without `commit` undoes it.
    async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        let begun = match self.dialect {
            Dialect::Sqlite => sqlite::begin(&self.writer).await,
            Dialect::Postgres => self.writer.begin().await,
        };
        begun.map_err(|error| match (self.dialect, error) {
            (Dialect::Sqlite, sqlx::Error::PoolTimedOut) => {
                StoreError::Busy { reason: "another write has held it for ten seconds".into() }
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
    /// Where the database is, without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
