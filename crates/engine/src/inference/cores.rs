//! The cores that an engine's models compute on. A run computes on its own thread, and idle cores help with work that
//! can be divided. Half of the cores are left to other threads while the run's own thread has no pause. A core is idle if
//! it neither runs a model, of any method, nor helps a run.
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

/// The number of cores that this process may use, or one if it is unknown.
pub fn available_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Clones share the same cores.
#[derive(Debug, Clone)]
pub(super) struct Cores(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    total: usize,
    /// Runs in progress, and threads that help them.
    busy: AtomicUsize,
    /// One thread less than there are cores, started when first needed; None if they could not be started.
    helpers: OnceLock<Option<ThreadPool>>,
}

impl Cores {
    pub(super) fn new(total: usize) -> Self {
        Self(Arc::new(Pool { total, busy: AtomicUsize::new(0), helpers: OnceLock::new() }))
    }

    /// Starts a run, which ends when the returned value is dropped. It may use all idle cores if its thread `had_pause`.
    pub(super) fn start_run(&self, had_pause: bool) -> RunCores<'_> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        RunCores { _own: Claim(&self.0.busy, 1), had_pause, cores: self }
    }

    /// Claims the idle cores that help with `parts`, besides the caller's own. With two idle cores, three parts are one
    /// on each core, but four parts are two on each of two cores.
    fn claim_helpers(&self, parts: usize, most: usize) -> Claim<'_> {
        let Pool { total, busy, .. } = &*self.0;
        let wanted = |busy: usize| {
            let cores = (1 + total.saturating_sub(busy)).min(most);
            parts.div_ceil(parts.div_ceil(cores).max(1)).saturating_sub(1)
        };
        let before = busy.update(Ordering::Relaxed, Ordering::Relaxed, |busy| busy + wanted(busy));
        Claim(busy, wanted(before))
    }

    fn helpers(&self) -> Option<&ThreadPool> {
        let start = || {
            let name = |number| format!("model-help-{number}");
            let pool = ThreadPoolBuilder::new().num_threads(self.0.total - 1).thread_name(name).build();
            pool.inspect_err(
                |error| tracing::warn!(%error, "could not start helper threads; each model computes on one core"),
            )
            .ok()
        };
        self.0.helpers.get_or_init(start).as_ref()
    }
}

/// A number of cores that are busy until it is dropped.
#[derive(Debug)]
struct Claim<'a>(&'a AtomicUsize, usize);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// The cores of one run: its own, and idle ones.
#[derive(Debug)]
pub(super) struct RunCores<'a> {
    _own: Claim<'a>,
    had_pause: bool,
    cores: &'a Cores,
}

impl RunCores<'_> {
    /// Divides the parts among the run's own core and idle ones, `most` cores in all, in consecutive ranges, and returns
    /// the results in order. It waits for no core: idle ones have nothing else to do.
    pub(super) fn map_ranges<T: Send>(
        &self,
        parts: usize,
        most: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Vec<T> {
        let half = (self.cores.0.total / 2).max(1);
        let claim = self.cores.claim_helpers(parts, if self.had_pause { most } else { most.min(half) });
        let helpers = if claim.1 == 0 { None } else { self.cores.helpers() };
        let Some(helpers) = helpers else { return vec![work(0..parts)] };
        let each = parts.div_ceil(claim.1 + 1);
        let rest = (each..parts).step_by(each).map(|first| first..parts.min(first + each));
        let mut rest: Vec<(Range<usize>, Option<T>)> = rest.map(|range| (range, None)).collect();
        let first = helpers.in_place_scope(|scope| {
            for (range, result) in &mut rest {
                scope.spawn(|_| *result = Some(work(range.clone())));
            }
            work(0..each)
        });
        let result = |(_, result): (Range<usize>, Option<T>)| result.expect("the scope waits for all");
        std::iter::once(first).chain(rest.into_iter().map(result)).collect()
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
    fn only_idle_cores_help() {
        let cores = Cores::new(4);
        let lengths = |run: &RunCores<'_>| run.map_ranges(8, usize::MAX, |range| range.len());
        let first = cores.start_run(true);
        assert_eq!(lengths(&first), [2, 2, 2, 2]);
        assert_eq!(first.map_ranges(8, 3, |range| range.len()), [3, 3, 2], "more would not pay");
        let second = cores.start_run(true);
        assert_eq!(lengths(&first), [3, 3, 2], "the other run has a core");
        let others = [cores.start_run(true), cores.start_run(true), cores.start_run(true)];
        assert_eq!(lengths(&first), [8], "more runs than cores");
        drop(others);
        // While one run has claimed the idle cores, the other computes alone and does not wait.
        while_running(&first, 3, &[1, 1, 1], || assert_eq!(lengths(&second), [8]));
        assert_eq!(lengths(&second), [3, 3, 2]);
    }

    #[test]
    fn cores_that_are_not_needed_stay_idle() {
        let cores = Cores::new(4);
        let (first, second) = (cores.start_run(true), cores.start_run(true));
        // With three cores, the first run would not be done sooner.
        while_running(&first, 4, &[2, 2], || {
            assert_eq!(second.map_ranges(4, usize::MAX, |range| range.len()), [2, 2]);
        });
    }

    /// Acts while a run is busy on all its cores, which divide the parts into ranges of these lengths.
    fn while_running(run: &RunCores<'_>, parts: usize, lengths: &[usize], act: impl FnOnce()) {
        let (begun, done) = (&Barrier::new(lengths.len() + 1), &Barrier::new(lengths.len() + 1));
        thread::scope(|scope| {
            scope.spawn(|| {
                let found = run.map_ranges(parts, usize::MAX, |range| {
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
    fn a_run_that_panics_frees_its_cores() {
        let cores = Cores::new(4);
        for position in [0, 5] {
            let run = cores.start_run(true);
            let panics = |range: Range<usize>| assert!(!range.contains(&position), "expected");
            assert!(catch_unwind(AssertUnwindSafe(|| run.map_ranges(6, usize::MAX, panics))).is_err());
        }
        assert_eq!(cores.start_run(true).map_ranges(4, usize::MAX, |range| range.len()), [1, 1, 1, 1]);
    }
}
