//! One SHA-256 over what can be learned from.

use sha2::{Digest, Sha256};

/// Takes in texts and numbers; a text cannot run into the next.
#[derive(Debug)]
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    /// The version of what is taken in and in which order; a change of it is another fingerprint.
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
