//! The log of changes and sign-ins. Entries are added and never changed, except that erasing a customer blanks the entries
//! about them.
//!
//! Each function that makes a change writes its entry itself, in the same transaction, as the store's author
//! ([`Store::by`]). So no change is stored without its entry.

use std::net::IpAddr;

use atelier_core::domain::{CustomerId, RuleName, Timestamp};
use futures_util::Stream;
use serde_json::{Map, Value};
use sqlx::{AnyConnection, FromRow, Row, any::AnyRow};

use super::{Store, StoreError, json, pages, record::Record, text::short_line, values};

/// The subject of entries about an erased customer.
pub(crate) const ERASED: &str = "erased customer";
/// The action of a visitor who could not sign in.
pub const SIGN_IN_FAILED: &str = "sign-in.failed";

crate::platform::db::part! {
    Audit, audit
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Numbers the entries of the log, and is the cursor of lists.
    pub seq: i64,
    pub at: Timestamp,
    pub actor: Actor,
    /// The address that the request came from. Behind a proxy it is the proxy's.
    pub peer: Option<IpAddr>,
    /// Such as `customer.put`.
    pub action: String,
    /// The object of the action, such as a customer's id.
    pub subject: String,
    /// The customer that the entry is about, until they are erased.
    pub customer: Option<CustomerId>,
    pub details: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersonId(pub i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    Person(PersonId),
    Key(KeyId),
    /// The service itself, or a program without a key on the same machine.
    Service,
    /// Someone who could not sign in.
    Visitor,
}

impl Actor {
    /// The id of the person, and that of the key.
    pub(crate) fn ids(self) -> (Option<i64>, Option<i64>) {
        match self {
            Self::Person(id) => (Some(id.0), None),
            Self::Key(id) => (None, Some(id.0)),
            Self::Service | Self::Visitor => (None, None),
        }
    }
}

/// Who makes a change, and the address that their request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    pub actor: Actor,
    pub peer: Option<IpAddr>,
}

impl Author {
    /// The service itself, or its operator at a terminal.
    pub const SERVICE: Self = Self { actor: Actor::Service, peer: None };
}

/// An entry about a change. Its author is the store's.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    pub action: &'a str,
    pub subject: &'a str,
    /// The customer that the entry is about; erasing them blanks it. So `subject` and `details` must not name another
    /// customer, and the entry about an erasure must not name the erased one.
    pub customer: Option<&'a CustomerId>,
    /// A JSON object.
    pub details: Value,
}

impl<'a> Entry<'a> {
    /// An entry about no customer. The details are a JSON object.
    pub fn new(action: &'a str, subject: &'a str, details: Value) -> Self {
        Self { action, subject, customer: None, details }
    }

    pub fn about(self, customer: impl Into<Option<&'a CustomerId>>) -> Self {
        Self { customer: customer.into(), ..self }
    }

    pub(crate) async fn write(
        &self,
        connection: &mut AnyConnection,
        author: Author,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (person, key) = author.actor.ids();
        let sql = "insert into audit_log (at, person_id, key_id, action, subject, customer_id, details, peer)
             values ($1, $2, $3, $4, $5, $6, $7, $8)";
        sqlx::query_with(
            sql,
            values![
                now.millis(),
                person,
                key,
                short_line("an action", self.action)?,
                short_line("a subject", self.subject)?,
                self.customer.map(CustomerId::as_str),
                json::text(&self.details),
                author.peer.map(|peer| peer.to_string())
            ],
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// A prefix of the action: `customer.` selects all actions on customers.
    pub action: String,
    pub actor: Option<Actor>,
}

impl Audit<'_> {
    /// Adds an entry about something that changes no data, such as a failed attempt. Changes write their own.
    pub async fn append(self, entry: &Entry<'_>, now: Timestamp) -> Result<(), StoreError> {
        self.store.commit(self.store.write().await?, entry, now).await
    }

    /// The entries about a customer, oldest first, read in parts as needed.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<AuditEntry, StoreError>> + Send + use<> {
        let sql = "select * from audit_log where customer_id = $1 and seq > $2 order by seq limit $3";
        pages::for_customer(self.store, customer, sql, |row| row.try_get("seq"))
    }

