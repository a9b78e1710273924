//! What is stored of a session's token or an API key.

use sha2::{Digest, Sha256};

/// The SHA-256 of a token. A fast hash is enough: tokens are long and random, so there is nothing to
/// guess. The token itself never gets this far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
