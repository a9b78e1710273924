//! Admission, the order of jobs, and reserved room.

use super::*;

const NEW: Admission = Admission::New { follow_ups: 0 };
const PARALLEL: Parallel = Parallel { runs: 2, least: 16 };

#[test]
fn a_further_run_needs_a_core_or_a_full_batch() {
    for (runs, least) in [(2, 16), (1, 64)] {
        let queue = Arc::new(Queue::new(100, 64, Parallel { runs, ..PARALLEL }));
        let starts = |queue: &Queue| queue.starts_run(&queue.lock());
        queue.push(job(1), NEW).unwrap();
        let run = queue.pop().expect("one question is enough while no run is in progress");
        (1..least).for_each(|_| drop(queue.push(job(1), NEW).unwrap()));
        assert!(!starts(&queue));
        queue.push(job(1), NEW).unwrap();
        assert!(starts(&queue));
        drop(run);
    }
}

#[test]
fn a_request_alone_may_be_larger_than_the_limit() {
    let queue = Arc::new(Queue::new(30, 64, PARALLEL));
    let reservation = queue.push(job(1), Admission::New { follow_ups: 500 }).unwrap();
    drop(queue.pop());
    queue.push(job(2), Admission::New { follow_ups: 500 }).expect("the limit is for waiting questions");
    drop(reservation);
    assert_eq!(queue.state().waiting, 1);
}

#[test]
fn the_limit_is_for_new_requests() {
    let queue = Arc::new(Queue::new(1, 64, PARALLEL));
    queue.push(job(1), NEW).unwrap();
    assert!(matches!(queue.push(job(2), NEW), Err(AskError::Full { waiting: 1, limit: 1, .. })));
    queue.push(job(3), Admission::FollowUp).unwrap();
    assert_eq!(queue.state().waiting, 2);
}

#[test]
fn a_batch_is_admitted_whole_or_not_at_all() {
    let queue = Arc::new(Queue::new(100, 64, PARALLEL));
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut first = queue.reserve(40, deadline).unwrap();
    let second = queue.reserve(1000, deadline).expect("it counts as half of the queue");
    assert!(matches!(queue.reserve(11, deadline), Err(AskError::Full { waiting: 90, limit: 100, .. })));
    first.spend(1);
    queue.push(job(2), Admission::OfBatch { follow_ups: 0 }).unwrap();
    queue.push(job(1), NEW).expect("requests that come singly do not wait for batches");
    assert!(queue.reserve(10, deadline).is_err());
    drop((first, second));
    queue.lock().pace.record(1, Duration::from_secs(2));
    assert!(queue.reserve(10, deadline).is_err(), "it would wait for too long");
}

#[test]
fn follow_up_questions_come_before_later_requests() {
    let queue = Arc::new(Queue::new(64, 64, PARALLEL));
    let begin = Instant::now();
    // Deadlines of three requests, in the order of their arrival.
    let due = |request: u64| begin + Duration::from_secs(5 + request);
    let jobs = [
        (20, 2, NEW),
        (21, 2, Admission::FollowUp),
        (30, 3, NEW),
        (10, 1, Admission::FollowUp),
        (11, 1, Admission::FollowUp),
    ];
    for (blank, request, admission) in jobs {
        let mut jobs = job(blank);
        jobs[0].caller.deadline = due(request);
        queue.push(jobs, admission).unwrap();
    }
    let run = queue.pop().unwrap();
    let taken: Vec<_> = run.questions.iter().map(|question| question.blank).collect();
    assert_eq!(taken, [10, 11, 20, 21, 30]);
}

#[test]
fn a_job_with_more_time_is_overtaken_but_not_for_ever() {
    let queue = Arc::new(Queue::new(1000, 1, PARALLEL));
    let now = Instant::now();
    queue.lock().pace.record(1, Duration::from_millis(10));
    let ask = |blank: usize, since: Instant, time: Duration| {
        let mut jobs = job(blank);
        (jobs[0].caller.since, jobs[0].caller.deadline) = (since, since + time);
        queue.push(jobs, NEW)
    };
    (0..500).for_each(|blank| drop(ask(blank, now, Duration::from_mins(1)).unwrap()));
    // Five seconds of work wait, but behind it.
    ask(1000, now, Duration::from_secs(5)).expect("it comes first");
    ask(2000, now + PATIENCE, Duration::from_secs(5)).expect("it has to wait");
    let order: Vec<_> = (0..502).map(|_| queue.pop().unwrap().questions[0].blank).collect();
    assert_eq!((order[0], order[1], order[501]), (1000, 0, 2000));
}

#[test]
fn a_request_that_cannot_be_answered_in_time_is_rejected_at_once() {
    let queue = Arc::new(Queue::new(1000, 1, PARALLEL));
    queue.lock().pace.record(1, Duration::from_mins(2));
    queue.push(job(1), NEW).expect("nothing waits, so the pace does not count");
    let Err(AskError::Full { takes, retry_after, .. }) = queue.push(job(2), NEW) else { panic!() };
    assert_eq!((takes, retry_after), (Duration::from_mins(2), Duration::from_mins(1)));
    queue.lock().pace.record(1000, Duration::from_millis(1));
    queue.push(job(3), NEW).expect("a slow first run does not count for long");
}

#[test]
fn reserved_questions_count_until_they_are_asked() {
    let queue = Arc::new(Queue::new(1000, 1, PARALLEL));
    queue.lock().pace.record(1, Duration::from_secs(2));
    let mut reservation = queue.push(job(1), Admission::New { follow_ups: 30 }).unwrap();
    drop(queue.pop());
    let rejected = queue.push(job(2), NEW);
    assert!(matches!(rejected, Err(AskError::Full { waiting: 0, .. })), "they take a minute: {rejected:?}");
    reservation.spend(25);
    queue.push(job(3), NEW).expect("five are left, which take ten seconds");
}

/// Its caller waits for ever.
fn job(blank: usize) -> Vec<Job> {
    let questions = vec![Question::new(Arc::default(), vec![0], blank, Vec::new().into())];
    let (reply, answer) = oneshot::channel();
    std::mem::forget(answer);
    let now = Instant::now();
    vec![Job { questions, caller: Caller { since: now, deadline: now + Duration::from_mins(1), reply } }]
}
