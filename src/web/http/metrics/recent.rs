//! The last quarter of an hour, for the eye: one sample each few seconds, the oldest dropped.
//!
//! Whoever owns the service takes the samples ([`Metrics::sample`]); nothing here has a clock or a thread.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::web::http::Metrics;
use crate::{
    domain::Timestamp,
    util::histogram::{Distribution, Estimate},
};

/// Between two samples.
pub const SAMPLED: Duration = Duration::from_secs(5);
/// A quarter of an hour of them, and the one that the first is counted from.
const KEPT: usize = 181;

/// What watching costs must not look like traffic.
const WATCHING: [&str; 4] = ["/metrics", "/livez", "/readyz", "/operations"];

/// Held for as long as it takes to push or to copy.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<Sample>>);

#[derive(Debug, Clone)]
struct Sample {
    at: Timestamp,
    answered: Distribution,
    waiting: usize,
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment {
    /// Answers a second.
    pub(crate) rate: f64,
    /// Seconds that 95 of 100 answers took at most; None where there was none.
    pub(crate) slow: Option<Estimate>,
    /// Questions that waited for a model at the end of it.
    pub(crate) waiting: usize,
}

impl Metrics {
    /// Looks once; called each [`SAMPLED`].
    pub fn sample(&self, now: Timestamp) {
        let answered = self.requests.total(|labels| !WATCHING.contains(&labels.route.as_str()));
        let waiting = self
            .releases
            .current()
            .map_or(0, |live| live.serving.queues().map(|(_, queue)| queue.waiting).sum());
        let sample = Sample { at: now, answered, waiting };
        let mut samples = self.recent.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The moments of the last quarter of an hour, the oldest first.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let samples = self.recent.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        samples
            .iter()
            .zip(samples.iter().skip(1))
            .map(|(before, after)| Moment::between(before, after))
            .collect()
    }
}

impl Moment {
    fn between(before: &Sample, after: &Sample) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        let seconds = (after.at.millis() - before.at.millis()).max(1) as f64 / 1000.0;
        let answered = after.answered.since(&before.answered);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let rate = answered.count() as f64 / seconds;
        Self { rate, slow: answered.quantile(0.95), waiting: after.waiting }
    }
}
