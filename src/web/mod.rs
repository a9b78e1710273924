//! HTTP: the router, and serving it.
//!
//! Handlers are beside their resource, one file each with one `router()`. Knows the store and the
//! release through their own surfaces; writes no SQL and reads no files.

mod api;
mod http;
mod pages;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{Method, Uri},
    middleware::{self, Next},
    response::Response,
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;
use utoipa_axum::router::OpenApiRouter;

use self::{
    api::openapi::{self, Document},
    http::{
        deadline,
        keys::{self, Keys},
        metrics, problem, request_id, security, trace, trace_parent,
    },
    pages::docs::DocsPage,
};

pub use http::{
    AppState, Finding, KINDS, Kind, Metrics, Parts, Problem, ProblemBody, RequestId, SAMPLED, serve::serve,
};
pub(crate) use pages::assets::path as asset;

/// The whole application without a listener, so that a test can bind one of its own.
pub fn app(state: AppState) -> Router {
    let (router, described) = routes().split_for_parts();
    let document = openapi::whole(described, state.limits, state.access.requires_key());
    let (json, page) = (Document::new(&document), DocsPage::new(&document));
    let keys = Keys::new(&document, state.access.clone(), state.limits.key_rate);
    let for_layers = state.clone();
    router
        .route_layer(middleware::from_fn_with_state(Arc::new(keys), keys::check))
        .merge(pages::router())
        .merge(pages::pictures::router())
        .fallback(no_such_page)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state)
        // The outermost first. In one: for each `layer` of its own axum would box and clone all that lies within it, for
        // every request.
        .layer((
            middleware::from_fn_with_state(for_layers.clone(), outer),
            TraceLayer::new_for_http()
                .make_span_with(request_id::span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::INFO))
                // A problem logs itself, with its cause.
                .on_failure(()),
            middleware::from_fn_with_state(for_layers, inner),
            CatchPanicLayer::custom(problem::from_panic),
            Extension(json),
            Extension(page),
        ))
}

/// What stands outside a request's log lines: it is measured, and has its ids.
async fn outer(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let measured = metrics::Measured::new(&request);
    let parent = trace_parent::take(&mut request);
    let id = request_id::assign(&mut request);
    let mut response = trace::follow(&state.traces, request, next).await;
    id.put_on(&mut response);
    if let Some(parent) = parent {
        parent.put_on(&mut response);
    }
    measured.end(&state.metrics, &response);
    response
}

/// What comes of a request in the end: an answer in time, its problem with a body, and safe for browsers.
async fn inner(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let reader = pages::problem::Reader::new(&mut request);
    let response = deadline::hold(state.limits, request, next).await;
    security::harden(reader.render(response))
}

/// Every route for programs with its description: there is no other way in, so none is missing from the document.
fn routes() -> OpenApiRouter<AppState> {
    openapi::described()
        .merge(api::articles::router())
        .merge(api::compare::router())
        .merge(api::complete::router())
        .merge(api::customers::router())
        .merge(pages::docs::router())
        .merge(api::feedback::router())
        .merge(api::health::router())
        .merge(metrics::router())
        .merge(openapi::router())
        .merge(api::outfits::router())
        .merge(pages::problem::router())
        .merge(api::releases::router())
        .merge(api::routing::router())
        .merge(api::score::router())
}

async fn no_such_page(uri: Uri) -> Problem {
    Problem::new(Kind::NotFound, format!("nothing is at {}", uri.path()))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(Kind::MethodNotAllowed, format!("{} does not take {method}", uri.path()))
}
