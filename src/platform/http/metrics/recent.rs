//! The last 15 minutes of a few metrics, for charts: a sample every few seconds, the oldest ones dropped.
//!
//! The service's owner takes the samples with [`Metrics::sample`]; nothing here has a clock or a thread.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use atelier_core::{
    domain::Timestamp,
    util::histogram::{Distribution, Estimate},
};

use crate::platform::http::Metrics;

pub const SAMPLED: Duration = Duration::from_secs(5);
/// The samples of 15 minutes, and the one before them.
const KEPT: usize = 181;

/// Routes for monitoring, which is not counted as traffic.
const MONITORING: [&str; 4] = ["/metrics", "/livez", "/readyz", "/operations"];

/// The lock is only held to push or to copy.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<Sample>>);

#[derive(Debug, Clone)]
struct Sample {
    at: Timestamp,
    answered: Distribution,
    waiting: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moment {
    /// Answers per second.
    pub(crate) rate: f64,
    /// The 95th percentile of durations in seconds; `None` without answers.
    pub(crate) slow: Option<Estimate>,
    /// Jobs waiting for a model at the end of the interval.
    pub(crate) waiting: usize,
}

impl Metrics {
    /// Takes a sample, with the jobs that wait for a model. Call it every [`SAMPLED`].
    pub fn sample(&self, now: Timestamp, waiting: usize) {
        let answered = self.requests.total(|labels| !MONITORING.contains(&labels.route.as_str()));
        let sample = Sample { at: now, answered, waiting };
        let mut samples = self.recent.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The intervals of the last 15 minutes, the oldest first.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let samples = self.recent.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pairs = samples.iter().zip(samples.iter().skip(1));
        pairs.map(|(before, after)| Moment::between(before, after)).collect()
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
