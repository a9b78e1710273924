//! Passwords: argon2id with its crate's defaults, which are OWASP's, off the threads that answer requests.

use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use atelier_core::util::memory::return_memory_of_thread;

use super::{
    attempts::Turn,
    guessable::{contains_name, find_weakness},
};

/// Shorter passwords can be guessed; hashing longer ones would cost too much.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=256;

/// Why a new password is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error(
        "a password has {least} to {most} characters, this one {0}; several words are easy to remember",
        least = LENGTH.start(), most = LENGTH.end()
    )]
    Length(usize),
    #[error("this password contains your name, which guessers try first; choose one without it")]
    Name,
    #[error("this password is too easy to guess: {0}; add words that have nothing to do with the others")]
    Guessable(&'static str),
}

/// Whether anyone can have this password. It tells nothing about a person.
pub(super) fn is_possible(password: &str) -> bool {
    password.chars().count() <= *LENGTH.end()
}

pub(super) fn check_length(password: &str) -> Result<(), PasswordError> {
    let length = password.chars().count();
    if LENGTH.contains(&length) { Ok(()) } else { Err(PasswordError::Length(length)) }
}

fn check_guessable(password: &str, name: &str, shop: &str) -> Result<(), PasswordError> {
    if contains_name(password, name) {
        return Err(PasswordError::Name);
    }
    find_weakness(password, name, shop).map_or(Ok(()), |weakness| Err(PasswordError::Guessable(weakness)))
}

impl Turn {
    /// The hash of a new password, unless it is easy to guess.
    pub(super) async fn hash(self, password: &str, name: &str, shop: &str) -> Result<String, PasswordError> {
        let [password, name, shop] = [password, name, shop].map(ToOwned::to_owned);
        self.run(move || check_guessable(&password, &name, &shop).map(|()| hash(&password))).await
    }

    /// Without a hash the answer is false, after the same work.
    pub(super) async fn verify(self, password: &str, hash: Option<String>) -> bool {
        let password = password.to_owned();
        self.run(move || verify(&password, hash.as_deref())).await
    }
}

fn hash(password: &str) -> String {
    let hash = Argon2::default().hash_password(password.as_bytes());
    // Dozens of threads take turns, and each would keep the memory for later.
    return_memory_of_thread();
    hash.expect("a password of a valid length has a hash").to_string()
}

fn verify(password: &str, stored: Option<&str>) -> bool {
    let Some(stored) = stored.and_then(|text| PasswordHash::new(text).ok()) else {
        hash(password);
        return false;
    };
    let fits = Argon2::default().verify_password(password.as_bytes(), &stored).is_ok();
    return_memory_of_thread();
    fits
}

#[cfg(test)]
mod tests {
    use crate::people::attempts::{Attempts, Caller};

    /// Which password fits is asked of signing in.
    #[tokio::test]
    async fn a_hash_takes_memory_and_time_and_a_damaged_one_fits_nothing() {
        let attempts = Attempts::default();
        let turn = async || attempts.turn(&Caller::Known("ada".into())).await.unwrap();
        let hash = turn().await.hash("correct horse battery", "Ada", "").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(!turn().await.verify("another password", Some("damaged".to_owned())).await);
    }
}
