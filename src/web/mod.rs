//! HTTP: the router, and serving it.
//!
//! Handlers are beside their resource, one file each with one `router()`. Knows the store and the
//! release through their own surfaces; writes no SQL and reads no files.

mod api;
mod http;
mod pages;

use std::{io, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{Method, Uri},
    middleware::{self, Next},
    response::Response,
};
use tokio::net::TcpListener;
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;

use self::{
    api::openapi::{self, Document},
    http::{
        deadline,
        keys::{self, Gate},
        metrics, problem, request_id,
        routes::Routes,
        security, trace, trace_parent,
    },
    pages::docs::DocsPage,
};

pub use http::{AppState, Finding, KINDS, Kind, Metrics, Parts, Problem, ProblemBody, RequestId, SAMPLED};
pub(crate) use pages::assets::path as asset;

/// Serves the application until `shutdown` is done, then lets the requests in progress finish.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let idle = state.limits.idle();
    http::serve::serve(listener, app(state), idle, shutdown).await
}

/// The whole application without a listener, so that a test can bind one of its own.
pub fn app(state: AppState) -> Router {
    let (router, described, guards) = routes().into_parts();
    let document = openapi::finish(described, &guards, state.limits, state.access.requires_key());
    let (json, page) = (Document::new(&document), DocsPage::new(&document));
    let gate = Gate::new(state.access.clone(), state.clock.clone(), state.limits, guards);
    let pages = pages::router().merge(pages::pictures::router());
    let pages = pages.route_layer(middleware::from_fn_with_state(state.clone(), deadline::layer));
    let for_layers = state.clone();
    router
        .route_layer(middleware::from_fn_with_state(Arc::new(gate), keys::check))
        .merge(pages)
        .fallback(no_such_page)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state)
        // The outermost first. In one: for each `layer` of its own axum would box and clone all that lies within it, for
        // every request.
        .layer((
            middleware::from_fn_with_state(for_layers, outer),
            TraceLayer::new_for_http()
                .make_span_with(request_id::span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::INFO))
                // A problem logs itself, with its cause.
                .on_failure(()),
            middleware::from_fn(inner),
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

/// Gives a problem its body, and every answer the headers that keep browsers safe.
async fn inner(mut request: Request, next: Next) -> Response {
    let reader = pages::problem::Reader::new(&mut request);
    let response = next.run(request).await;
    security::harden(reader.render(response))
}

/// Every route for programs with its description: there is no other way in, so none is missing from the document.
fn routes() -> Routes {
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
