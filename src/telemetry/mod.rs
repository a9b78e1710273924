//! The log, and traces of requests for an OpenTelemetry collector.
//!
//! The feature `otlp` enables traces. Without it they do nothing at no cost, and the settings refuse a collector
//! ([`AVAILABLE`]). A request's trace is part of its future's context, so any code can add spans. A thread sends spans
//! from a bounded queue, and drops spans when the queue is full: nothing waits for the collector or fails without it.
//!
//! It must not know HTTP requests, the engine or the database, which use it.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod collector;
pub(crate) mod log;
#[cfg(feature = "otlp")]
mod traces;

#[cfg(not(feature = "otlp"))]
use absent::carry;
#[cfg(not(feature = "otlp"))]
pub use absent::{Stopwatch, Trace, Traces};
#[cfg(feature = "otlp")]
use traces::carry;
#[cfg(feature = "otlp")]
pub use traces::{Stopwatch, Trace, Traces};

use std::time::Duration;

/// Whether this program can send traces.
pub const AVAILABLE: bool = cfg!(feature = "otlp");

/// The work of another task, as a part of the request that the caller is in.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> + use<F> {
    log::scope(log::Names::current(), carry(work))
}

/// Runs the work, and adds its duration to the current trace.
pub async fn timed<T>(name: &'static str, work: impl Future<Output = T>) -> T {
    let watch = Stopwatch::start();
    let done = work.await;
    watch.record(name, Duration::ZERO, watch.elapsed(), &[]);
    done
}
