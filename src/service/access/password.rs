//! Passwords: argon2id with its crate's defaults, which are OWASP's, off the threads that answer requests.

use std::sync::{Arc, LazyLock};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Shorter passwords can be guessed; hashing longer ones would cost too much.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=256;
/// Each hash takes 19 MiB and tens of milliseconds of a core.
const CONCURRENT: usize = 2;

/// A hash to verify for unknown names, so that refusing them is not faster.
static DUMMY: LazyLock<String> = LazyLock::new(|| hash("nobody's password"));

#[derive(Debug, thiserror::Error)]
#[error(
    "a password has {least} to {most} characters, this one {found}; several words are easy to remember",
    least = LENGTH.start(), most = LENGTH.end()
)]
pub struct PasswordError {
    found: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Hasher(Arc<Semaphore>);

impl Default for Hasher {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENT)))
    }
}

impl Hasher {
    pub(super) async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let length = password.chars().count();
        if !LENGTH.contains(&length) {
            return Err(PasswordError { found: length });
        }
        let password = password.to_owned();
        Ok(self.run(move || hash(&password)).await)
    }

    /// Without a hash the answer is false, after the same time.
    pub(super) async fn verify(&self, password: &str, hash: Option<String>) -> bool {
        if password.chars().count() > *LENGTH.end() {
            return false;
        }
        let password = password.to_owned();
        self.run(move || {
            let exists = hash.is_some();
            let hash = hash.unwrap_or_else(|| DUMMY.clone());
            let fits = PasswordHash::new(&hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
            exists && fits
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let _permit = self.0.acquire().await.expect("the semaphore is never closed; this is a bug");
        spawn_blocking(work).await.expect("hashing does not panic; this is a bug")
    }
}

fn hash(password: &str) -> String {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    hashed.expect("the system has randomness and the password is short; this is a bug").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_password_fits_its_hash() {
        let hasher = Hasher::default();
        let hash = hasher.hash("correct horse battery").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(hasher.verify("correct horse battery", Some(hash.clone())).await);
        assert!(!hasher.verify("correct horse battery ", Some(hash)).await);
        assert!(!hasher.verify("nobody's password", None).await);
        let refused = hasher.hash("short").await.unwrap_err().to_string();
        assert!(refused.starts_with("a password has 12 to 256 characters, this one 5;"), "{refused}");
    }
}
