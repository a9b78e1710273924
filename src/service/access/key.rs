//! API keys: what programs come with, and how far each reaches.

use std::{
    fmt,
    str::FromStr,
    sync::PoisonError,
    time::{Duration, Instant},
};

use super::{Access, NOTED, Token};
use crate::{
    domain::Timestamp,
    store::{ApiKey, KeyId, Name, StoreError, TokenHash},
};

/// What a key begins with, so that one that was left in a file is found by it.
const PREFIX: &str = "atl_";

/// A key as it is shown once. Like a [`Token`] it has no `Debug` and reaches no log.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_debug_implementations, reason = "a secret must reach no log")]
pub struct Key(String);

/// How far a key reaches. A key has any of them; none holds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Complete,
    Catalogue,
    Feedback,
    Admin,
    Metrics,
}

impl Key {
    fn draw() -> Self {
        Self(format!("{PREFIX}{}", Token::draw().as_str()))
    }

    /// As a program sent it. None for what this service never gave out.
    pub fn parse(text: &str) -> Option<Self> {
        Token::parse(text.strip_prefix(PREFIX)?).map(|_| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn hash(&self) -> TokenHash {
        TokenHash::new(&self.0)
    }
}

impl Access {
    /// Makes a key for a program. What is returned beside its record is shown once and kept nowhere.
    pub async fn issue_key(
        &self,
        label: &Name,
        scopes: &[Scope],
        lifetime: Option<Duration>,
        now: Timestamp,
    ) -> Result<(Key, ApiKey), StoreError> {
        let key = Key::draw();
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let expires = lifetime.map(|lifetime| now + lifetime);
        let kept = self.store.api_keys().create(&key.hash(), label, &scopes, now, expires).await?;
        Ok((key, kept))
    }

    /// What is known of a key, if it is neither expired nor revoked. The database is asked each time; while it
    /// cannot be reached, whoever showed a key a few minutes ago gets in with it.
    pub async fn key(&self, key: &Key, now: Timestamp) -> Result<Option<ApiKey>, StoreError> {
        let (keys, hash) = (self.store.api_keys(), key.hash());
        let ask = keys.find_valid(&hash, now);
        let Some(found) = self.keys.get(&hash, Instant::now(), ask).await? else { return Ok(None) };
        let kept = found.value;
        if kept.expires_at.is_some_and(|expires| expires <= now) {
            return Ok(None);
        }
        if found.stale.is_none() && kept.last_used_at.is_none_or(|last| last + NOTED <= now) {
            // A key that is right opens the door, whether or not that can be noted.
            if let Err(error) = keys.touch(kept.id, now).await {
                tracing::warn!(%error, "the use of an API key could not be noted");
            }
        }
        Ok(Some(kept))
    }
}

impl Access {
    /// Counts a request of the key's, or says how long to wait before the next.
    pub fn pace(&self, key: KeyId, per_second: u32, now: Instant) -> Result<(), Duration> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).take(key, per_second, now)
    }
}

impl Scope {
    pub const ALL: [Self; 5] = [Self::Complete, Self::Catalogue, Self::Feedback, Self::Admin, Self::Metrics];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Catalogue => "catalogue",
            Self::Feedback => "feedback",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }

    /// What it opens, in words.
    pub fn opens(self) -> &'static str {
        match self {
            Self::Complete => "completions, comparisons and scores, and which methods there are",
            Self::Catalogue => "reading and changing articles, customers and outfits",
            Self::Feedback => "reporting feedback and reading its counts",
            Self::Admin => "activating releases and setting the routing",
            Self::Metrics => "reading /metrics",
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| {
            format!("a scope is complete, catalogue, feedback, admin or metrics, not {text:?}")
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_drawn_is_a_key() {
        let key = Key::draw();
        assert!(key.as_str().starts_with("atl_") && key.as_str().len() == 68, "{}", key.as_str());
        assert!(Key::parse(key.as_str()).is_some_and(|read| read.hash() == key.hash()));
        for text in ["", "atl_", "atl_x", &key.as_str()[4..], &key.as_str()[..67]] {
            assert!(Key::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert!("Complete".parse::<Scope>().is_err());
    }
}
