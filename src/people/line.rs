//! Whose password is computed next.
//!
//! Hashing a stranger's password costs 19 MiB and tens of milliseconds of a core. So two hashes run at a time, some
//! callers wait in line, and more are refused. No caller can keep the others out. A free turn goes first to callers who
//! have none, then to known devices, then by order of arrival. A caller who finds the line full takes the last place of
//! the caller who has the most, if those are more than their own.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task::spawn_blocking};

use super::rate::network;

/// Hashes that run at a time.
const CONCURRENT: usize = 2;
/// Callers that wait for a turn. At tens of milliseconds each, the last one waits a second or two.
const WAITING: usize = 64;

/// The line is full.
#[derive(Debug, thiserror::Error)]
#[error("too many people are signing in at this moment; try again in a second")]
pub struct QueueFull;

/// Who wants a password computed.
#[derive(Debug, PartialEq, Eq)]
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

    fn is_stranger(&self) -> bool {
        matches!(self, Self::Stranger { .. })
    }

    /// Whether both share their turns and places: strangers of one address, or with one name from many addresses.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => one == other,
            (Self::Stranger { address, name }, Self::Stranger { address: other, name: other_name }) => {
                address == other || name == other_name
            }
            _ => false,
        }
    }
}

/// Clones share the line.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    computing: Vec<Arc<Caller>>,
    /// In the order of arrival.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    caller: Arc<Caller>,
    /// Dropped without a turn if the place is taken.
    turn: oneshot::Sender<Turn>,
}

impl Line {
    /// Waits in line. Dropping the future leaves it.
    pub(super) async fn turn(&self, caller: Caller) -> Result<Turn, QueueFull> {
        let (sender, turn) = oneshot::channel();
        self.lock().join(Waiting { caller: Arc::new(caller), turn: sender })?;
        self.advance();
        turn.await.map_err(|_| QueueFull)
    }

    /// Gives the free turns away.
    fn advance(&self) {
        loop {
            let Some(Waiting { caller, turn }) = self.lock().call_next() else { return };
            // If the caller has just left, the turn is dropped, which calls the next.
            let _ = turn.send(Turn { line: self.clone(), caller });
        }
    }

    /// Locked only to look through the line.
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn join(&mut self, newcomer: Waiting) -> Result<(), QueueFull> {
        self.forget_gone();
        if self.waiting.len() >= WAITING {
            let rank = |caller: &Caller, more: usize| {
                let alike = self.waiting.iter().filter(|waiting| waiting.caller.is_like(caller));
                (alike.count() + more, caller.is_stranger())
            };
            let ranks = self.waiting.iter().map(|waiting| rank(&waiting.caller, 0)).enumerate();
            let (last, most) = ranks.max_by_key(|(_, rank)| *rank).expect("the line is full; this is a bug");
            if most <= rank(&newcomer.caller, 1) {
                return Err(QueueFull);
            }
            self.waiting.remove(last);
        }
        self.waiting.push(newcomer);
        Ok(())
    }

    fn call_next(&mut self) -> Option<Waiting> {
        self.forget_gone();
        if self.computing.len() >= CONCURRENT {
            return None;
        }
        let turns = |caller: &Caller| self.computing.iter().filter(|other| other.is_like(caller)).count();
        let order = |waiting: &Waiting| (turns(&waiting.caller), waiting.caller.is_stranger());
        let next = (0..self.waiting.len()).min_by_key(|place| order(&self.waiting[*place]))?;
        let next = self.waiting.remove(next);
        self.computing.push(Arc::clone(&next.caller));
        Some(next)
    }

    fn forget_gone(&mut self) {
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
    }
}

/// The right to compute one hash.
#[derive(Debug)]
pub(super) struct Turn {
    line: Line,
    caller: Arc<Caller>,
}

