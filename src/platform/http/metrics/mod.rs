//! `/metrics`: measurements for a Prometheus server, as OpenMetrics text.
//!
//! The engine counts model runs, `app` counts requests, and states (queues, the release, the process) are
//! read when `/metrics` is requested. Labels are route templates and the service's own names, never text from a
//! request: a customer's id must not get into a time series, and callers must not be able to create series.

mod process;
mod recent;

use std::{sync::Arc, time::Instant};

use atelier_core::util::histogram::{Distribution, Histograms};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, header},
    response::{IntoResponse, Response},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    registry::{Registry, Unit},
};
use utoipa_axum::routes;

pub use self::recent::SAMPLED;
use self::{process::ProcessCollector, recent::Recent};
pub(crate) use self::{process::Usage, recent::Moment};
use super::{
    AppState, Kind, Problem,
    routes::{Routes, matched},
};
use crate::platform::scope::Scope;

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Metrics, routes!(metrics))
}

const OPEN_METRICS: &str = "application/openmetrics-text";
/// The same text is valid in Prometheus' older format, in which lines of units and the end are comments.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prometheus' default buckets, which dashboards expect.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics of one service. Not a global, because a test process runs many services.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Histograms<RequestLabels>,
    recent: Arc<Recent>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: &'static str,
    pub(crate) route: String,
    pub(crate) status: u16,
}

impl Metrics {
    /// `register` adds what features measure.
    pub(crate) fn new(register: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        let requests = Histograms::new(SECONDS);
        let ours = registry.sub_registry_with_prefix("atelier");
        ours.register_with_unit(
            "http_request_duration",
            "Time from a request's head to its answer's head",
            Unit::Seconds,
            requests.clone(),
        );
        register(ours);
        registry.register_collector(Box::new(ProcessCollector));
        Self { registry: Arc::new(registry), requests, recent: Arc::default() }
    }

    /// Durations of requests in seconds, by method, route and status.
    pub(crate) fn requests(&self) -> Vec<(RequestLabels, Distribution)> {
        self.requests.snapshot()
    }
}

/// Measurements for Prometheus
///
/// Prometheus' text, or OpenMetrics if `Accept` names it: request durations by route, queue and inference times by method, batch sizes, queues, the live
/// release, suggestions of new and known articles with what happened to them, feeds that the service fetches, and the process.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "service", responses(
    (status = 200, description = "All measurements",
        content((String = "text/plain"), (String = "application/openmetrics-text"))),
))]
async fn metrics(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, Problem> {
    let mut body = String::new();
    text::encode_registry(&mut body, &state.metrics.registry)
        .and_then(|()| text::encode_eof(&mut body))
        .map_err(|error| Problem::inside(Kind::Internal, error))?;
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let open = accepted.is_some_and(|accepted| accepted.contains(OPEN_METRICS));
    let media_type = if open { "application/openmetrics-text; version=1.0.0; charset=utf-8" } else { TEXT };
    Ok(([(header::CONTENT_TYPE, media_type)], body).into_response())
}

#[derive(Debug)]
pub(crate) struct RequestTimer {
    started: Instant,
    method: &'static str,
    route: String,
}

impl RequestTimer {
    pub(crate) fn start(request: &Request) -> Self {
        let route = matched(request.extensions()).unwrap_or("none").to_owned();
        Self { started: Instant::now(), method: method_name(request.method()), route }
    }

    pub(crate) fn stop(self, metrics: &Metrics, response: &Response) {
        let Self { started, method, route } = self;
        let labels = RequestLabels { method, route, status: response.status().as_u16() };
        metrics.requests.get_or_create(&labels).observe(started.elapsed().as_secs_f64());
    }
}

/// The method as a label. Callers can invent methods, so unknown ones share a label.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
