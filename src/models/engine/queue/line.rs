//! Who waits, in which order, and what is going on meanwhile.

use std::{collections::VecDeque, time::Instant};

use super::{job::Job, pace::Pace};

#[derive(Debug, Default)]
pub(super) struct Line {
    /// In the order of their deadlines.
    pub(super) jobs: VecDeque<Job>,
    /// Questions in all jobs.
    pub(super) waiting: usize,
    /// Questions that are still to come of requests that were let in.
    pub(super) promised: usize,
    pub(super) closed: bool,
    /// Threads that take jobs, and those of them that wait for one.
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// Runs that are going on.
    pub(super) running: usize,
    /// Whether a further thread is opening its session.
    pub(super) opening: bool,
    pub(super) pace: Pace,
}

impl Line {
    /// Behind those that are due as soon or sooner. Were what a request asks further served in the order of
    /// asking, it would wait for everybody's whose first question ran with its own, whenever they came.
    pub(super) fn enqueue(&mut self, job: Job) {
        let due = job.due();
        let place = self.jobs.partition_point(|waiting| waiting.due() <= due);
        self.waiting += job.questions.len();
        self.jobs.insert(place, job);
    }

    /// Whether one more worker would have something to do.
    pub(super) fn overflows(&self, most: usize) -> bool {
        let enough = if self.workers == 0 { 0 } else { most };
        self.idle == 0 && self.waiting > enough && !self.opening
    }

    /// Those that wait and those that will, as far as they come before what is due then.
    pub(super) fn ahead_of(&self, due: Instant) -> usize {
        let before = self.jobs.iter().take_while(|waiting| waiting.due() <= due);
        before.map(|waiting| waiting.questions.len()).sum::<usize>() + self.promised
    }
}
