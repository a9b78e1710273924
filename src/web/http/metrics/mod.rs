//! `/metrics`: what a Prometheus server reads, as OpenMetrics text.
//!
//! The engine counts what its models do, the layer here counts requests, and what is a state rather than a
//! count (queues, the release, the process) is looked at when somebody asks. Labels are route templates and
//! names of the project's own, never what a caller sent: a customer's id must not end up in a time series, and
//! nobody can make series at will.

mod offered;
mod process;
mod recent;

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{Method, header},
    response::{IntoResponse, Response},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::info::Info,
    registry::{Registry, Unit},
};
use utoipa_axum::routes;

pub use self::recent::SAMPLED;
use self::{offered::Offered, process::Process, recent::Recent};
pub(crate) use self::{process::Usage, recent::Moment};
use crate::{
    service::{access::Scope, live_release::Releases},
    util::histogram::{Distribution, Histograms},
    web::http::{AppState, Kind, Problem, routes::Routes},
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Metrics, routes!(metrics))
}

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Prometheus' own defaults, which its dashboards expect of a service.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Everything that one service counts. A value, not a global: a test process runs many services.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Histograms<Answered>,
    releases: Arc<Releases>,
    recent: Arc<Recent>,
}

/// Requests that were answered alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub(crate) struct Answered {
    pub(crate) method: &'static str,
    pub(crate) route: String,
    pub(crate) status: u16,
}

impl Metrics {
    pub fn new(releases: &Arc<Releases>) -> Self {
        let mut registry = Registry::default();
        let requests = Histograms::new(SECONDS);
        let ours = registry.sub_registry_with_prefix("atelier");
        ours.register_with_unit(
            "http_request_duration",
            "From a request's head to its answer's head",
            Unit::Seconds,
            requests.clone(),
        );
        releases.engine().metrics().register(ours);
        ours.register_collector(Box::new(Offered(Arc::clone(releases))));
        let build =
            [("version", env!("CARGO_PKG_VERSION")), ("onnx_runtime", releases.engine().onnx_runtime())];
        ours.register("build", "What runs", Info::new(build.to_vec()));
        registry.register_collector(Box::new(Process));
        let releases = Arc::clone(releases);
        Self { registry: Arc::new(registry), requests, releases, recent: Arc::default() }
    }

    /// Seconds that answers took, by route and status.
    pub(crate) fn requests(&self) -> Vec<(Answered, Distribution)> {
        self.requests.snapshot()
    }
}

/// Measurements for Prometheus
///
/// OpenMetrics text: durations of requests by route, of waiting and of inference by method, batch sizes,
/// queues, what is served, and the process itself.
#[utoipa::path(get, path = "/metrics", tag = "service", responses(
    (status = 200, description = "All of them", body = String,
        content_type = "application/openmetrics-text"),
))]
async fn metrics(State(state): State<AppState>) -> Result<Response, Problem> {
    let mut body = String::new();
    text::encode(&mut body, &state.metrics.registry)
        .map_err(|error| Problem::inside(Kind::Internal, error))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response())
}

/// A request that is being measured.
#[derive(Debug)]
pub(crate) struct Measured {
    began: Instant,
    method: &'static str,
    route: String,
}

impl Measured {
    pub(crate) fn new(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        let route = route.map_or_else(|| "none".to_owned(), |route| route.as_str().to_owned());
        Self { began: Instant::now(), method: method_name(request.method()), route }
    }

    pub(crate) fn end(self, metrics: &Metrics, response: &Response) {
        let Self { began, method, route } = self;
        let answered = Answered { method, route, status: response.status().as_u16() };
        metrics.requests.get_or_create(&answered).observe(began.elapsed().as_secs_f64());
    }
}

/// Callers can name methods that do not exist.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
