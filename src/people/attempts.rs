//! How often each caller may try a password, and how many passwords are computed at a time.
//!
//! Hashing a password costs 19 MiB and tens of milliseconds of a core. So one hash of strangers and one of known devices run at
//! a time, some callers wait in line, and more are refused. No address has enough turns to fill the line.
//!
//! Attempts are counted by address and name together, so that a stranger's failures refuse no other address. From all
//! addresses, a name has [`NAME`].

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use super::{
    SignInError,
    rate::{Rate, Rates, network},
};

/// Callers in a line, the one whose hash is computed included. At tens of milliseconds each, the last one waits a second or two.
const PLACES: usize = 64;
/// A caller's attempts for a name.
const CALLER: Rate = Rate { burst: 5, every: Duration::from_mins(1) };
/// Attempts of all strangers for a name: nobody waits longer than a second because of the others.
const NAME: Rate = Rate { burst: 60, every: Duration::from_secs(1) };
/// Turns of an address, or of a known person.
const TURNS: Rate = Rate { burst: 16, every: Duration::from_millis(500) };

/// The line is full.
#[derive(Debug, thiserror::Error)]
#[error("too many people are signing in at this moment; try again in a second")]
pub struct QueueFull;

/// Who tries a password.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// A device that has signed in as the person of this name, or that holds a session or link of theirs.
    Known(String),
    /// Behind a proxy all strangers have one address.
    Stranger { address: Option<IpAddr>, name: String },
}

impl Caller {
    pub(super) fn stranger(address: Option<IpAddr>, name: String) -> Self {
        Self::Stranger { address: address.map(network), name }
    }

    /// Whose turns are counted together.
    fn sharing_turns(&self) -> Counted {
        match self {
            Self::Known(name) => Counted::Person(name.clone()),
            Self::Stranger { address, .. } => Counted::Address(*address),
        }
    }

    /// The counts of an attempt.
    fn counted(&self) -> impl Iterator<Item = (Counted, Rate)> {
        let of_name = match self {
            Self::Known(_) => None,
            Self::Stranger { name, .. } => Some((Counted::Name(name.clone()), NAME)),
        };
        [(Counted::Caller(self.clone()), CALLER)].into_iter().chain(of_name)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Counted {
    Person(String),
    Address(Option<IpAddr>),
    Caller(Caller),
    Name(String),
}

/// Clones share the counts and the lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    rates: Arc<Mutex<Rates<Counted>>>,
    known: Line,
    strangers: Line,
}

impl Attempts {
    /// Waits for a turn to compute a password. Dropping the future leaves the line.
    pub(super) async fn turn(&self, caller: &Caller) -> Result<Turn, SignInError> {
        let line = if matches!(caller, Caller::Known(_)) { &self.known } else { &self.strangers };
        let place = Arc::clone(&line.places).try_acquire_owned().map_err(|_| QueueFull)?;
        let counted = self.rates().take(caller.sharing_turns(), 1, TURNS, Instant::now());
        counted.map_err(SignInError::TooMany)?;
        let hash = Arc::clone(&line.hash).acquire_owned().await;
        Ok(Turn { _place: place, _hash: hash.expect("the semaphore is never closed") })
    }

    /// How long to wait before the caller's next attempt, if it must wait.
    pub(super) fn check(&self, caller: &Caller) -> Result<(), Duration> {
        let (rates, now) = (self.rates(), Instant::now());
        caller.counted().try_for_each(|(counted, rate)| rates.check(&counted, 1, rate, now))
    }

    /// Counts an attempt, or returns how long to wait before the next.
    pub(super) fn count(&self, caller: &Caller) -> Result<(), Duration> {
        let (mut rates, now) = (self.rates(), Instant::now());
        caller.counted().try_for_each(|(counted, rate)| rates.check(&counted, 1, rate, now))?;
        caller.counted().try_for_each(|(counted, rate)| rates.take(counted, 1, rate, now))
    }

    /// Drops a caller's attempts after a correct password.
    pub(super) fn forget(&self, caller: &Caller) {
        self.rates().forget(&Counted::Caller(caller.clone()));
    }

    /// Locked only to look a caller up.
    fn rates(&self) -> MutexGuard<'_, Rates<Counted>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone)]
struct Line {
    places: Arc<Semaphore>,
    hash: Arc<Semaphore>,
}

impl Default for Line {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), hash: Arc::new(Semaphore::new(1)) }
    }
}

/// The right to compute one hash.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
    _hash: OwnedSemaphorePermit,
}

impl Turn {
    /// A hash that has begun keeps its turn until it ends, even if its caller hangs up.
    pub(super) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let run = move || {
            let _until_the_end = self;
            work()
        };
        spawn_blocking(run).await.expect("hashing does not panic")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    /// A stranger with another name each time.
    fn stranger(address: u8) -> Caller {
        Caller::stranger(Some([10, 0, 0, address].into()), address.to_string())
    }

    /// Callers that hang up must not start more hashes than one at a time.
    #[tokio::test]
    async fn a_hash_keeps_its_turn_when_its_caller_hangs_up() {
        let attempts = Attempts::default();
        let (end, ended) = mpsc::channel::<()>();
        let turn = attempts.turn(&stranger(0)).await.unwrap();
        let caller = tokio::spawn(turn.run(move || ended.recv().unwrap()));
        tokio::task::yield_now().await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        let callers: Vec<Caller> = (0..64).map(stranger).collect();
        let join = |caller: usize| {
            let mut joined = Box::pin(attempts.turn(&callers[caller]));
            let answer = joined.as_mut().now_or_never();
            (joined, answer.map(|answer| answer.map(drop)))
        };
        let mut line: Vec<_> = (1..PLACES).map(join).collect();
        assert!(line.iter().all(|(_, answer)| answer.is_none()), "the hash still runs, and there are places");
        assert!(matches!(join(0).1, Some(Err(SignInError::QueueFull(_)))));
        let known = attempts.turn(&Caller::Known("ada".into())).now_or_never();
        known.expect("known devices wait for no stranger").unwrap();
        // Hanging up leaves the line.
        drop(line.pop());
        line.push(join(0));
        end.send(()).unwrap();
        for (joined, _) in line {
            joined.await.unwrap();
        }
    }
}