impl Turn {
    /// A hash that has begun keeps its turn until it ends, even if its caller hangs up.
    pub(super) async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let run = move || {
            let _until_the_end = self;
            work()
        };
        spawn_blocking(run).await.expect("hashing does not panic; this is a bug")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.line.lock().computing.retain(|caller| !Arc::ptr_eq(caller, &self.caller));
        self.line.advance();
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::Pin, sync::mpsc};

    use futures_util::FutureExt;

    use super::*;

    type Joined<'a> = Pin<Box<dyn Future<Output = Result<Turn, QueueFull>> + 'a>>;

    /// A stranger with another name each time.
    fn stranger(address: u8, number: usize) -> Caller {
        Caller::stranger(Some([127, 0, 0, address].into()), number.to_string())
    }

    /// A caller who has to wait.
    fn join(line: &Line, caller: Caller) -> Joined<'_> {
        let mut joined: Joined<'_> = Box::pin(line.turn(caller));
        assert!(joined.as_mut().now_or_never().is_none(), "there is a place in the line and no turn");
        joined
    }

    fn is_full(line: &Line, caller: Caller) -> bool {
        line.turn(caller).now_or_never().is_some_and(|answer| answer.is_err())
    }

    /// Callers that hang up must not start more hashes than two at a time.
    #[tokio::test]
    async fn a_hash_keeps_its_turn_when_its_caller_hangs_up() {
        let line = Line::default();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        for number in 0..CONCURRENT {
            let (turn, ended) = (line.turn(stranger(1, number)).await.unwrap(), Arc::clone(&ended));
            let caller = tokio::spawn(turn.run(move || ended.lock().unwrap().recv().unwrap()));
            tokio::task::yield_now().await;
            caller.abort();
            assert!(caller.await.unwrap_err().is_cancelled());
        }
        // Both hashes still run.
        let mut waiting: Vec<_> = (0..WAITING).map(|number| join(&line, stranger(1, 10 + number))).collect();
        assert!(is_full(&line, stranger(1, 99)));
        // Hanging up leaves the line.
        drop(waiting.pop());
        waiting.push(join(&line, stranger(1, 99)));
        (0..CONCURRENT).for_each(|_| end.send(()).unwrap());
        for joined in waiting {
            joined.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_crowd_neither_fills_the_line_nor_keeps_the_turns() {
        let line = Line::default();
        let first = line.turn(stranger(1, 0)).await.unwrap();
        let second = line.turn(stranger(1, 1)).await.unwrap();
        let mut crowd: Vec<_> = (2..WAITING + 2).map(|number| join(&line, stranger(1, number))).collect();
        assert!(is_full(&line, stranger(1, 99)), "the crowd's own line");
        // Another address and a known device have the places of the crowd's last ones.
        let other = join(&line, stranger(2, 0));
        assert!(crowd.pop().unwrap().await.is_err());
        let known = join(&line, Caller::Known("ada".into()));
        assert!(crowd.pop().unwrap().await.is_err());
        drop(first);
        let known = known.now_or_never().expect("it comes first").unwrap();
        drop(known);
        let other = other.now_or_never().expect("the crowd still has a turn").unwrap();
        drop((other, second));
        for joined in crowd {
            joined.await.unwrap();
        }
    }

    #[tokio::test]
    async fn one_name_from_many_addresses_is_a_crowd() {
        let line = Line::default();
        let attack = |number: u8| Caller::stranger(Some([10, 0, 0, number].into()), "admin".into());
        let turns = [line.turn(attack(0)).await.unwrap(), line.turn(attack(1)).await.unwrap()];
        let _crowd: Vec<_> = (2..66).map(|number| join(&line, attack(number))).collect();
        assert!(is_full(&line, attack(99)));
        let other = join(&line, stranger(9, 0));
        drop(turns);
        assert!(other.now_or_never().expect("it comes first").is_ok());
    }

    #[test]
    fn a_network_is_one_stranger() {
        let caller =
            |address: &str, name: &str| Caller::stranger(Some(address.parse().unwrap()), name.into());
        assert!(caller("2001:db8::1", "a").is_like(&caller("2001:db8::ffff:1", "b")));
        assert!(!caller("2001:db8::1", "a").is_like(&caller("2001:db8:0:1::1", "b")));
        assert!(!caller("192.0.2.1", "a").is_like(&caller("192.0.2.2", "b")));
        assert!(!Caller::Known("a".into()).is_like(&caller("192.0.2.2", "a")));
    }
}
