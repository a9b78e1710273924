//! Passwords: argon2id with its crate's settings, which are OWASP's, off the threads that answer requests.

use std::sync::{Arc, LazyLock};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Shorter ones are guessed; longer ones would be a way to make work.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=256;
/// Each takes 19 MiB and tens of milliseconds of a core.
const AT_A_TIME: usize = 2;

/// Somebody's hash, so that a name that nobody has is refused no faster.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash("nobody's password"));

#[derive(Debug, thiserror::Error)]
#[error(
    "a password has {least} to {most} characters, this one {found}; several words are easy to keep in mind",
    least = LENGTH.start(), most = LENGTH.end()
)]
pub struct PasswordError {
    found: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Hasher(Arc<Semaphore>);

impl Default for Hasher {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
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

    /// False, as slowly, where there is no hash.
    pub(super) async fn verify(&self, password: &str, kept: Option<String>) -> bool {
        if password.chars().count() > *LENGTH.end() {
            return false;
        }
        let password = password.to_owned();
        self.run(move || {
            let there = kept.is_some();
            let kept = kept.unwrap_or_else(|| NOBODY.clone());
            let fits = PasswordHash::new(&kept)
                .is_ok_and(|kept| Argon2::default().verify_password(password.as_bytes(), &kept).is_ok());
            there && fits
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let _turn = self.0.acquire().await.expect("the semaphore is never closed; this is a bug");
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
        let kept = hasher.hash("correct horse battery").await.unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert!(hasher.verify("correct horse battery", Some(kept.clone())).await);
        assert!(!hasher.verify("correct horse battery ", Some(kept)).await);
        assert!(!hasher.verify("nobody's password", None).await);
        let refused = hasher.hash("short").await.unwrap_err().to_string();
        assert!(refused.starts_with("a password has 12 to 256 characters, this one 5;"), "{refused}");
    }
}
