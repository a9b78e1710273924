//! What the engine counts: how long questions wait, how long runs take, how many share one, and how many are
//! turned away.
//!
//! One set a service, for all releases that its engine loads: a swap does not begin anew. Must not know who
//! reads it.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::{AskError, Device};
use crate::{
    domain::Method,
    util::histogram::{Distribution, Histogram, Histograms},
};

/// From a run of one question on a small release to the default deadline.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
const QUESTIONS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Clones count together.
#[derive(Debug, Clone)]
pub struct EngineMetrics {
    queued: Histograms<OfMethod>,
    ran: Histograms<OfModel>,
    batch: Histograms<OfMethod>,
    rejected: Family<Rejection, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfMethod {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfModel {
    method: &'static str,
    release: String,
    device: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejection {
    method: &'static str,
    reason: &'static str,
}

const FULL: &str = "queue-full";
const LATE: &str = "deadline";
const FAILED: &str = "model-failed";
const UNREACHABLE: &str = "model-unreachable";
const REASONS: [&str; 4] = [FULL, LATE, FAILED, UNREACHABLE];

impl Default for EngineMetrics {
    fn default() -> Self {
        Self {
            queued: Histograms::new(SECONDS),
            ran: Histograms::new(SECONDS),
            batch: Histograms::new(QUESTIONS),
            rejected: Family::default(),
        }
    }
}

impl EngineMetrics {
    /// Puts them where they are read.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "queue_duration",
            "How long outfits waited for a free model",
            Unit::Seconds,
            self.queued.clone(),
        );
        registry.register_with_unit(
            "inference_duration",
            "How long runs of a model took, choosing included",
            Unit::Seconds,
            self.ran.clone(),
        );
        registry.register("batch_size", "Questions that shared a run of a model", self.batch.clone());
        registry.register(
            "requests_rejected",
            "Questions to a method, with those asked along, that were given no answer",
            self.rejected.clone(),
        );
    }

    /// Seconds that outfits waited for a free model of the method.
    pub fn queued(&self, method: Method) -> Distribution {
        self.queued.total(|labels| labels.method == method.as_str())
    }

    /// Seconds that runs of the release's model took.
    pub fn ran(&self, method: Method, release: &str) -> Distribution {
        self.ran.total(|labels| labels.method == method.as_str() && labels.release == release)
    }

    /// How many questions shared a run.
    pub fn batches(&self, method: Method) -> Distribution {
        self.batch.total(|labels| labels.method == method.as_str())
    }

    /// Questions without an answer, by reason.
    pub fn rejections(&self, method: Method) -> Vec<(&'static str, u64)> {
        let count = |reason| {
            let counter = self.rejected.get(&Rejection { method: method.as_str(), reason });
            (reason, counter.map_or(0, |counter| counter.get()))
        };
        REASONS.map(count).into()
    }

    /// Those of one method of a release, found once instead of at every run.
    pub(super) fn of(&self, method: Method, release: &str, device: Device) -> MethodMetrics {
        let of_method = OfMethod { method: method.as_str() };
        // From nought, so that the first one is seen as an increase.
        for reason in REASONS {
            drop(self.rejected.get_or_create(&Rejection { method: method.as_str(), reason }));
        }
        let of_model =
            OfModel { method: method.as_str(), release: release.to_owned(), device: device.as_str() };
        MethodMetrics {
            queued: self.queued.get_or_create(&of_method),
            ran: self.ran.get_or_create(&of_model),
            batch: self.batch.get_or_create(&of_method),
        }
    }

    pub(super) fn rejected(&self, method: Method, error: &AskError) {
        let reason = match error {
            AskError::Full { .. } => FULL,
            AskError::Deadline { .. } => LATE,
            AskError::Failed(_) => FAILED,
            AskError::Unreachable(_) => UNREACHABLE,
            // Nobody asked a model anything.
            AskError::NoMethod(_) => return,
        };
        self.rejected.get_or_create(&Rejection { method: method.as_str(), reason }).inc();
    }
}

/// What one method's workers count.
#[derive(Debug, Clone)]
pub(super) struct MethodMetrics {
    queued: Histogram,
    ran: Histogram,
    batch: Histogram,
}

impl MethodMetrics {
    /// One job waited so long.
    pub(super) fn queued(&self, time: Duration) {
        self.queued.observe(time.as_secs_f64());
    }

    /// One run of so many questions took so long.
    pub(super) fn ran(&self, questions: usize, took: Duration) {
        self.ran.observe(took.as_secs_f64());
        self.batch.observe(f64::from(u32::try_from(questions).unwrap_or(u32::MAX)));
    }
}
