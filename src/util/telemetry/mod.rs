//! Traces: what a request waited for, told to a collector over OpenTelemetry's own protocol.
//!
//! Built with the feature `otlp`. Without it everything here is nothing and costs nothing, and the settings refuse a
//! collector ([`AVAILABLE`]). A request's trace goes along with its future, so that whoever works on its behalf adds a
//! span without being handed one. Spans wait in a bounded queue for a thread of their own that sends them; what does
//! not fit is dropped: nobody ever waits for the collector, and nothing fails because it is away.
//!
//! Must not know HTTP's requests, the engine or the database: they come here.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod traces;

#[cfg(not(feature = "otlp"))]
pub use absent::{Stopwatch, Trace, Traces};
#[cfg(feature = "otlp")]
pub use traces::{Stopwatch, Trace, Traces};

use std::time::Duration;

/// Whether this program can send traces.
pub const AVAILABLE: bool = cfg!(feature = "otlp");

/// Does the work, and adds how long it took to the trace that it is part of.
pub async fn timed<T>(name: &'static str, work: impl Future<Output = T>) -> T {
    let watch = Stopwatch::start();
    let done = work.await;
    watch.spent(name, Duration::ZERO, watch.elapsed(), &[]);
    done
}
