//! A SHA-256 over the data that a model can learn from.

use sha2::{Digest, Sha256};

/// Hashes texts and numbers, each text with its length, so that texts cannot run together.
#[derive(Debug)]
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    /// The version of what is hashed and in which order.
    const VERSION: &str = "atelier data 1";

    pub(super) fn new() -> Self {
        let mut fingerprint = Self(Sha256::new());
        fingerprint.text(Self::VERSION);
        fingerprint
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    pub(super) fn values(&mut self, values: &[u32]) {
        self.number(values.len() as u64);
        for value in values {
            self.0.update(value.to_le_bytes());
        }
    }

    pub(super) fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}
