//! What waits for one method: bounded, and in the order of deadlines: what a request asks further comes before what was
//! asked after its first question.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Answer, Question};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error(
        "{waiting} questions wait for this method already and take {takes:?} at its present pace; the limit is {limit}, \
         or what takes a third of the deadline"
    )]
    Full {
        waiting: usize,
        limit: usize,
        /// How long those that wait take, at the pace of the last runs.
        takes: Duration,
        /// How long it takes until half of those that wait are answered.
        retry_after: Duration,
    },
    #[error("no answer within the deadline: {waited:?} were spent waiting for a free model")]
    Deadline { waited: Duration },
    /// The model failed on it. The log has the reason.
    #[error("the model failed: {0}")]
    Failed(String),
    /// The server of models does not answer, or not as it should. The log has the reason.
    #[error("the server of models: {0}")]
    Unreachable(String),
    #[error("the release has no method {0}")]
    NoMethod(crate::release::Method),
}

/// Questions that belong together, and where their answers go.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) questions: Vec<Question>,
    pub(super) since: Instant,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Reply, AskError>>,
}

/// After so long nobody who came later goes before a job, however much time it has.
const PATIENCE: Duration = Duration::from_secs(30);

impl Job {
    /// What jobs are ordered by.
    fn due(&self) -> Instant {
        self.deadline.min(self.since + PATIENCE)
    }
}

/// Answers, and what it took.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answers: Vec<Answer>,
    pub(super) queued: Duration,
    pub(super) inferred: Duration,
    /// Questions that were answered in the same run.
    pub(super) batch: usize,
}

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

#[derive(Debug, Default)]
struct Line {
    /// In the order of their deadlines.
    jobs: VecDeque<Job>,
    /// Questions in all jobs.
    waiting: usize,
    /// Questions that are still to come of requests that were let in.
    promised: usize,
    closed: bool,
    /// Threads that take jobs, and those of them that wait for one.
    workers: usize,
    idle: usize,
    /// Runs that are going on.
    running: usize,
    /// Whether a further thread is opening its session.
    opening: bool,
    /// Seconds that one worker took for so many questions, over the last runs: the older one is, the less it counts.
    /// Both apart, because a run of many questions says more than one of few.
    took: f64,
    answered: f64,
    runs: f64,
}

impl Line {
    /// Behind those that are due as soon or sooner. Were what a request asks further served in the order of
    /// asking, it would wait for everybody's whose first question ran with its own, whenever they came.
    fn enqueue(&mut self, job: Job) {
        let due = job.due();
        let place = self.jobs.partition_point(|waiting| waiting.due() <= due);
        self.waiting += job.questions.len();
        self.jobs.insert(place, job);
    }

    /// Whether one more worker would have something to do.
    fn overflows(&self, most: usize) -> bool {
        let enough = if self.workers == 0 { 0 } else { most };
        self.idle == 0 && self.waiting > enough && !self.opening
    }

    /// Those that wait and those that will, as far as they come before what is due then.
    fn ahead_of(&self, due: Instant) -> usize {
        let before = self.jobs.iter().take_while(|waiting| waiting.due() <= due);
        before.map(|waiting| waiting.questions.len()).sum::<usize>() + self.promised
    }

