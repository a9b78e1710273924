//! Who changed what. Entries are added and read, never changed, but for one thing: what names a customer
//! is blanked when that customer is erased.

use serde_json::{Map, Value};
use sqlx::AnyConnection;

use super::{KeyId, PersonId, Store, StoreError, Timestamp, json, search, text::short_line};
use crate::domain::CustomerId;

/// What stands where a customer was named who has been erased since.
const ERASED: &str = "erased customer";

/// The audit log of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a> {
    pub(super) store: &'a Store,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Its place in the log; the cursor of lists.
    pub seq: i64,
    pub at: Timestamp,
    pub actor: Actor,
    /// What was done, such as `customer.put`.
    pub action: String,
    /// To what, such as a customer's id.
    pub subject: String,
    pub details: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    Person(PersonId),
    Key(KeyId),
    /// Nobody asked: a start, a sweep.
    Service,
}

impl Audit<'_> {
    pub async fn append(
        self,
        actor: Actor,
        action: &str,
        subject: &str,
        details: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (person, key) = match actor {
            Actor::Person(id) => (Some(id.0), None),
            Actor::Key(id) => (None, Some(id.0)),
            Actor::Service => (None, None),
        };
        let (action, subject) = (short_line("an action", action)?, short_line("a subject", subject)?);
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "insert into audit_log (at, person_id, key_id, action, subject, details)
             values ($1, $2, $3, $4, $5, $6)",
        )
        .bind(now.millis())
        .bind(person)
        .bind(key)
        .bind(action)
        .bind(subject)
        .bind(json::text(details))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Up to `n` entries, the newest first; only those before the one numbered `before`, if given.
    pub async fn list(self, before: Option<i64>, n: u32) -> Result<Vec<AuditEntry>, StoreError> {
        sqlx::query_as(
            "select seq, at, person_id, key_id, action, subject, details from audit_log
             where seq < $1 order by seq desc limit $2",
        )
        .bind(before.unwrap_or(i64::MAX))
        .bind(i64::from(n))
        .fetch_all(&self.store.readers)
        .await?
        .into_iter()
        .map(entry)
        .collect()
    }
}

/// Blanks subject and details of every entry that names the customer.
///
/// It reads the whole log, because details are free; erasing is rare.
pub(super) async fn forget(connection: &mut AnyConnection, customer: &CustomerId) -> Result<(), StoreError> {
    // In details the id stands as JSON writes it, with quotes and backslashes escaped.
    let quoted = json::text(&customer.as_str());
    let in_json = &quoted[1..quoted.len() - 1];
    let candidates: Vec<(i64, String, String)> = sqlx::query_as(
        "select seq, subject, details from audit_log
         where subject like $1 escape '\\' or details like $2 escape '\\'",
    )
    .bind(format!("%{}%", search::escaped(customer.as_str())))
    .bind(format!("%{}%", search::escaped(in_json)))
    .fetch_all(&mut *connection)
    .await?;
    for (seq, subject, details) in candidates {
        if names(&subject, customer.as_str()) || names(&details, in_json) {
            sqlx::query("update audit_log set subject = $2, details = '{}' where seq = $1")
                .bind(seq)
                .bind(ERASED)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// Whether the id stands in the text by itself: `c-1` is not named by `c-17`, nor by `abc-1`.
fn names(text: &str, id: &str) -> bool {
    text.match_indices(id).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + id.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

type Columns = (i64, i64, Option<i64>, Option<i64>, String, String, String);

fn entry((seq, at, person, key, action, subject, details): Columns) -> Result<AuditEntry, StoreError> {
    let damaged = |reason| StoreError::Damaged { table: "audit_log", id: seq.to_string(), reason };
    let actor = match (person, key) {
        (Some(id), _) => Actor::Person(PersonId(id)),
        (None, Some(id)) => Actor::Key(KeyId(id)),
        (None, None) => Actor::Service,
    };
    Ok(AuditEntry {
        seq,
        at: Timestamp::from_millis(at),
        actor,
        action,
        subject,
        details: json::parse(&details).map_err(damaged)?,
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn an_id_is_named_only_by_itself() {
        assert!(names("customer c-1", "c-1"));
        assert!(names(r#"{"customers":["c-17","c-1"]}"#, "c-1"));
        assert!(names("1", "1"));
        assert!(names("é 1!", "1"));
        for other in ["c-17", "abc-1", "é1", "11"] {
            assert!(!names(other, if other.contains('c') { "c-1" } else { "1" }), "{other}");
        }
    }
}