    /// The latest `n` entries about a customer's outfit, or about one without a customer, newest first.
    pub async fn for_outfit(
        self,
        customer: Option<&CustomerId>,
        outfit: i64,
        n: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let of_customer = "select * from audit_log
             where customer_id = $1 and subject = $2 and substr(action, 1, 7) = 'outfit.'
             order by seq desc limit $3";
        let of_nobody = "select * from audit_log
             where customer_id is null and $1 = '' and subject = $2 and substr(action, 1, 7) = 'outfit.'
             order by seq desc limit $3";
        let sql = if customer.is_some() { of_customer } else { of_nobody };
        let values = values![customer.map_or("", CustomerId::as_str), outfit.to_string(), i64::from(n)];
        self.store.find_all(sql, values).await
    }

    /// The latest `n` changes of a rule, newest first.
    pub async fn for_rule(self, name: &RuleName, n: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let sql = "select * from audit_log
             where subject = $1 and action in ('rule.put', 'rule.delete') order by seq desc limit $2";
        self.store.find_all(sql, values![name.as_str(), i64::from(n)]).await
    }

    /// The names of up to `n` rules that were deleted, the latest first.
    pub async fn deleted_rules(self, n: u32) -> Result<Vec<String>, StoreError> {
        let sql = "select subject from audit_log
             where action in ('rule.put', 'rule.delete') and subject not in (select name from rules)
             group by subject order by max(seq) desc limit $1";
        Ok(sqlx::query_scalar_with(sql, values![i64::from(n)]).fetch_all(self.store.readers()?).await?)
    }

    /// Up to `n` entries that match the filter, newest first, before the entry `before` if given.
    pub async fn list(
        self,
        filter: &AuditFilter,
        before: Option<i64>,
        n: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (actor, id) = match filter.actor {
            None => ("anyone", 0),
            Some(Actor::Person(id)) => ("person", id.0),
            Some(Actor::Key(id)) => ("key", id.0),
            Some(Actor::Service) => ("service", 0),
            Some(Actor::Visitor) => ("visitor", 0),
        };
        let sql = "select * from audit_log
             where seq < $1 and substr(action, 1, length($3)) = $3
                and case $4
                    when 'person' then person_id = $5
                    when 'key' then key_id = $5
                    when 'service' then person_id is null and key_id is null and action <> $6
                    when 'visitor' then action = $6
                    else 1 = 1
                end
             order by seq desc limit $2";
        Ok(sqlx::query_as_with(
            sql,
            values![
                before.unwrap_or(i64::MAX),
                i64::from(n),
                short_line("an action", &filter.action)?,
                actor,
                id,
                SIGN_IN_FAILED
            ],
        )
        .fetch_all(self.store.readers()?)
        .await?)
    }
}

/// Blanks subject, details and customer of every entry about the customer, and counts them.
pub(crate) async fn erase_customer(
    connection: &mut AnyConnection,
    customer: &CustomerId,
) -> Result<u64, StoreError> {
    let sql = "update audit_log set subject = $2, details = '{}', customer_id = null where customer_id = $1";
    let blanked = sqlx::query_with(sql, values![customer.as_str(), ERASED]).execute(connection).await?;
    Ok(blanked.rows_affected())
}

impl FromRow<'_, AnyRow> for AuditEntry {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let seq = row.try_get("seq")?;
        let row = Record::new(row, "audit_log", &seq);
        let action: String = row.get("action")?;
        let actor = match (row.get("person_id")?, row.get("key_id")?) {
            (Some(id), _) => Actor::Person(PersonId(id)),
            (None, Some(id)) => Actor::Key(KeyId(id)),
            (None, None) if action == SIGN_IN_FAILED => Actor::Visitor,
            (None, None) => Actor::Service,
        };
        Ok(Self {
            seq,
            at: row.time("at")?,
            actor,
            peer: row.parse_optional("peer", str::parse)?,
            action,
            subject: row.get("subject")?,
            customer: row.parse_optional("customer_id", |id: String| CustomerId::new(id))?,
            details: row.parse("details", json::parse)?,
        })
    }
}
