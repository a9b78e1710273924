//! What waits for one method: bounded, and in the order of deadlines: what a request asks further comes before what was
//! asked after its first question.

mod job;
mod line;
mod pace;

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

pub use self::job::AskError;
pub(in crate::models::engine) use self::job::{Job, Reply};
use self::line::Line;

/// How a method's queue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    pub waiting: usize,
    pub limit: usize,
    /// Threads that take from it.
    pub workers: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    /// Guards the line and its count together; held for pushes and pops only, never while a model
    /// runs.
    line: Mutex<Line>,
    /// Told when a job arrives or the queue closes.
    arrived: Condvar,
    /// Told when there is work for one more worker, or the queue closes.
    overflowed: Condvar,
    limit: usize,
    /// Most questions of one run.
    most: usize,
    /// While one worker runs, another begins only with so many.
    worth_a_run: usize,
}

/// What one worker took. While it is there, the run is going on, even where it panics.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) jobs: Vec<Job>,
    queue: &'a Queue,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let mut line = self.queue.line();
        line.running -= 1;
        // A worker that goes on takes what waits itself; of one that ends another has to hear.
        if std::thread::panicking() {
            line.workers -= 1;
            self.queue.wake(line);
        }
    }
}

/// Questions that a request which was let in will ask once it has its first answers. Until it is dropped they count
/// like those that wait: or requests would be let in whose second half nobody has time for.
#[derive(Debug)]
pub struct Promise {
    questions: usize,
    queue: Arc<Queue>,
}

impl Promise {
    /// So many of them are asked now.
    pub(crate) fn keep(&mut self, questions: usize) {
        let kept = questions.min(self.questions);
        self.questions -= kept;
        self.queue.line().promised -= kept;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.keep(self.questions);
    }
}

/// Whose jobs they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// A request's that comes anew, and will ask so many further questions.
    Anew { later: usize },
    /// Somebody's who waits for as long as it takes.
    Patiently,
    /// One's that was let in before.
    Further,
}

impl Queue {
    pub(super) fn new(limit: usize, most: usize, worth_a_run: usize) -> Self {
        let (line, arrived, overflowed) = (Mutex::default(), Condvar::new(), Condvar::new());
        Self { line, arrived, overflowed, limit, most, worth_a_run: worth_a_run.clamp(1, most) }
    }

    /// All of these jobs or none: what would wait for a third of its time is better refused now, while its caller can
    /// go elsewhere. Two thirds are for a pace that falls: those who flood a service often share its machine. Jobs of a
    /// request that was let in before are always taken: it has waited already.
    pub(super) fn push(self: &Arc<Self>, jobs: Vec<Job>, asks: Asks) -> Result<Promise, AskError> {
        let mut line = self.line();
        let asked: usize = jobs.iter().map(|job| job.questions.len()).sum();
        let later = match asks {
            Asks::Anew { later } => {
                self.let_in(&line, asked, jobs.first())?;
                later
            }
            Asks::Patiently => {
                self.let_in(&line, asked, None)?;
                0
            }
            Asks::Further => 0,
        };
        for job in jobs {
            line.enqueue(job);
        }
        line.promised += later;
        self.wake(line);
        Ok(Promise { questions: later, queue: Arc::clone(self) })
    }

    /// Whether a worker that is free begins now.
    fn begins(&self, line: &Line) -> bool {
        line.waiting >= if line.running == 0 { 1 } else { self.worth_a_run }
    }

    /// Who has something to do now is told, once the line is free.
    fn wake(&self, line: MutexGuard<'_, Line>) {
        let (begins, overflows) = (self.begins(&line), line.overflows(self.most));
        drop(line);
        if begins {
            self.arrived.notify_one();
        }
        if overflows {
            self.overflowed.notify_one();
        }
    }

    /// With its first job, where its time counts.
    fn let_in(&self, line: &Line, asked: usize, first: Option<&Job>) -> Result<(), AskError> {
        let waiting = line.waiting;
        let takes = first
            .map_or(Duration::ZERO, |job| line.pace.takes(line.ahead_of(job.due()), line.workers, self.most));
        let time = first.map_or(Duration::MAX, |job| job.deadline.saturating_duration_since(Instant::now()));
        // One request may be larger than the limit; alone it is let in, or it would be refused for ever. So it is
        // where the pace was wrong.
        if waiting + line.promised == 0 || (waiting + asked <= self.limit && takes <= time / 3) {
            return Ok(());
        }
        let retry_after = (takes / 2).clamp(Duration::from_millis(1), Duration::from_mins(1));
        Err(AskError::Full { waiting, limit: self.limit, takes, retry_after })
    }

    /// One more thread takes jobs from now on.
    pub(super) fn join(&self) {
        let mut line = self.line();
        line.workers += 1;
        line.opening = false;
        self.wake(line);
    }

    /// A further thread could not open its session.
    pub(super) fn gave_up(&self) {
        self.line().opening = false;
    }

    /// Waits until more questions wait than one run takes while all workers are busy and no other is about to
    /// join them. False once the queue is closed.
    pub(super) fn wait_for_overflow(&self) -> bool {
        let mut line = self.line();
        while !line.closed {
            if line.overflows(self.most) {
                line.opening = true;
                return true;
            }
            line = self.overflowed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// Waits for jobs and takes as many as fit one run, leaving out those whose callers are gone or whose deadline
    /// has passed. None once the queue is closed and empty.
    pub(super) fn pop(&self) -> Option<Run<'_>> {
        let mut line = self.line();
        loop {
            let mut taken = Vec::new();
            let mut questions = 0;
            let begins = line.closed || self.begins(&line);
            while let Some(job) = line.jobs.front().filter(|_| begins) {
                let asked = job.questions.len();
                if !taken.is_empty() && questions + asked > self.most {
                    break;
                }
                let job = line.jobs.pop_front().expect("it was looked at; this is a bug");
                line.waiting -= asked;
                if let Some(job) = job.still_wanted() {
                    questions += asked;
                    taken.push(job);
                }
            }
            if !taken.is_empty() {
                line.running += 1;
                self.wake(line);
                return Some(Run { jobs: taken, queue: self });
            }
            if line.closed && line.jobs.is_empty() {
                return None;
            }
            line.idle += 1;
            line = self.arrived.wait(line).unwrap_or_else(PoisonError::into_inner);
            line.idle -= 1;
        }
    }

    /// A run of so many questions took so long.
    pub(super) fn ran(&self, questions: usize, took: Duration) {
        self.line().pace.ran(questions, took);
    }

    /// Workers answer what waits and end.
    pub(super) fn close(&self) {
        self.line().closed = true;
        self.arrived.notify_all();
        self.overflowed.notify_all();
    }

    pub(super) fn state(&self) -> QueueState {
        let line = self.line();
        QueueState { waiting: line.waiting, limit: self.limit, workers: line.workers }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
