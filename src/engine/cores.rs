//! The cores that an engine's models compute on: runs that go on at once share them.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Clones are of the same cores.
#[derive(Debug, Clone)]
pub(super) struct Cores {
    all: usize,
    runs: Arc<AtomicUsize>,
    /// Threads that help a run's own: one less than there are cores.
    helpers: Option<Arc<ThreadPool>>,
}

impl Cores {
    /// Where no further threads are to be had, each run has the core of its own thread.
    pub(super) fn new(all: usize) -> Self {
        let pool = || {
            let name = |number| format!("model-help-{number}");
            ThreadPoolBuilder::new().num_threads(all - 1).thread_name(name).build().ok()
        };
        let helpers = if all > 1 { pool().map(Arc::new) } else { None };
        Self { all, runs: Arc::default(), helpers }
    }

    /// A run begins; it ends when what is given is dropped.
    pub(super) fn begin(&self) -> Share<'_> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Share(self)
    }
}

/// A run's share of the cores.
#[derive(Debug)]
pub(super) struct Share<'a>(&'a Cores);

impl Share<'_> {
    /// Goes over so many parts on all cores that are left for this run, each of which takes consecutive ones; what they
    /// make of them, in the parts' order.
    pub(super) fn over<T: Send>(&self, parts: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let each = parts.div_ceil(self.cores()).max(1);
        let ranges = (0..parts).step_by(each).map(|first| first..parts.min(first + each));
        let mut made: Vec<(Range<usize>, Option<T>)> = ranges.map(|range| (range, None)).collect();
        match (&self.0.helpers, &mut *made) {
            (Some(helpers), [(own, first), others @ ..]) if !others.is_empty() => {
                helpers.in_place_scope(|scope| {
                    for (range, made) in others {
                        scope.spawn(|_| *made = Some(work(range.clone())));
                    }
                    *first = Some(work(own.clone()));
                });
            }
            (_, all) => all.iter_mut().for_each(|(range, made)| *made = Some(work(range.clone()))),
        }
        made.into_iter().filter_map(|(_, made)| made).collect()
    }

    /// How many it may use now, its own thread's included: as many as each run that goes on may.
    fn cores(&self) -> usize {
        (self.0.all / self.0.runs.load(Ordering::Relaxed).max(1)).max(1)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.0.runs.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_share_them_and_each_has_one() {
        let cores = Cores::new(4);
        let first = cores.begin();
        assert_eq!(first.cores(), 4);
        let others: Vec<Share<'_>> = (0..5).map(|_| cores.begin()).collect();
        assert_eq!((first.cores(), others[4].cores()), (1, 1));
        drop(others);
        let second = cores.begin();
        assert_eq!((first.cores(), second.cores()), (2, 2));
    }

    #[test]
    fn each_part_is_gone_over_once_and_in_order() {
        for cores in 1..6 {
            let cores = Cores::new(cores);
            for parts in 0..12 {
                let made = cores.begin().over(parts, Iterator::collect::<Vec<_>>);
                assert!(made.len() <= cores.all, "{made:?}");
                assert!(made.concat().into_iter().eq(0..parts));
            }
        }
    }
}
