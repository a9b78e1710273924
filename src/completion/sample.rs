//! A sample of recent questions, on which rules are previewed.
//!
//! It is in memory only: no completion writes to the database for it, and it ends with the process. A question may have its
//! customer's id, and has no features but the outfit's: each preview reads the profile again. Erasing a customer forgets their
//! questions here at once. Other replicas forget them at their next preview, and every question after a day, once the next one is
//! added or looked at.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use atelier_core::domain::{CustomerId, Method, Timestamp};

use super::Request;
use crate::releases::{followers::Follower, routing::Route};

/// The most questions.
const MOST: usize = 300;
/// Until there are as many, one is taken in the first time at most; then one in the second, for the oldest one.
const AT_FIRST: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_secs(5);
/// The longest that one is kept.
const KEPT: Duration = Duration::from_hours(24);

/// A question without the customer's profile.
#[derive(Debug, Clone)]
pub(crate) struct Sampled {
    pub(crate) customer: Option<CustomerId>,
    /// The method that the caller named.
    pub(crate) named: Option<Method>,
    pub(crate) request: Request,
}

impl Sampled {
    pub(crate) fn new(route: &Route, request: &Request) -> Self {
        let request = Request { stored: None, ..request.clone() };
        Self { customer: route.customer.clone(), named: route.named, request }
    }
}

#[derive(Debug, Default)]
pub struct Sample {
    questions: Mutex<VecDeque<(Timestamp, Sampled)>>,
    /// When the next one is taken, in milliseconds since 1970.
    next: AtomicI64,
    /// How often a customer was forgotten.
    forgotten: AtomicU64,
}

impl Follower for Sample {}

/// The right to add a question, unless a customer is forgotten between its asking and its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn(u64);

impl Sample {
    /// Whether it takes a question that is asked now. Most are not taken, so this costs one look at a number.
    pub(crate) fn takes(&self, now: Timestamp) -> Option<Turn> {
        let is_time = self.next.load(Ordering::Relaxed) <= now.millis();
        is_time.then(|| Turn(self.forgotten.load(Ordering::Acquire)))
    }

    pub(crate) fn add(&self, question: Sampled, Turn(forgotten): Turn, now: Timestamp) {
        let mut questions = self.lock();
        if self.forgotten.load(Ordering::Acquire) != forgotten {
            return;
        }
        questions.retain(|(asked, _)| *asked + KEPT > now);
        questions.push_back((now, question));
        let is_full = questions.len() > MOST;
        if is_full {
            questions.pop_front();
        }
        self.next.store((now + if is_full { EVERY } else { AT_FIRST }).millis(), Ordering::Relaxed);
    }

    /// The questions, the latest first.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<Sampled> {
        let mut questions = self.lock();
        questions.retain(|(asked, _)| *asked + KEPT > now);
        questions.iter().rev().map(|(_, question)| question.clone()).collect()
    }

    pub fn forget(&self, customer: &CustomerId) {
        let mut questions = self.lock();
        questions.retain(|(_, question)| question.customer.as_ref() != Some(customer));
        self.forgotten.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Timestamp, Sampled)>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(customer: u64) -> Sampled {
        let customer = Some(CustomerId::new(format!("c-{customer}")).unwrap());
        Sampled { customer, named: None, request: Request::new(vec![None], Method::Match) }
    }

    #[test]
    fn a_sample_is_bounded_and_forgets() {
        let sample = Sample::default();
        let at = |millis: u64| Timestamp::from_millis(0) + Duration::from_millis(millis);
        let ask = |customer: u64, millis: u64| {
            if let Some(turn) = sample.takes(at(millis)) {
                sample.add(question(customer), turn, at(millis));
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

    #[test]
    fn a_sample_keeps_nothing_of_an_erased_customer_or_of_yesterday() {
        let (sample, now) = (Sample::default(), Timestamp::from_millis(0));
        let turn = sample.takes(now).unwrap();
        sample.forget(&CustomerId::new("c-1").unwrap());
        sample.add(question(1), turn, now);
        assert!(sample.lock().is_empty(), "they were erased while the question was answered");
        for at in [now, now + KEPT] {
            sample.add(question(2), sample.takes(at).unwrap(), at);
        }
        assert_eq!(sample.lock().len(), 1, "the first one is a day old");
    }
}
