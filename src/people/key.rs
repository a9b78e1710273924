//! API keys: of programs, with their scopes, and publishable ones of shops' pages.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use atelier_core::domain::Timestamp;

use super::{
    Access, PageOrigin, Scope, Token, USE_INTERVAL,
    notes::Used,
    rate::{Rate, Sender},
    sql::keys::{ApiKey, Publishable, SigningSecret},
};
use crate::platform::db::{Name, StoreError, TokenHash};

/// The start of each secret key, so that secret scanners find leaked ones.
const PREFIX: &str = "atl_";
/// The start of each publishable key, which those scanners leave alone.
const PUBLISHABLE: &str = "atlp_";
/// The start of the secret of a publishable key.
const SIGNING: &str = "atls_";

/// A key in plain text, which is shown once. Like a [`Token`] it has no `Debug` and never appears in a log.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Key(String);

/// A key's use.
#[derive(Debug, Clone)]
pub enum Opens {
    /// Operations of these scopes, to a program that keeps the key secret.
    Scopes(Vec<Scope>),
    /// Operations for product pages of these origins. Their visitors can read the key.
    Pages(Vec<PageOrigin>),
}

impl Key {
    fn new(opens: &Opens, token: &Token) -> Self {
        let prefix = if matches!(opens, Opens::Pages(_)) { PUBLISHABLE } else { PREFIX };
        Self(format!("{prefix}{}", token.as_str()))
    }

    /// The key of a filled form in a session: see [`Token::of_form`].
    pub fn of_form(session: &Token, form: &str, opens: &Opens) -> Self {
        Self::new(opens, &Token::of_form(session, form))
    }

    /// Parses a key from a request. None if it does not have a key's form.
    pub fn parse(text: &str) -> Option<Self> {
        let token = text.strip_prefix(PREFIX).or_else(|| text.strip_prefix(PUBLISHABLE))?;
        Token::parse(token).map(|_| Self(text.to_owned()))
    }

    pub fn is_publishable(&self) -> bool {
        self.0.starts_with(PUBLISHABLE)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }
}

impl Access {
    /// Creates a key, with its record. The key itself is stored nowhere.
    pub async fn issue_key(
        &self,
        label: &Name,
        opens: &Opens,
        lifetime: Option<Duration>,
        now: Timestamp,
    ) -> Result<(Key, ApiKey), StoreError> {
        let key = Key::new(opens, &Token::draw());
        let record = self.record_key(&key, label, opens, lifetime, now).await?;
        Ok((key, record))
    }

    /// Like [`Access::issue_key`], for a key that may have been issued before.
    pub async fn record_key(
        &self,
        key: &Key,
        label: &Name,
        opens: &Opens,
        lifetime: Option<Duration>,
        now: Timestamp,
    ) -> Result<ApiKey, StoreError> {
        let keys = self.store.api_keys();
        if let Some(record) = keys.find_valid(&key.hash(), now).await? {
            return Ok(record);
        }
        let (scopes, publishable) = match opens {
            Opens::Scopes(scopes) => (scopes.iter().map(ToString::to_string).collect(), None),
            Opens::Pages(origins) => {
                let origins = origins.iter().map(ToString::to_string).collect();
                let secret = SigningSecret(format!("{SIGNING}{}", Token::draw().as_str()));
                (Vec::new(), Some(Publishable { origins, secret }))
            }
        };
        let expires = lifetime.map(|lifetime| now + lifetime);
        match keys.create(&key.hash(), label, &scopes, publishable.as_ref(), now, expires).await {
            Ok(record) => Ok(record),
            // The same form may have been faster.
            Err(error) => keys.find_valid(&key.hash(), now).await?.ok_or(error),
        }
    }

    /// A key's record, if the key is neither expired nor revoked. Reads the database each time; while that cannot be
    /// reached, keys used in the last minutes stay valid.
    pub async fn key(&self, key: &Key, now: Timestamp) -> Result<Option<ApiKey>, StoreError> {
        let (keys, hash) = (self.store.api_keys(), key.hash());
        let ask = keys.find_valid(&hash, now);
        let cached = self.keys.get(&hash, Instant::now(), |_| self.store.soon(ask)).await?;
        let Some(cached) = cached else { return Ok(None) };
        let record = cached.value;
        if record.is_expired(now) {
            return Ok(None);
        }
        if cached.stale.is_none() && record.last_used_at.is_none_or(|last| last + USE_INTERVAL <= now) {
            self.note_use(Used::Key(record.id), now);
        }
        Ok(Some(record))
    }

    /// Counts a request of the sender, or returns how long to wait before the next.
    pub fn check_rate(
        &self,
        sender: Sender,
        count: u32,
        per_second: u32,
        now: Instant,
    ) -> Result<(), Duration> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(sender, count, Rate::per_second(per_second), now)
    }
}
