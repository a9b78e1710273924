//! The cores that an engine's models compute on. A run computes on its own thread's; free ones help with work that can be
//! divided. Free is a core for which no run goes on, of any method, and which helps none.
//!
//! Must not know models, questions or answers.

use std::{
    num::NonZero,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// How many cores this process may use; one where that can't be told.
pub fn cores_here() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Clones are of the same cores.
#[derive(Debug, Clone)]
pub(super) struct Cores(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    all: usize,
    /// Runs that go on, and threads that help them.
    busy: AtomicUsize,
    /// One thread less than there are cores, from when they are first needed: none where none are to be had.
    helpers: OnceLock<Option<ThreadPool>>,
}

impl Cores {
    pub(super) fn new(all: usize) -> Self {
        Self(Arc::new(Pool { all, busy: AtomicUsize::new(0), helpers: OnceLock::new() }))
    }

    /// A run begins; it ends when what is given is dropped.
    pub(super) fn begin(&self) -> Share<'_> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Share { _own: Taken(&self.0.busy, 1), cores: self }
    }

    /// Of those that are free as many as so many parts are divided among beside the run's own: three parts on three
    /// cores are one each, four are two on each of two.
    fn take(&self, parts: usize) -> Taken<'_> {
        let Pool { all, busy, .. } = &*self.0;
        let wanted = |busy: usize| {
            let cores = 1 + all.saturating_sub(busy);
            parts.div_ceil(parts.div_ceil(cores).max(1)).saturating_sub(1)
        };
        let before = busy.update(Ordering::Relaxed, Ordering::Relaxed, |busy| busy + wanted(busy));
        Taken(busy, wanted(before))
    }

    fn helpers(&self) -> Option<&ThreadPool> {
        let start = || {
            let name = |number| format!("model-help-{number}");
            let pool = ThreadPoolBuilder::new().num_threads(self.0.all - 1).thread_name(name).build();
            pool.inspect_err(
                |error| tracing::warn!(%error, "no threads that help models: each computes alone"),
            )
            .ok()
        };
        self.0.helpers.get_or_init(start).as_ref()
    }
}

/// So many cores are taken, until it is dropped.
#[derive(Debug)]
struct Taken<'a>(&'a AtomicUsize, usize);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// A run's share of the cores: its own thread's, and what is free.
#[derive(Debug)]
pub(super) struct Share<'a> {
    _own: Taken<'a>,
    cores: &'a Cores,
}

impl Share<'_> {
    /// Goes over so many parts on the run's own core and all that are free, each of which takes consecutive ones; what
    /// they make of them, in the parts' order. Nobody waits for a core: who is counted as free has nothing else to do.
    pub(super) fn over<T: Send>(&self, parts: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let taken = self.cores.take(parts);
        let helpers = if taken.1 == 0 { None } else { self.cores.helpers() };
        let Some(helpers) = helpers else { return vec![work(0..parts)] };
        let each = parts.div_ceil(taken.1 + 1);
        let behind = (each..parts).step_by(each).map(|first| first..parts.min(first + each));
        let mut behind: Vec<(Range<usize>, Option<T>)> = behind.map(|range| (range, None)).collect();
        let first = helpers.in_place_scope(|scope| {
            for (range, made) in &mut behind {
                scope.spawn(|_| *made = Some(work(range.clone())));
            }
            work(0..each)
        });
        let made =
            |(_, made): (Range<usize>, Option<T>)| made.expect("the scope waits for all; this is a bug");
        std::iter::once(first).chain(behind.into_iter().map(made)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::Barrier,
    };

    use super::*;

    #[test]
    fn each_part_is_gone_over_once_and_in_order() {
        for all in 1..6 {
            let cores = Cores::new(all);
            for parts in 1..12 {
                let made = cores.begin().over(parts, Iterator::collect::<Vec<_>>);
                assert!(made.len() <= all, "{made:?}");
                assert!(made.concat().into_iter().eq(0..parts));
            }
        }
    }

    #[test]
    fn only_cores_that_are_free_help() {
        let cores = Cores::new(4);
        let lengths = |run: &Share<'_>| run.over(8, |range| range.len());
        let first = cores.begin();
        assert_eq!(lengths(&first), [2, 2, 2, 2]);
        let second = cores.begin();
        assert_eq!(lengths(&first), [3, 3, 2], "a core is the other's");
        let others = [cores.begin(), cores.begin(), cores.begin()];
        assert_eq!(lengths(&first), [8], "more runs than cores");
        drop(others);
        // While one has taken what was free, another computes alone, and waits for nobody.
        meanwhile(&first, 3, &[1, 1, 1], || assert_eq!(lengths(&second), [8]));
        assert_eq!(lengths(&second), [3, 3, 2]);
    }

    #[test]
    fn no_core_is_taken_that_is_not_needed() {
        let cores = Cores::new(4);
        let (first, second) = (cores.begin(), cores.begin());
        // On three cores the first would not be sooner done.
        meanwhile(&first, 4, &[2, 2], || assert_eq!(second.over(4, |range| range.len()), [2, 2]));
    }

    /// Does something while a run is on all the cores that it takes, which divide so many parts like this.
    fn meanwhile(run: &Share<'_>, parts: usize, lengths: &[usize], act: impl FnOnce()) {
        let (begun, done) = (&Barrier::new(lengths.len() + 1), &Barrier::new(lengths.len() + 1));
        thread::scope(|scope| {
            scope.spawn(|| {
                let found = run.over(parts, |range| {
                    begun.wait();
                    done.wait();
                    range.len()
                });
                assert_eq!(found, lengths);
            });
            begun.wait();
            act();
            done.wait();
        });
    }

    #[test]
    fn a_run_that_panics_leaves_the_cores_free() {
        let cores = Cores::new(4);
        for place in [0, 5] {
            let run = cores.begin();
            let panics = |range: Range<usize>| assert!(!range.contains(&place), "as it should");
            assert!(catch_unwind(AssertUnwindSafe(|| run.over(6, panics))).is_err());
        }
        assert_eq!(cores.begin().over(4, |range| range.len()), [1, 1, 1, 1]);
    }
}
