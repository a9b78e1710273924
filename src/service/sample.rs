//! A sample of the questions that were asked lately, on which a rule is tried before it counts.
//!
//! It is in memory only: no completion writes to the database for it, and nothing of it outlives the process. A question has its
//! customer's id but not their profile, which is read again when the question is. Erasing a customer forgets their questions
//! here at once; other replicas forget them when they next look at them, and every question after a day.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use atelier_core::domain::{CustomerId, Timestamp};

use super::asking::Question;

/// The most questions.
const MOST: usize = 300;
/// Until there are as many, one is taken in the first time at most; then one in the second, for the oldest one.
const AT_FIRST: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_secs(5);
/// The longest that one is kept.
const KEPT: Duration = Duration::from_hours(24);

#[derive(Debug, Default)]
pub struct Sample {
    questions: Mutex<VecDeque<(Timestamp, Question)>>,
    /// When the next one is taken, in milliseconds since 1970.
    next: AtomicI64,
}

impl Sample {
    /// Whether it takes a question that is asked now. Most are not taken, so this costs one look at a number.
    pub(super) fn takes(&self, now: Timestamp) -> bool {
        self.next.load(Ordering::Relaxed) <= now.millis()
    }

    pub(super) fn add(&self, question: Question, now: Timestamp) {
        let mut questions = self.lock();
        questions.push_back((now, question));
        let is_full = questions.len() > MOST;
        if is_full {
            questions.pop_front();
        }
        self.next.store((now + if is_full { EVERY } else { AT_FIRST }).millis(), Ordering::Relaxed);
    }

    /// The questions, the latest first.
    pub(super) fn list(&self, now: Timestamp) -> Vec<Question> {
        let mut questions = self.lock();
        questions.retain(|(asked, _)| *asked + KEPT > now);
        questions.iter().rev().map(|(_, question)| question.clone()).collect()
    }

    /// Forgets a customer's questions.
    pub fn forget(&self, customer: &CustomerId) {
        self.lock().retain(|(_, question)| question.customer.as_ref() != Some(customer));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Timestamp, Question)>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use atelier_core::domain::Method;

    use super::*;
    use crate::service::completion::Request;

    #[test]
    fn a_sample_is_bounded_and_forgets() {
        let sample = Sample::default();
        let at = |millis: u64| Timestamp::from_millis(0) + Duration::from_millis(millis);
        let ask = |customer: u64, millis: u64| {
            let customer = Some(CustomerId::new(format!("c-{customer}")).unwrap());
            let request = Request::new(vec![None], Method::Match);
            if sample.takes(at(millis)) {
                sample.add(Question { customer, method: None, profile: None, request }, at(millis));
            }
        };
        let latest = |millis: u64| sample.list(at(millis))[0].customer.as_ref().unwrap().to_string();
        (0..=MOST as u64).for_each(|customer| ask(customer, 10 * customer));
        assert_eq!(sample.list(at(3000)).len(), MOST, "the first one is gone");
        ask(999, 5000);
        assert_eq!(latest(5000), "c-300", "it is not time for the next one");
        ask(999, 8000);
        assert_eq!(latest(8000), "c-999");
        sample.forget(&CustomerId::new("c-999").unwrap());
        assert_eq!((sample.list(at(8000)).len(), &*latest(8000)), (MOST - 1, "c-300"));
        assert!(sample.list(at(3000) + KEPT).is_empty(), "a day later");
    }
}
