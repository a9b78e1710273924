//! Who is let in, who comes first, and what is counted.

use tokio::sync::oneshot;

use super::{job::PATIENCE, *};
use crate::models::engine::Question;

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
