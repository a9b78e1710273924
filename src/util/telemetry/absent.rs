//! What stands for traces in a program that was built without them: nothing begins, so nothing else can happen.

use std::{fmt::Display, time::Duration};

use crate::util::http_client::Origin;

/// Begins no trace.
#[derive(Debug, Clone, Default)]
pub struct Traces(());

impl Traces {
    /// The settings let no collector through where none can be told anything.
    pub fn to(_collector: Option<&Origin>) -> Self {
        Self(())
    }

    pub fn begin(&self, _name: impl FnOnce() -> String, _caused_by: Option<&str>) -> Option<Trace> {
        None
    }

    pub fn finish(&self) {}
}

/// There is none.
#[derive(Debug, Clone)]
pub enum Trace {}

impl Trace {
    pub fn trace_parent(&self) -> String {
        match *self {}
    }

    pub async fn follow<T>(&self, work: impl Future<Output = T>) -> T {
        work.await
    }

    pub fn say<V>(&self, _key: &'static str, _value: V) {}

    pub fn end(&self, _failed: bool) {}
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

    pub fn spent(
        &self,
        _name: impl Display,
        _after: Duration,
        _took: Duration,
        _counts: &[(&'static str, usize)],
    ) {
    }
}
