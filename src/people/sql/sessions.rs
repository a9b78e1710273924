//! Sessions of signed-in people.

use atelier_core::domain::Timestamp;
use serde_json::json;
use sqlx::{AnyConnection, FromRow, any::AnyRow};

use super::{
    people::{self, Person},
    sign_in_links,
};
use crate::{
    people::PersonId,
    platform::db::{Actor, Author, Entry, Store, StoreError, TokenHash, record::Record, values},
};

crate::platform::db::part! {
    Sessions, sessions
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub person: Person,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_seen_at: Timestamp,
}

/// The start of a session.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    /// The person's password has this hash, or they have none.
    Password(Option<&'a str>),
    /// A sign-in link, which is used up.
    Link(&'a TokenHash),
}

#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    pub token: &'a TokenHash,
    pub person: PersonId,
    pub expires_at: Timestamp,
    /// The hash of a new password, which ends the person's other sessions and their link.
    pub new_password: Option<&'a str>,
}

impl Sessions<'_> {
    /// Begins a session. False if the account is disabled, or if the proof no longer holds: a password that was changed
    /// while it was checked begins nothing, and a link signs in once.
    pub async fn begin(
        self,
        NewSession { token, person, expires_at, new_password }: NewSession<'_>,
        proof: Proof<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let mut proved = people::hold_enabled(&mut transaction, person, proof).await?;
        if let (true, Proof::Link(link)) = (proved, proof) {
            proved = sign_in_links::take(&mut transaction, link, person, now).await?;
        }
        if !proved {
            return Ok(false);
        }
        if let Some(hash) = new_password {
            people::set_password(&mut transaction, person, hash).await?;
        }
        let sql = "insert into sessions (token_hash, person_id, created_at, expires_at, last_seen_at)
             values ($1, $2, $3, $4, $3)";
        sqlx::query_with(sql, values![token.bytes(), person.0, now.millis(), expires_at.millis()])
            .execute(&mut *transaction)
            .await?;
        people::set_signed_in(&mut transaction, person, now).await?;
        let name = people::find(&mut transaction, person).await?.name;
        let used = matches!(proof, Proof::Link(_)).then_some("link.use");
        let changed = new_password.map(|_| "password.set");
        for action in used.into_iter().chain(changed).chain(["sign-in"]) {
            let entry = Entry::new(action, name.as_str(), json!({}));
            entry.write(&mut transaction, self.as_author(person), now).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// The session with this token, unless it is expired, was last used before `idle_since`, or its person is disabled.
    pub async fn find_valid(
        self,
        token: &TokenHash,
        now: Timestamp,
        idle_since: Timestamp,
    ) -> Result<Option<Session>, StoreError> {
        let sql = "select people.id, name, role, people.created_at, signed_in_at, disabled_at,
                sessions.created_at as began_at, expires_at, last_seen_at
             from sessions join people on people.id = person_id
             where token_hash = $1 and expires_at > $2 and last_seen_at >= $3 and disabled_at is null";
        self.store.find(sql, values![token.bytes(), now.millis(), idle_since.millis()]).await
    }

    /// Records that the session was used. No request should wait for it: it writes.
    pub async fn touch(self, token: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let sql = "update sessions set last_seen_at = $2 where token_hash = $1 and last_seen_at < $2";
        let update = sqlx::query_with(sql, values![token.bytes(), now.millis()]);
        self.store.execute(update).await?;
        Ok(())
    }

    /// Signs the session's person out. False if there is no such session.
    pub async fn delete(self, token: &TokenHash, now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = "delete from sessions where token_hash = $1 returning person_id";
        let person: Option<i64> =
            sqlx::query_scalar_with(sql, values![token.bytes()]).fetch_optional(&mut *transaction).await?;
        let Some(person) = person else { return Ok(false) };
        let person = people::find(&mut transaction, PersonId(person)).await?;
        let entry = Entry::new("sign-out", person.name.as_str(), json!({}));
        entry.write(&mut transaction, self.as_author(person.id), now).await?;
        transaction.commit().await?;
        Ok(true)
    }

    pub async fn end_all(self, person: PersonId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let name = people::find(&mut transaction, person).await?.name;
        end_all(&mut transaction, person).await?;
        let entry = Entry::new("person.sign_out", name.as_str(), json!({}));
        entry.write(&mut transaction, self.store.author, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Deletes sessions that are expired or were last used before `idle_since`, and counts them.
    pub async fn delete_ended(self, now: Timestamp, idle_since: Timestamp) -> Result<u64, StoreError> {
        let sql = "delete from sessions where expires_at <= $1 or last_seen_at < $2";
        let delete = sqlx::query_with(sql, values![now.millis(), idle_since.millis()]);
        self.store.execute(delete).await
    }

    /// People sign in and out themselves.
    fn as_author(self, person: PersonId) -> Author {
        Author { actor: Actor::Person(person), ..self.store.author }
    }
}

/// Ends the person's sessions and cancels their sign-in link.
pub(crate) async fn end_all(connection: &mut AnyConnection, person: PersonId) -> Result<(), StoreError> {
    sqlx::query("delete from sessions where person_id = $1").bind(person.0).execute(&mut *connection).await?;
    sqlx::query("delete from sign_in_links where person_id = $1").bind(person.0).execute(connection).await?;
    Ok(())
}

impl FromRow<'_, AnyRow> for Session {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let person = Person::from_row(row)?;
        let row = Record::new(row, "sessions", &person.name);
        Ok(Self {
            created_at: row.time("began_at")?,
            expires_at: row.time("expires_at")?,
            last_seen_at: row.time("last_seen_at")?,
            person,
        })
    }
}
