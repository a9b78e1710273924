//! The bounded queue of one method.
//!
//! Requests put questions in and wait for a [`Reply`]; worker threads take them out in [`Run`]s. Jobs are ordered by
//! deadline, so a request's follow-up questions come before requests that arrived after its first question. A new
//! request is admitted only if the queue has room and time for it, counting the follow-up questions of admitted
//! requests.
//!
//! Must not know models or metrics.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use atelier_core::domain::Method;
use tokio::{sync::oneshot, time::timeout_at};

use super::{Answer, Question};

/// A job is not overtaken by jobs that arrive this much later, even if they are due sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the queue decides whether to take questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new request, which will ask `follow_ups` more questions. It is rejected if the queue has no room for its
    /// questions, or if waiting would take more than a third of the time until its deadline. Its follow-up questions
    /// are reserved.
    New { follow_ups: usize },
    /// A caller that can wait for as long as it takes. It is rejected only if the queue has no room.
    Patient,
    /// A request of a batch that `Queue::reserve` admitted. It is always taken, and its follow-up questions are reserved.
    OfBatch { follow_ups: usize },
    /// More questions of an admitted request. They are always taken: rejecting them would waste the work already done,
    /// and under overload most runs would be for requests that fail in the end.
    FollowUp,
}

/// The answers to questions asked together, and what they took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// In the order of the questions.
    pub answers: Vec<Answer>,
    /// The longest that any of the questions waited for a free model.
    pub queued: Duration,
    /// The longest run that answered any of them.
    pub inferred: Duration,
    /// The number of questions in the largest of these runs.
    pub batch: usize,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error(
        "the queue of this method is full: {waiting} outfits are waiting, which takes about {takes:.1?}; the limit is \
         {limit} outfits, and a request may spend a third of its deadline waiting"
    )]
    Full {
        waiting: usize,
        limit: usize,
        /// How long the waiting questions take at the pace of the last runs.
        takes: Duration,
        /// How long it takes to answer half of them.
        retry_after: Duration,
    },
    #[error("no answer before the deadline: the request waited {waited:.1?} for a free model")]
    Deadline { waited: Duration },
    /// The model failed. The log has the reason.
    #[error("the model failed: {0}")]
    Failed(String),
    /// The model server does not answer, or answers with an error. The log has the reason.
    #[error("the model server failed: {0}")]
    Unreachable(String),
    #[error("the release has no method {0}")]
    NoMethod(Method),
}

/// The load of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    pub waiting: usize,
    pub limit: usize,
    /// Threads that take jobs from it.
    pub workers: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    /// Held while jobs are added or taken, never while a model runs.
    inner: Mutex<Inner>,
    /// Notified when a job arrives or the queue closes.
    arrived: Condvar,
    /// Notified when there is work for one more worker, or the queue closes.
    overflowed: Condvar,
    /// Most questions that wait.
    limit: usize,
    /// Most questions in one run.
    batch: usize,
    parallel: Parallel,
}

/// When a worker starts a run while others are in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parallel {
    /// While fewer runs are in progress, there are cores for one more. Beyond that it would take the core of
    /// another thread, and starts for a full batch only.
    pub(super) runs: usize,
    /// The fewest questions of a further run.
    pub(super) least: usize,
}

/// Guarded by the queue's lock.
#[derive(Debug, Default)]
struct Inner {
    /// Ordered by [`Job::due`].
    jobs: VecDeque<Job>,
    /// Questions in all jobs.
    waiting: usize,
    /// Follow-up questions that admitted requests have not asked yet.
    reserved: usize,
    /// Questions that admitted batches have not asked yet. They come later than what a new request asks, so only other
    /// batches wait for them.
    batched: usize,
    closed: bool,
    /// Threads that take jobs, and how many of them wait for one.
    workers: usize,
    idle: usize,
    /// Runs in progress.
    running: usize,
    /// Whether another worker is opening its session.
    opening: bool,
    pace: Pace,
}

impl Queue {
    pub(super) fn new(limit: usize, batch: usize, parallel: Parallel) -> Self {
        let batch = batch.max(1);
        let (inner, arrived, overflowed) = (Mutex::default(), Condvar::new(), Condvar::new());
        Self { inner, arrived, overflowed, limit, batch, parallel }
    }

