//! The engine's metrics: how long questions wait, how long runs take, how many questions share a run, and how many are
//! rejected.
//!
//! There is one set per service, for all releases that its engine loads, so a new release does not reset them. Must not
//! know how they are read.

use std::time::Duration;

use atelier_core::{
    domain::Method,
    util::histogram::{Distribution, Histogram, Histograms},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::{AskError, Device};

/// From a run of one question on a small release to the default deadline.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
const QUESTIONS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Clones share the same metrics.
#[derive(Debug, Clone)]
pub struct EngineMetrics {
    queued: Histograms<Labels<1>>,
    /// By method, release and device.
    ran: Histograms<Labels<3>>,
    batch: Histograms<Labels<1>>,
    /// By method and reason.
    rejected: Family<Labels<2>, Counter>,
}

/// With their names; the method comes first.
type Labels<const N: usize> = [(&'static str, String); N];

fn of_method(method: Method) -> Labels<1> {
    [("method", method.to_string())]
}

fn rejection(method: Method, reason: &str) -> Labels<2> {
    [("method", method.to_string()), ("reason", reason.to_owned())]
}

fn is_of<const N: usize>(labels: &Labels<N>, method: Method) -> bool {
    labels[0].1 == method.as_str()
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
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "queue_duration",
            "How long outfits waited for a free model",
            Unit::Seconds,
            self.queued.clone(),
        );
        registry.register_with_unit(
            "inference_duration",
            "How long runs of a model took, including the choice of articles",
            Unit::Seconds,
            self.ran.clone(),
        );
        registry.register("batch_size", "Questions per run of a model", self.batch.clone());
        registry.register(
            "requests_rejected",
            "Requests to a method that were rejected, follow-up questions included",
            self.rejected.clone(),
        );
    }

    /// Seconds that outfits waited for a free model of the method.
    pub fn queued(&self, method: Method) -> Distribution {
        self.queued.total(|labels| is_of(labels, method))
    }

    /// Seconds that runs of the release's model took.
    pub fn ran(&self, method: Method, release: &str) -> Distribution {
        self.ran.total(|labels| is_of(labels, method) && labels[1].1 == release)
    }

    /// Questions per run.
    pub fn batches(&self, method: Method) -> Distribution {
        self.batch.total(|labels| is_of(labels, method))
    }

    /// Rejected requests by reason.
    pub fn rejections(&self, method: Method) -> Vec<(&'static str, u64)> {
        let count = |reason| {
            let counter = self.rejected.get(&rejection(method, reason));
            (reason, counter.map_or(0, |counter| counter.get()))
        };
        REASONS.map(count).into()
    }

    /// The metrics of one method of a release, looked up once instead of at every run.
    pub(super) fn for_model(&self, method: Method, release: &str, device: Device) -> MethodMetrics {
        // Starting at zero, so that the first rejection shows as an increase.
        for reason in REASONS {
            drop(self.rejected.get_or_create(&rejection(method, reason)));
        }
        let labels = of_method(method);
        let [of_method] = labels.clone();
        let of_model = [of_method, ("release", release.to_owned()), ("device", device.to_string())];
        MethodMetrics {
            queued: self.queued.get_or_create(&labels),
            ran: self.ran.get_or_create(&of_model),
            batch: self.batch.get_or_create(&labels),
        }
    }

    pub(super) fn add_rejection(&self, method: Method, error: &AskError) {
        let reason = match error {
            AskError::Full { .. } => FULL,
            AskError::Deadline { .. } => LATE,
            AskError::Failed(_) => FAILED,
            AskError::Unreachable(_) => UNREACHABLE,
            // No model was asked.
            AskError::NoMethod(_) => return,
        };
        self.rejected.get_or_create(&rejection(method, reason)).inc();
    }
}

/// The metrics of one method's workers.
#[derive(Debug, Clone)]
pub(super) struct MethodMetrics {
    queued: Histogram,
    ran: Histogram,
    batch: Histogram,
}

impl MethodMetrics {
    /// Adds the time that a job waited.
    pub(super) fn add_wait(&self, time: Duration) {
        self.queued.observe(time.as_secs_f64());
    }

    /// Adds a run of this many questions.
    pub(super) fn add_run(&self, questions: usize, took: Duration) {
        self.ran.observe(took.as_secs_f64());
        self.batch.observe(f64::from(u32::try_from(questions).unwrap_or(u32::MAX)));
    }
}
