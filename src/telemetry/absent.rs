//! The same types for a program without traces; they do nothing.

use std::{fmt::Display, time::Duration};

use atelier_core::util::http_client::Origin;

/// Starts no trace.
#[derive(Debug, Clone, Default)]
pub struct Traces(());

impl Traces {
    /// The settings refuse a collector in a program without traces.
    pub fn new(_collector: Option<&Origin>) -> Self {
        Self(())
    }

    pub fn begin(&self, _name: impl FnOnce() -> String, _caused_by: Option<&str>) -> Option<Trace> {
        None
    }

    pub fn finish(&self) {}
}

/// Has no value.
#[derive(Debug, Clone)]
pub enum Trace {}

impl Trace {
    pub fn trace_parent(&self) -> String {
        match *self {}
    }

    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        work.await
    }

    pub fn set_attribute<V>(&self, _key: &'static str, _value: V) {}

    pub fn end(&self, _failed: bool) {}
}

pub(super) fn carry<F>(work: F) -> F {
    work
}

/// Measures nothing.
#[derive(Debug)]
pub struct Stopwatch;

impl Stopwatch {
    pub fn start() -> Self {
        Self
    }

    pub fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    pub fn record(
        &self,
        _name: impl Display,
        _after: Duration,
        _took: Duration,
        _counts: &[(&'static str, usize)],
    ) {
    }
}
