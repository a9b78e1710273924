//! Links that sign a person in once.

use atelier_core::domain::Timestamp;
use serde_json::json;
use sqlx::AnyConnection;

use super::people::{self, Person};
use crate::{
    people::{LINK, PersonId},
    platform::db::{Author, Entry, Store, StoreError, TokenHash, values},
};

crate::platform::db::part! {
    SignInLinks, sign_in_links
}

impl SignInLinks<'_> {
    /// Stores a link, which replaces the person's earlier one.
    pub async fn create(self, token: &TokenHash, person: PersonId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let person = people::find(&mut transaction, person).await?;
        put(&mut transaction, token, &person, self.store.author, now).await?;
        Ok(transaction.commit().await?)
    }

    /// The person of the link, unless it is used or expired, or the person is disabled.
    pub async fn find_valid(self, token: &TokenHash, now: Timestamp) -> Result<Option<Person>, StoreError> {
        let sql = "select people.id, name, role, people.created_at, signed_in_at, disabled_at
             from sign_in_links join people on people.id = person_id
             where token_hash = $1 and expires_at > $2 and disabled_at is null";
        self.store.find(sql, values![token.bytes(), now.millis()]).await
    }
}

/// Makes this the person's link, instead of an earlier one.
pub(crate) async fn put(
    transaction: &mut AnyConnection,
    token: &TokenHash,
    person: &Person,
    author: Author,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql =
        "insert into sign_in_links (token_hash, person_id, created_at, expires_at) values ($1, $2, $3, $4)
         on conflict (person_id) do update set token_hash = excluded.token_hash,
            created_at = excluded.created_at, expires_at = excluded.expires_at";
    sqlx::query_with(sql, values![token.bytes(), person.id.0, now.millis(), (now + LINK).millis()])
        .execute(&mut *transaction)
        .await
        .map_err(StoreError::for_missing_reference(StoreError::NotFound("person")))?;
    Entry::new("person.link", person.name.as_str(), json!({})).write(transaction, author, now).await
}

/// Uses the link up. False if it was used before, so that it signs in only once, or has expired.
pub(crate) async fn take(
    connection: &mut AnyConnection,
    token: &TokenHash,
    person: PersonId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "delete from sign_in_links where token_hash = $1 and person_id = $2 and expires_at > $3";
    let done =
        sqlx::query_with(sql, values![token.bytes(), person.0, now.millis()]).execute(connection).await?;
    Ok(done.rows_affected() > 0)
}
