//! Passwords: argon2id with its crate's defaults, which are OWASP's, off the threads that answer requests.
//!
//! A stranger's request costs 19 MiB and tens of milliseconds of a core, so two hashes run at a time, a few callers wait
//! in a queue, and more are refused. A hash that has begun keeps its turn until it ends, even if its caller hangs up.

use std::sync::Arc;

use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use atelier_core::util::memory::return_memory_of_thread;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use super::guessable::{contains_name, find_weakness};

/// Shorter passwords can be guessed; hashing longer ones would cost too much.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=256;
/// Hashes that run at a time.
const CONCURRENT: usize = 2;
/// Callers that wait for a turn. At tens of milliseconds each, the last one waits less than a second.
const WAITING: usize = 16;

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

/// The queue is full.
#[derive(Debug, thiserror::Error)]
#[error("too many people are signing in at this moment; try again in a second")]
pub struct QueueFull;

/// Whether anyone can have this password. It tells nothing about a person.
pub(super) fn is_possible(password: &str) -> bool {
    password.chars().count() <= *LENGTH.end()
}

pub(super) fn check_length(password: &str) -> Result<(), PasswordError> {
    let length = password.chars().count();
    if LENGTH.contains(&length) { Ok(()) } else { Err(PasswordError::Length(length)) }
}

fn check_guessable(password: &str, name: &str) -> Result<(), PasswordError> {
    if contains_name(password, name) {
        return Err(PasswordError::Name);
    }
    find_weakness(password, name).map_or(Ok(()), |weakness| Err(PasswordError::Guessable(weakness)))
}

#[derive(Debug, Clone)]
pub(super) struct Hasher {
    queue: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// The right to compute one hash.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
}

impl Default for Hasher {
    fn default() -> Self {
        let queue = Arc::new(Semaphore::new(WAITING + CONCURRENT));
        Self { queue, turns: Arc::new(Semaphore::new(CONCURRENT)) }
    }
}

impl Hasher {
    /// Waits in the queue. Dropping the future leaves it.
    pub(super) async fn turn(&self) -> Result<Turn, QueueFull> {
        let place = Arc::clone(&self.queue).try_acquire_owned().map_err(|_| QueueFull)?;
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        Ok(Turn { _place: place, _turn: turn.expect("the semaphore is never closed; this is a bug") })
    }
}

impl Turn {
    /// The hash of a new password, unless it is easy to guess.
    pub(super) async fn hash(self, password: &str, name: &str) -> Result<String, PasswordError> {
        let (password, name) = (password.to_owned(), name.to_owned());
        self.run(move || check_guessable(&password, &name).map(|()| hash(&password))).await
    }

    /// Without a hash the answer is false, after the same work.
    pub(super) async fn verify(self, password: &str, hash: Option<String>) -> bool {
        let password = password.to_owned();
        self.run(move || verify(&password, hash.as_deref())).await
    }

    async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let run = move || {
            let _until_the_end = self;
            work()
        };
        spawn_blocking(run).await.expect("hashing does not panic; this is a bug")
    }
}

fn hash(password: &str) -> String {
    let hash = Argon2::default().hash_password(password.as_bytes());
    // Dozens of threads take turns, and each would keep the memory for later.
    return_memory_of_thread();
    hash.expect("a password of a valid length has a hash; this is a bug").to_string()
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
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    async fn fits(password: &str, hash: Option<&str>) -> bool {
        Hasher::default().turn().await.unwrap().verify(password, hash.map(ToOwned::to_owned)).await
    }

    #[tokio::test]
    async fn only_the_password_fits_its_hash() {
        let hash = Hasher::default().turn().await.unwrap().hash("correct horse battery", "Ada").await;
        let hash = hash.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(fits("correct horse battery", Some(&hash)).await);
        assert!(!fits("correct horse battery ", Some(&hash)).await);
        assert!(!fits("another password", None).await);
        assert!(!fits("another password", Some("damaged")).await);
        let refused = check_length("short").unwrap_err().to_string();
        assert!(refused.starts_with("a password has 12 to 256 characters, this one 5;"), "{refused}");
    }

    /// Callers that hang up must not start more hashes than two at a time.
    #[tokio::test]
    async fn a_hash_keeps_its_turn_when_its_caller_hangs_up() {
        let hasher = Hasher::default();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..CONCURRENT {
            let (turn, ended) = (hasher.turn().await.unwrap(), Arc::clone(&ended));
            let hash = turn.run(move || ended.lock().unwrap().recv().unwrap());
            let caller = tokio::spawn(hash);
            tokio::task::yield_now().await;
            caller.abort();
            assert!(caller.await.unwrap_err().is_cancelled());
        }
        let mut queue: Vec<_> = (0..WAITING).map(|_| Box::pin(hasher.turn())).collect();
        for waiting in &mut queue {
            assert!(waiting.as_mut().now_or_never().is_none(), "both hashes still run");
        }
        assert!(hasher.turn().await.is_err(), "the queue is full");
        drop(queue.pop());
        queue.push(Box::pin(hasher.turn()));
        assert!(queue[WAITING - 1].as_mut().now_or_never().is_none(), "hanging up leaves the queue");
        for _ in 0..CONCURRENT {
            end.send(()).unwrap();
        }
        for waiting in queue {
            waiting.await.unwrap();
        }
    }
}