    /// Waits for the answers. If the future is dropped, questions that still wait are skipped.
    pub(super) async fn ask(
        self: &Arc<Self>,
        questions: Vec<Question>,
        admission: Admission,
        deadline: Instant,
    ) -> Result<(Reply, Reservation), AskError> {
        let since = Instant::now();
        let (mut jobs, mut replies) = (Vec::new(), Vec::new());
        let mut questions = questions.into_iter().peekable();
        while questions.peek().is_some() {
            let (reply, receiver) = oneshot::channel();
            let questions = questions.by_ref().take(self.batch).collect();
            jobs.push(Job { questions, caller: Caller { since, deadline, reply } });
            replies.push(receiver);
        }
        let reservation = self.push(jobs, admission)?;
        let mut joined = Reply::default();
        for reply in replies {
            let in_time = timeout_at(deadline.into(), reply).await;
            let in_time = in_time.map_err(|_| AskError::Deadline { waited: since.elapsed() })?;
            let reply = in_time.unwrap_or_else(|_| Err(AskError::Failed("its thread ended".into())))?;
            joined.answers.extend(reply.answers);
            joined.queued = joined.queued.max(reply.queued);
            joined.inferred = joined.inferred.max(reply.inferred);
            joined.batch = joined.batch.max(reply.batch);
        }
        Ok((joined, reservation))
    }

    /// Admits a batch of requests, of which all are answered or none, by the questions that they will ask. A batch that is
    /// larger than half of the queue counts as half: it is not asked all at once.
    pub(super) fn reserve(
        self: &Arc<Self>,
        questions: usize,
        deadline: Instant,
    ) -> Result<Reservation, AskError> {
        let questions = questions.min(self.limit / 2);
        let mut inner = self.lock();
        let waiting = inner.waiting + inner.reserved + inner.batched;
        let takes = inner.pace.takes(waiting, inner.workers, self.batch);
        let time = deadline.saturating_duration_since(Instant::now());
        if waiting > 0 && (waiting + questions > self.limit || takes > time / 3) {
            return Err(self.full(waiting, takes));
        }
        inner.batched += questions;
        Ok(Reservation { questions, of_batch: true, queue: Arc::clone(self) })
    }

    fn full(&self, waiting: usize, takes: Duration) -> AskError {
        let retry_after = (takes / 2).clamp(Duration::from_millis(1), Duration::from_mins(1));
        AskError::Full { waiting, limit: self.limit, takes, retry_after }
    }

    /// Takes all of the jobs or none.
    fn push(self: &Arc<Self>, jobs: Vec<Job>, admission: Admission) -> Result<Reservation, AskError> {
        let mut inner = self.lock();
        let questions: usize = jobs.iter().map(|job| job.questions.len()).sum();
        let follow_ups = match admission {
            Admission::New { follow_ups } => {
                self.admit(&inner, questions, jobs.first())?;
                follow_ups
            }
            Admission::Patient => {
                self.admit(&inner, questions, None)?;
                0
            }
            Admission::OfBatch { follow_ups } => follow_ups,
            Admission::FollowUp => 0,
        };
        for job in jobs {
            inner.insert(job);
        }
        inner.reserved += follow_ups;
        self.wake(inner);
        Ok(Reservation { questions: follow_ups, of_batch: false, queue: Arc::clone(self) })
    }

    /// Checks room and, if the first job is given, time. A request that would wait for more than a third of its time is
    /// rejected now, while its caller can still go elsewhere. The other two thirds allow for a slower pace: clients
    /// that flood a service often run on its machine.
    fn admit(&self, inner: &Inner, questions: usize, first: Option<&Job>) -> Result<(), AskError> {
        let waiting = inner.waiting;
        let takes = first.map_or(Duration::ZERO, |job| {
            inner.pace.takes(inner.ahead_of(job.due()), inner.workers, self.batch)
        });
        let time =
            first.map_or(Duration::MAX, |job| job.caller.deadline.saturating_duration_since(Instant::now()));
        // One request may exceed the limit, or be too slow at the measured pace. It is admitted if nothing else waits,
        // because otherwise it would be rejected every time.
        if waiting + inner.reserved == 0 || (waiting + questions <= self.limit && takes <= time / 3) {
            return Ok(());
        }
        Err(self.full(waiting, takes))
    }