    /// How long so many take at least, at the pace of the last runs: a run of many takes longer than one of few, but not
    /// as many times as it has questions.
    fn takes(&self, expected: usize, most: usize) -> Duration {
        let took = self.took / count(self.workers.max(1));
        let by_questions = count(expected) * took / self.answered.max(f64::MIN_POSITIVE);
        let by_runs = count(expected.div_ceil(most)) * took / self.runs.max(f64::MIN_POSITIVE);
        let seconds = by_questions.min(by_runs);
        // A pace may be anything that a clock can say.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
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
        let takes = first.map_or(Duration::ZERO, |job| line.takes(line.ahead_of(job.due()), self.most));
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
                if let Some(job) = still_wanted(job) {
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
        let mut line = self.line();
        line.took = 0.8 * line.took + took.as_secs_f64();
        line.answered = 0.8 * line.answered + count(questions);
        line.runs = 0.8 * line.runs + 1.0;
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

fn still_wanted(job: Job) -> Option<Job> {
    if job.reply.is_closed() {
        return None;
    }
    let now = Instant::now();
    if now >= job.deadline {
        // Whoever left in this very moment needs no answer.
        let _ = job.reply.send(Err(AskError::Deadline { waited: now - job.since }));
        return None;
    }
    Some(job)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANEW: Asks = Asks::Anew { later: 0 };

    #[test]
    fn a_request_alone_may_be_larger_than_the_limit() {
        let queue = Arc::new(Queue::new(30, 64, 16));
        let ((first, _first), (second, _second)) = (job(1), job(2));
        let promise = queue.push(first, Asks::Anew { later: 500 }).unwrap();
        drop(queue.pop());
        queue.push(second, Asks::Anew { later: 500 }).expect("the limit is for those that wait");
        drop(promise);
        assert_eq!(queue.state().waiting, 1);
    }

    #[test]
    fn the_limit_is_for_newcomers() {
        let queue = Arc::new(Queue::new(1, 64, 16));
        let ((first, _first), (second, _second), (further, _further)) = (job(1), job(2), job(3));
        queue.push(first, ANEW).unwrap();
        assert!(matches!(queue.push(second, ANEW), Err(AskError::Full { waiting: 1, limit: 1, .. })));
        queue.push(further, Asks::Further).unwrap();
        assert_eq!(queue.state().waiting, 2);
    }

    #[test]
    fn what_a_request_asks_further_comes_before_what_came_after_it() {
        let queue = Arc::new(Queue::new(64, 64, 16));
        let begin = Instant::now();
        // Deadlines of three requests in the order of their coming.
        let due = |request: u64| begin + Duration::from_secs(5 + request);
        let jobs = [
            (20, 2, ANEW),
            (21, 2, Asks::Further),
            (30, 3, ANEW),
            (10, 1, Asks::Further),
            (11, 1, Asks::Further),
        ];
        let _answers: Vec<_> = jobs
            .into_iter()
            .map(|(blank, request, asks)| {
                let (mut jobs, answer) = job(blank);
                jobs[0].deadline = due(request);
                queue.push(jobs, asks).unwrap();
                answer
            })
            .collect();
        let run = queue.pop().unwrap();
        let taken: Vec<_> = run.jobs.iter().map(|job| job.questions[0].blank).collect();
        assert_eq!(taken, [10, 11, 20, 21, 30]);
    }

    #[test]
    fn who_has_more_time_waits_but_not_for_ever() {
        let queue = Arc::new(Queue::new(1000, 1, 1));
        let now = Instant::now();
        queue.ran(1, Duration::from_millis(10));
        let ask = |blank: usize, since: Instant, time: Duration| {
            let (mut jobs, answer) = job(blank);
            (jobs[0].since, jobs[0].deadline) = (since, since + time);
            queue.push(jobs, ANEW).map(|_| answer)
        };
        let minute = Duration::from_mins(1);
        let slow: Vec<_> = (0..500).map(|blank| ask(blank, now, minute).unwrap()).collect();
        // Five seconds' work waits, but behind it.
        let soon = ask(1000, now, Duration::from_secs(5)).expect("it comes first");
        let late = ask(2000, now + PATIENCE, Duration::from_secs(5)).expect("it has to wait");
        let order: Vec<_> = (0..502).map(|_| queue.pop().unwrap().jobs[0].questions[0].blank).collect();
        assert_eq!((order[0], order[1], order[501]), (1000, 0, 2000));
        drop((slow, soon, late));
    }

    #[test]
    fn what_could_not_be_answered_in_time_is_refused_at_once() {
        let queue = Arc::new(Queue::new(1000, 1, 1));
        let ((first, _first), (second, _second), (third, _third)) = (job(1), job(2), job(3));
        queue.ran(1, Duration::from_mins(2));
        queue.push(first, ANEW).expect("nobody waits, whatever the pace was");
        let Err(AskError::Full { takes, retry_after, .. }) = queue.push(second, ANEW) else { panic!() };
        assert_eq!((takes, retry_after), (Duration::from_mins(2), Duration::from_mins(1)));
        queue.ran(1000, Duration::from_millis(1));
        queue.push(third, ANEW).expect("a first slow run does not count for long");
    }

    #[test]
    fn what_is_promised_counts_until_it_is_asked() {
        let queue = Arc::new(Queue::new(1000, 1, 1));
        let ((first, _first), (second, _second), (third, _third)) = (job(1), job(2), job(3));
        queue.ran(1, Duration::from_secs(2));
        let mut promise = queue.push(first, Asks::Anew { later: 30 }).unwrap();
        drop(queue.pop());
        let refused = queue.push(second, ANEW);
        assert!(matches!(refused, Err(AskError::Full { waiting: 0, .. })), "they take a minute: {refused:?}");
        promise.keep(25);
        queue.push(third, ANEW).expect("five are left, which take ten seconds");
    }

    fn job(blank: usize) -> (Vec<Job>, oneshot::Receiver<Result<Reply, AskError>>) {
        let questions = vec![Question::new(vec![0], blank, Vec::new().into())];
        let (reply, answer) = oneshot::channel();
        let now = Instant::now();
        (vec![Job { questions, since: now, deadline: now + Duration::from_mins(1), reply }], answer)
    }
}
