//! Sessions of signed-in people.

use sqlx::AnyConnection;

use super::{Person, PersonId, Store, StoreError, TokenHash, people, sign_in_links};
use crate::domain::Timestamp;

/// The sessions of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Sessions<'a> {
    pub(super) store: &'a Store,
}

/// A signed-in person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub person: Person,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_seen_at: Timestamp,
}

/// What a session begins with.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    /// The person's password has this hash, or they have none.
    Password(Option<&'a str>),
    /// A sign-in link, which is used up.
    Link(&'a TokenHash),
}

/// A session that begins.
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
        sqlx::query(
            "insert into sessions (token_hash, person_id, created_at, expires_at, last_seen_at)
             values ($1, $2, $3, $4, $3)",
        )
        .bind(token.bytes())
        .bind(person.0)
        .bind(now.millis())
        .bind(expires_at.millis())
        .execute(&mut *transaction)
        .await?;
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
        let row: Option<Columns> = sqlx::query_as(
            "select people.id, name, role, people.created_at, disabled_at,
                sessions.created_at, expires_at, last_seen_at
             from sessions join people on people.id = person_id
             where token_hash = $1 and expires_at > $2 and last_seen_at >= $3 and disabled_at is null",
        )
        .bind(token.bytes())
        .bind(now.millis())
        .bind(idle_since.millis())
        .fetch_optional(&self.store.readers)
        .await?;
        let Some((id, name, role, person_created, disabled, created, expires, seen)) = row else {
            return Ok(None);
        };
        Ok(Some(Session {
            person: people::parse((id, name, role, person_created, disabled))?,
            created_at: Timestamp::from_millis(created),
            expires_at: Timestamp::from_millis(expires),
            last_seen_at: Timestamp::from_millis(seen),
        }))
    }

    /// Records that the session was used. No request should wait for it: it writes.
    pub async fn touch(self, token: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let update =
            sqlx::query("update sessions set last_seen_at = $2 where token_hash = $1 and last_seen_at < $2")
                .bind(token.bytes())
                .bind(now.millis());
        self.store.execute(update).await?;
        Ok(())
    }

    /// Ends the session. False if there is no such session.
    pub async fn delete(self, token: &TokenHash) -> Result<bool, StoreError> {
        let delete = sqlx::query("delete from sessions where token_hash = $1").bind(token.bytes());
        Ok(self.store.execute(delete).await? > 0)
    }

    /// Ends the person's sessions and cancels their sign-in link.
    pub async fn end_all(self, person: PersonId) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        end_all(&mut transaction, person).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Deletes expired sessions, and counts them.
    pub async fn delete_expired(self, now: Timestamp) -> Result<u64, StoreError> {
        let delete = sqlx::query("delete from sessions where expires_at <= $1").bind(now.millis());
        self.store.execute(delete).await
    }
}

/// Ends the person's sessions and cancels their sign-in link.
pub(super) async fn end_all(connection: &mut AnyConnection, person: PersonId) -> Result<(), StoreError> {
    sqlx::query("delete from sessions where person_id = $1").bind(person.0).execute(&mut *connection).await?;
    sqlx::query("delete from sign_in_links where person_id = $1").bind(person.0).execute(connection).await?;
    Ok(())
}

/// The columns of the person, then of the session.
type Columns = (i64, String, String, i64, Option<i64>, i64, i64, i64);
