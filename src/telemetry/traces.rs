//! Traces through OpenTelemetry.

use std::{
    collections::HashMap,
    fmt::Display,
    time::{Duration, SystemTime},
};

use atelier_core::util::http_client::Origin;
use opentelemetry::{
    Context, KeyValue, Value,
    context::{FutureExt, WithContext},
    propagation::TextMapPropagator,
    trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider},
};

use super::collector::{PATIENCE, exporter};

/// Starts traces, if there is a collector. Clones share one queue of spans.
#[derive(Debug, Clone, Default)]
pub struct Traces(Option<Sending>);

#[derive(Debug, Clone)]
struct Sending {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Starts the thread that sends traces, if there is a collector. OpenTelemetry's variables apply:
    /// `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_…`.
    pub fn new(collector: Option<&Origin>) -> Self {
        Self(collector.map(|collector| {
            let about = Resource::builder()
                .with_service_name("atelier")
                .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                .build();
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(exporter(collector.clone()))
                .with_resource(about)
                .build();
            Sending { tracer: provider.tracer("atelier"), provider }
        }))
    }

    /// Starts the trace of a request, or continues the caller's if it sent a `traceparent`.
    pub fn begin(&self, name: impl FnOnce() -> String, caused_by: Option<&str>) -> Option<Trace> {
        let Sending { tracer, .. } = self.0.as_ref()?;
        let parent = caused_by.map_or_else(Context::new, |text| {
            let sent = HashMap::from([("traceparent".to_owned(), text.to_owned())]);
            TraceContextPropagator::new().extract_with_context(&Context::new(), &sent)
        });
        let span =
            tracer.span_builder(name()).with_kind(SpanKind::Server).start_with_context(tracer, &parent);
        Some(Trace(parent.with_span(span).with_value(tracer.clone())))
    }

    /// Sends the queued spans and stops. It blocks for up to some seconds, so call it on a thread that may block.
    pub fn finish(&self) {
        if let Some(Sending { provider, .. }) = &self.0 {
            // A missing collector was logged before, and the process ends.
            let _ = provider.shutdown_with_timeout(PATIENCE);
        }
    }
}

/// The trace of a request, which ends at [`Trace::end`] or when it is dropped.
#[derive(Debug, Clone)]
pub struct Trace(Context);

impl Trace {
    /// The W3C `traceparent` by which other programs continue the trace.
    pub fn trace_parent(&self) -> String {
        let span = self.0.span();
        let span = span.span_context();
        format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8())
    }

    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        work.with_context(self.0.clone()).await
    }

    pub fn set_attribute(&self, key: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }

    pub fn end(&self, failed: bool) {
        if failed {
            self.0.span().set_status(Status::error(""));
        }
        self.0.span().end();
    }
}

/// The work of another task, as a part of the caller's trace.
pub(super) fn carry<F: Future>(work: F) -> WithContext<F> {
    work.with_current_context()
}

/// Measures parts of the current trace, if there is one and it is recorded.
#[derive(Debug)]
pub struct Stopwatch(Option<(Context, SystemTime)>);

impl Stopwatch {
    pub fn start() -> Self {
        let context = Context::current();
        let recorded = context.get::<SdkTracer>().is_some() && context.span().is_recording();
        Self(recorded.then(|| (context, SystemTime::now())))
    }

    pub fn elapsed(&self) -> Duration {
        self.0.as_ref().and_then(|(_, began)| began.elapsed().ok()).unwrap_or_default()
    }

    /// Adds a part that began `after` the start of the watch and `took` this long.
    pub fn record(
        &self,
        name: impl Display,
        after: Duration,
        took: Duration,
        counts: &[(&'static str, usize)],
    ) {
        let Some((context, began)) = &self.0 else { return };
        let tracer = context.get::<SdkTracer>().expect("checked in start");
        let count = |&(key, count)| KeyValue::new(key, i64::try_from(count).unwrap_or(i64::MAX));
        let mut span = tracer
            .span_builder(name.to_string())
            .with_start_time(*began + after)
            .with_attributes(counts.iter().map(count))
            .start_with_context(tracer, context);
        span.end_with_timestamp(*began + after + took);
    }
}
