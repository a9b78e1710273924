//! API keys, with which programs and the pages of shops authenticate.

use std::fmt;

use atelier_core::domain::Timestamp;
use serde_json::json;
use sqlx::{AnyConnection, FromRow, Row, any::AnyRow};

use crate::platform::db::{Entry, KeyId, Name, Store, StoreError, TokenHash, json, record::Record, values};

crate::platform::db::part! {
    ApiKeys, api_keys
}

/// A key's record, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    pub label: Name,
    /// None of a publishable key.
    pub scopes: Vec<String>,
    pub publishable: Option<Publishable>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Makes a key publishable: only pages of these origins may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publishable {
    /// Such as `https://shop.example`.
    pub origins: Vec<String>,
    pub secret: SigningSecret,
}

/// With which a shop's backend signs the ids of customers for its pages. It is stored as it is, because a signature cannot be
/// checked with a digest of it. Empty after a restore, and then it signs nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(pub String);

/// Not derived, because the secret must reach no log.
impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSecret").finish_non_exhaustive()
    }
}

impl ApiKey {
    /// Whether its signing secret was left out of a backup, so that the shop needs another key.
    pub fn lacks_secret(&self) -> bool {
        self.revoked_at.is_none() && self.publishable.as_ref().is_some_and(|page| page.secret.0.is_empty())
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl ApiKeys<'_> {
    pub async fn create(
        self,
        token: &TokenHash,
        label: &Name,
        scopes: &[String],
        publishable: Option<&Publishable>,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<ApiKey, StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = "insert into api_keys (token_hash, label, scopes, created_at, expires_at, origins, signing_secret)
             values ($1, $2, $3, $4, $5, $6, $7) returning *";
        let key: ApiKey = sqlx::query_as_with(
            sql,
            values![
                token.bytes(),
                label.as_str(),
                json::text(&scopes),
                now.millis(),
                expires_at.map(Timestamp::millis),
                publishable.map(|publishable| json::text(&publishable.origins)),
                publishable.map(|publishable| publishable.secret.0.clone())
            ],
        )
        .fetch_one(&mut *transaction)
        .await?;
        let days = expires_at.map(|end| (end.millis() - now.millis()) / 86_400_000);
        let details = match publishable {
            None => json!({"key": key.id.0, "scopes": scopes, "days": days}),
            Some(Publishable { origins, .. }) => json!({"key": key.id.0, "origins": origins, "days": days}),
        };
        let entry = Entry::new("key.create", label.as_str(), details);
        self.store.commit(transaction, &entry, now).await?;
        Ok(key)
    }

    /// The key with this token, unless it is expired or revoked.
    pub async fn find_valid(self, token: &TokenHash, now: Timestamp) -> Result<Option<ApiKey>, StoreError> {
        let sql = "select * from api_keys
             where token_hash = $1 and revoked_at is null and (expires_at is null or expires_at > $2)";
        self.store.find(sql, values![token.bytes(), now.millis()]).await
    }

    /// All keys, including expired and revoked ones, newest first.
    pub async fn list(self) -> Result<Vec<ApiKey>, StoreError> {
        Ok(sqlx::query_as("select * from api_keys order by id desc").fetch_all(self.store.readers()?).await?)
    }

    /// Records that the key was used. No request should wait for it: it writes.
    pub async fn touch(self, id: KeyId, now: Timestamp) -> Result<(), StoreError> {
        let sql = "update api_keys set last_used_at = $2
             where id = $1 and (last_used_at is null or last_used_at < $2)";
        let update = sqlx::query_with(sql, values![id.0, now.millis()]);
        self.store.execute(update).await?;
        Ok(())
    }

    /// Revokes the key. Revoking it again keeps the first time.
    pub async fn revoke(self, id: KeyId, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = "update api_keys set revoked_at = $2 where id = $1 and revoked_at is null returning label";
        let revoked: Option<String> = sqlx::query_scalar_with(sql, values![id.0, now.millis()])
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(label) = revoked else {
            let known: Option<i64> =
                sqlx::query_scalar_with("select id from api_keys where id = $1", values![id.0])
                    .fetch_optional(&mut *transaction)
                    .await?;
            return known.map(drop).ok_or(StoreError::NotFound("API key"));
        };
        let entry = Entry::new("key.revoke", &label, json!({"key": id.0}));
        self.store.commit(transaction, &entry, now).await
    }
}

/// Removes the secrets of publishable keys from a backup's copy of the database.
pub(crate) async fn remove_secrets(copy: &mut AnyConnection) -> Result<(), StoreError> {
    let update = "update api_keys set signing_secret = '' where signing_secret is not null";
    sqlx::query(update).execute(copy).await?;
    Ok(())
}

impl FromRow<'_, AnyRow> for ApiKey {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id = row.try_get("id")?;
        let row = Record::new(row, "api_keys", &id);
        let origins = row.parse_optional("origins", json::parse)?;
        let secret = row.get::<Option<String>>("signing_secret")?.map(SigningSecret);
        Ok(Self {
            id: KeyId(id),
            label: row.parse("label", |name: &str| Name::new(name))?,
            scopes: row.parse("scopes", json::parse)?,
            publishable: origins.zip(secret).map(|(origins, secret)| Publishable { origins, secret }),
            created_at: row.time("created_at")?,
            expires_at: row.optional_time("expires_at")?,
            last_used_at: row.optional_time("last_used_at")?,
            revoked_at: row.optional_time("revoked_at")?,
        })
    }
}
