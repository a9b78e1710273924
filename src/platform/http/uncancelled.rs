//! Changes that a caller cannot interrupt.

use std::{future::Future, panic, pin::Pin};

use tokio::task;

use crate::telemetry::carried;

/// Does the work to its end, even if the caller hangs up or the request's deadline passes.
///
/// When a caller hangs up, the handler's future is dropped wherever it waits. A transaction survives that, since its
/// change and its audit entry are stored together or not at all. What follows does not: forgetting a cached profile,
/// serving the activated release, or the next transaction of several. A task of its own is not dropped.
pub(crate) async fn uncancelled<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    // Boxed, so that tokio's tasks are compiled once and not for each handler.
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    let done = task::spawn(carried(work)).await;
    done.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))
}