    /// Waits for jobs and takes as many as fit in one run. Skips jobs whose callers are gone or whose deadline has
    /// passed. Returns None once the queue is closed and empty.
    pub(super) fn pop(&self) -> Option<Run<'_>> {
        let (mut inner, mut had_pause) = (self.lock(), false);
        loop {
            let mut taken = Vec::new();
            let mut questions = 0;
            let starts = inner.closed || self.starts_run(&inner);
            while let Some(job) = inner.jobs.front().filter(|_| starts) {
                let count = job.questions.len();
                if !taken.is_empty() && questions + count > self.batch {
                    break;
                }
                let job = inner.jobs.pop_front().expect("the front was just checked");
                inner.waiting -= count;
                if let Some(job) = job.if_wanted() {
                    questions += count;
                    taken.push(job);
                }
            }
            if !taken.is_empty() {
                inner.running += 1;
                self.wake(inner);
                return Some(Run::new(self, taken, had_pause));
            }
            if inner.closed && inner.jobs.is_empty() {
                return None;
            }
            had_pause = true;
            inner.idle += 1;
            inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.idle -= 1;
        }
    }

    /// Whether a free worker starts a run now.
    fn starts_run(&self, inner: &Inner) -> bool {
        let least = match inner.running {
            0 => 1,
            running if running < self.parallel.runs => self.parallel.least,
            _ => self.batch,
        };
        inner.waiting >= least.clamp(1, self.batch)
    }

    /// Releases the lock and notifies the threads that have something to do.
    fn wake(&self, inner: MutexGuard<'_, Inner>) {
        let (starts, overflows) = (self.starts_run(&inner), inner.overflows(self.batch));
        drop(inner);
        if starts {
            self.arrived.notify_one();
        }
        if overflows {
            self.overflowed.notify_one();
        }
    }

    /// Counts one more thread that takes jobs.
    pub(super) fn add_worker(&self) {
        let mut inner = self.lock();
        inner.workers += 1;
        inner.opening = false;
        self.wake(inner);
    }

    /// Waits until more questions wait than one run takes, all workers are busy, and no other worker is opening its
    /// session. The caller then opens one. Returns false once the queue is closed.
    pub(super) fn wait_for_overflow(&self) -> bool {
        let mut inner = self.lock();
        while !inner.closed {
            if inner.overflows(self.batch) {
                inner.opening = true;
                return true;
            }
            inner = self.overflowed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// Records that a worker could not open its session after [`wait_for_overflow`](Self::wait_for_overflow).
    pub(super) fn opening_failed(&self) {
        self.lock().opening = false;
    }

    /// Workers answer what is waiting and end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
        self.overflowed.notify_all();
    }

    pub(super) fn state(&self) -> QueueState {
        let inner = self.lock();
        QueueState { waiting: inner.waiting, limit: self.limit, workers: inner.workers }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Inserts a job behind those that are due at the same time or sooner. In the order of arrival, follow-up questions
    /// would wait for every request that arrived during the first run.
    fn insert(&mut self, job: Job) {
        let due = job.due();
        let position = self.jobs.partition_point(|waiting| waiting.due() <= due);
        self.waiting += job.questions.len();
        self.jobs.insert(position, job);
    }

    /// Whether one more worker would have something to do.
    fn overflows(&self, batch: usize) -> bool {
        let enough = if self.workers == 0 { 0 } else { batch };
        self.idle == 0 && self.waiting > enough && !self.opening
    }

    /// The number of questions that are answered before a job that is due then, reserved ones included.
    fn ahead_of(&self, due: Instant) -> usize {
        let before = self.jobs.iter().take_while(|waiting| waiting.due() <= due);
        before.map(|waiting| waiting.questions.len()).sum::<usize>() + self.reserved
    }
}

/// The follow-up questions of an admitted request, or the questions of an admitted batch. Until they are asked or the reservation is dropped, they count when
/// the wait of new requests is estimated. Otherwise requests would be admitted for whose later questions there is no
/// time.
#[derive(Debug)]
pub struct Reservation {
    questions: usize,
    of_batch: bool,
    queue: Arc<Queue>,
}

impl Reservation {
    /// Stops counting questions that are about to be asked.
    pub fn spend(&mut self, questions: usize) {
        let spent = questions.min(self.questions);
        self.questions -= spent;
        let mut inner = self.queue.lock();
        *(if self.of_batch { &mut inner.batched } else { &mut inner.reserved }) -= spent;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.spend(self.questions);
    }
}

/// Questions that are answered in one run, and their caller.
#[derive(Debug)]
struct Job {
    questions: Vec<Question>,
    caller: Caller,
}

#[derive(Debug)]
struct Caller {
    since: Instant,
    deadline: Instant,
    reply: oneshot::Sender<Result<Reply, AskError>>,
}

impl Job {
    /// Jobs are ordered by this time.
    fn due(&self) -> Instant {
        self.caller.deadline.min(self.caller.since + PATIENCE)
    }

    /// The job, unless its caller is gone or its deadline has passed. In the latter case the caller is told.
    fn if_wanted(self) -> Option<Self> {
        if self.caller.reply.is_closed() {
            return None;
        }
        let now = Instant::now();
        if now >= self.caller.deadline {
            let waited = now - self.caller.since;
            self.caller.send(Err(AskError::Deadline { waited }));
            return None;
        }
        Some(self)
    }
}

impl Caller {
    fn send(self, reply: Result<Reply, AskError>) {
        // A caller that has left needs no answer.
        let _ = self.reply.send(reply);
    }
}

/// Jobs that one worker answers in one run. Dropping it ends the run, even if the worker panics.
#[derive(Debug)]
pub(super) struct Run<'a> {
    queue: &'a Queue,
    pub(super) began: Instant,
    /// Whether the worker had nothing to do before.
    pub(super) had_pause: bool,
    pub(super) questions: Vec<Question>,
    /// Each with the number of its questions.
    callers: Vec<(usize, Caller)>,
}

