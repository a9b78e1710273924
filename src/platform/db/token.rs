//! The stored form of session tokens and API keys.

use sha2::{Digest, Sha256};

/// The SHA-256 of a token; the token itself is not stored. A fast hash is enough, because long random tokens cannot be
/// guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
