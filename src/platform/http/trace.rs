//! Traces of requests (W3C Trace Context).
//!
//! A caller's `traceparent` appears in the request's log lines and is returned with the answer, so that either side
//! can be found from the other. If traces are exported, the request is a span of the caller's trace, or starts one.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    response::Response,
};

use super::{RequestId, metrics::method_name, routes::matched};
use crate::telemetry::{Trace, Traces};

static HEADER: HeaderName = HeaderName::from_static("traceparent");

/// Runs the request in a span of its own, if traces are exported. Log lines inside name the trace, also if it is new.
pub(crate) async fn follow<F: Future<Output = Response>>(
    traces: &Traces,
    mut request: Request,
    run: impl FnOnce(Request) -> F,
) -> Response {
    let method = method_name(request.method());
    let route = matched(request.extensions());
    let name = || route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    let caller = request.extensions().get::<TraceParent>();
    let Some(trace) = traces.begin(name, caller.map(TraceParent::as_str)) else {
        return run(request).await;
    };
    trace.set_attribute("http.request.method", method);
    if let Some(route) = route {
        trace.set_attribute("http.route", route.to_owned());
    }
    if caller.is_none() {
        request.extensions_mut().insert(TraceParent::from_trace(&trace));
    }
    if let Some(id) = request.extensions().get::<RequestId>() {
        trace.set_attribute("atelier.request_id", id.as_str().to_owned());
    }
    let response = trace.run(run(request)).await;
    trace.set_attribute("http.response.status_code", i64::from(response.status().as_u16()));
    trace.end(response.status().is_server_error());
    response
}

#[derive(Debug, Clone)]
pub(crate) struct TraceParent(HeaderValue);

impl TraceParent {
    /// `None` if the standard says to ignore the value.
    fn parse(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        let parts: Vec<&str> = text.splitn(5, '-').collect();
        let hex = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let [version, trace, parent, flags, rest @ ..] = &parts[..] else { return None };
        let known_version = hex(version, 2) && *version != "ff" && (rest.is_empty() || *version != "00");
        let not_zero = |part: &str| part.bytes().any(|b| b != b'0');
        let valid = hex(trace, 32) && not_zero(trace) && hex(parent, 16) && not_zero(parent) && hex(flags, 2);
        (known_version && valid).then(|| Self(value.clone()))
    }

    fn from_trace(trace: &Trace) -> Self {
        let value = HeaderValue::try_from(trace.trace_parent());
        Self(value.expect("hexadecimal numbers are a valid header value"))
    }

    pub(crate) fn from_caller(request: &mut Request) -> Option<Self> {
        let parent = request.headers().get(&HEADER).and_then(Self::parse)?;
        request.extensions_mut().insert(parent.clone());
        Some(parent)
    }

    fn as_str(&self) -> &str {
        self.0.to_str().expect("checked when it was parsed")
    }

    pub(crate) fn trace_id(&self) -> &str {
        self.as_str().split('-').nth(1).expect("checked when it was parsed")
    }

    pub(crate) fn put_on(self, response: &mut Response) {
        response.headers_mut().insert(HEADER.clone(), self.0);
    }
}