impl<'a> Run<'a> {
    fn new(queue: &'a Queue, jobs: Vec<Job>, had_pause: bool) -> Self {
        let began = Instant::now();
        let (mut questions, mut callers) = (Vec::new(), Vec::with_capacity(jobs.len()));
        for job in jobs {
            callers.push((job.questions.len(), job.caller));
            questions.extend(job.questions);
        }
        Self { queue, began, had_pause, questions, callers }
    }

    /// The latest deadline of its callers. The others learn of theirs in [`Queue::ask`].
    pub(super) fn deadline(&self) -> Instant {
        self.callers.iter().map(|(_, caller)| caller.deadline).max().unwrap_or(self.began)
    }

    /// How long each job waited for the run.
    pub(super) fn waits(&self) -> impl Iterator<Item = Duration> {
        self.callers.iter().map(|(_, caller)| self.began - caller.since)
    }

    /// Sends the callers their answers, which are in the order of the questions. A caller with a question that failed
    /// gets the error instead.
    pub(super) fn finish(
        mut self,
        answers: impl IntoIterator<Item = Result<Answer, AskError>>,
        inferred: Duration,
    ) {
        let batch = self.questions.len();
        self.queue.lock().pace.record(batch, inferred);
        let mut answers = answers.into_iter();
        for (count, caller) in std::mem::take(&mut self.callers) {
            let own: Vec<_> = answers.by_ref().take(count).collect();
            let own: Result<Vec<_>, _> = own.into_iter().collect();
            let queued = self.began - caller.since;
            caller.send(own.map(|answers| Reply { answers, queued, inferred, batch }));
        }
    }

    /// Sends the callers an error, which may depend on how long they waited.
    pub(super) fn fail(mut self, error: impl Fn(Duration) -> AskError, took: Duration) {
        self.queue.lock().pace.record(self.questions.len(), took);
        for (_, caller) in std::mem::take(&mut self.callers) {
            let waited = self.began - caller.since;
            caller.send(Err(error(waited)));
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let mut inner = self.queue.lock();
        inner.running -= 1;
        // A worker that goes on takes the next jobs itself. If it ends, another has to be woken.
        if std::thread::panicking() {
            inner.workers -= 1;
            self.queue.wake(inner);
        }
    }
}

/// How fast one worker has been in its last runs: total seconds, questions and runs, in which older runs count less.
/// They are summed separately because a run of many questions tells more than a run of few.
#[derive(Debug, Default)]
struct Pace {
    seconds: f64,
    questions: f64,
    runs: f64,
}

impl Pace {
    fn record(&mut self, questions: usize, took: Duration) {
        self.seconds = 0.8 * self.seconds + took.as_secs_f64();
        self.questions = 0.8 * self.questions + to_f64(questions);
        self.runs = 0.8 * self.runs + 1.0;
    }

    /// The least time that the workers need for the questions, in runs of at most `batch`. A run of many questions
    /// takes longer than a run of few, but its time does not grow in proportion.
    fn takes(&self, questions: usize, workers: usize, batch: usize) -> Duration {
        let seconds = self.seconds / to_f64(workers.max(1));
        let by_questions = to_f64(questions) * seconds / self.questions.max(f64::MIN_POSITIVE);
        let by_runs = to_f64(questions.div_ceil(batch)) * seconds / self.runs.max(f64::MIN_POSITIVE);
        // The pace may be anything that a clock can show.
        Duration::try_from_secs_f64(by_questions.min(by_runs)).unwrap_or(Duration::MAX)
    }
}

fn to_f64(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
