//! A request's trace, where a collector is told of them: the caller's, of which the request is a part, or a new one.

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};

use super::{metrics::method_name, trace_parent::TraceParent};
use crate::util::telemetry::Traces;
use crate::web::http::RequestId;

/// Begins and ends it around the request. Inside, log lines name the trace, whoever began it.
pub(crate) async fn follow(traces: &Traces, mut request: Request, next: Next) -> Response {
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let name = || route.map_or_else(|| method.to_owned(), |route| format!("{method} {}", route.as_str()));
    let caller = request.extensions().get::<TraceParent>();
    let Some(trace) = traces.begin(name, caller.map(TraceParent::as_str)) else {
        return next.run(request).await;
    };
    trace.set_attribute("http.request.method", method);
    if let Some(route) = route {
        trace.set_attribute("http.route", route.as_str().to_owned());
    }
    if caller.is_none() {
        request.extensions_mut().insert(TraceParent::of(&trace));
    }
    if let Some(id) = request.extensions().get::<RequestId>() {
        trace.set_attribute("atelier.request_id", id.as_str().to_owned());
    }
    let response = trace.run(next.run(request)).await;
    trace.set_attribute("http.response.status_code", i64::from(response.status().as_u16()));
    trace.end(response.status().is_server_error());
    response
}
