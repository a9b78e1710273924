//! Sessions of signed-in people.

use super::{Person, PersonId, Store, StoreError, TokenHash, people};
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

impl Sessions<'_> {
    /// # Errors
    /// If there is no such person (`NotFound`), or the database fails.
    pub async fn create(
        self,
        token: &TokenHash,
        person: PersonId,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        sqlx::query(
            "insert into sessions (token_hash, person_id, created_at, expires_at, last_seen_at)
             values ($1, $2, $3, $4, $3)",
        )
        .bind(token.bytes())
        .bind(person.0)
        .bind(now.millis())
        .bind(expires_at.millis())
        .execute(&mut *transaction)
        .await
        .map_err(StoreError::for_missing_reference(StoreError::NotFound("person")))?;
        transaction.commit().await?;
        Ok(())
    }

    /// The session with this token, unless it is expired or its person is disabled.
    pub async fn find_valid(self, token: &TokenHash, now: Timestamp) -> Result<Option<Session>, StoreError> {
        let row: Option<Columns> = sqlx::query_as(
            "select people.id, name, role, people.created_at, disabled_at,
                sessions.created_at, expires_at, last_seen_at
             from sessions join people on people.id = person_id
             where token_hash = $1 and expires_at > $2 and disabled_at is null",
        )
        .bind(token.bytes())
        .bind(now.millis())
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

    /// Deletes expired sessions, and counts them.
    pub async fn delete_expired(self, now: Timestamp) -> Result<u64, StoreError> {
        let delete = sqlx::query("delete from sessions where expires_at <= $1").bind(now.millis());
        self.store.execute(delete).await
    }
}

/// The columns of the person, then of the session.
type Columns = (i64, String, String, i64, Option<i64>, i64, i64, i64);
