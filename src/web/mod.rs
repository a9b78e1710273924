//! The HTTP server: the router of all routes, and serving it.
//!
//! Each resource is one file with its handlers and one `router()`. This module uses the store and the release
//! through their public functions; it writes no SQL and reads no files.

mod api;
mod http;
mod pages;

use std::{io, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tokio::net::TcpListener;
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;

use self::{
    api::openapi::{self, OpenApiDocument},
    http::{
        compression,
        compression::PlainLength,
        deadline, health, host,
        https::is_https,
        keys::{self, Gate},
        metrics, problem, request_id,
        routes::{Routes, VERSION},
        security,
        serve::{Connections, Work},
        trace::{self, TraceParent},
    },
    pages::docs::DocsPage,
};

pub use http::serve::Listener;
pub use http::tls::{Tls, TlsError};
pub use http::{
    AppState, CrossOrigins, Finding, KINDS, Kind, Metrics, Parts, Problem, ProblemBody, RequestId, SAMPLED,
};

/// Serves the application until `shutdown` completes, then lets the requests in progress finish.
pub async fn serve(
    listener: impl Into<Listener>,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let Listener { tcp, tls } = listener.into();
    let tcp = tcp.into_std()?;
    let (limits, work, router) = (state.limits, Work::here(), app(state.clone()));
    let serving = async move {
        let listener = Listener { tcp: TcpListener::from_std(tcp)?, tls };
        tokio::select! {
            served = http::serve::serve(listener, router, limits, work, shutdown) => served,
            never = health::watch(state) => match never {},
        }
    };
    Connections::start()?.run(serving).await
}

/// The application without a listener, so that a test can bind its own.
pub fn app(state: AppState) -> Router {
    let (router, document, guards) = routes().into_parts();
    let document = openapi::finish(&document, &guards, state.limits);
    let (json, page) = (OpenApiDocument::new(&document), DocsPage::new(&document, state.is_demo()));
    let gate = Gate::new(state.access.clone(), state.clock.clone(), state.limits, guards);
    let pages = pages::router().merge(pages::pictures::router());
    let pages = pages.route_layer(middleware::from_fn_with_state(state.clone(), deadline::layer));
    let layer_state = state.clone();
    let router = router.route_layer(middleware::from_fn_with_state(Arc::new(gate), keys::check));
    Router::new()
        .nest(VERSION, router.clone())
        .merge(router)
        .merge(pages)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state)
        // The outermost layer comes first. One tuple, because axum boxes and clones everything inside of each separate
        // `layer` for every request.
        .layer((
            compression::layer(),
            middleware::from_fn_with_state(layer_state.clone(), outer),
            TraceLayer::new_for_http()
                .make_span_with(request_id::span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::INFO))
                // A problem logs itself, with its cause.
                .on_failure(()),
            middleware::from_fn_with_state(layer_state, inner),
            CatchPanicLayer::custom(problem::from_panic),
            Extension(json),
            Extension(page),
        ))
}

/// Outside of the request's log span: measures the request and gives it its ids.
async fn outer(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let timer = metrics::RequestTimer::start(&request);
    let parent = TraceParent::from_caller(&mut request);
    let id = request_id::assign(&mut request);
    let cross_origin = state.cross_origins.answer(&request);
    let mut response = trace::follow(&state.traces, request, next).await;
    id.put_on(&mut response);
    if let Some(parent) = parent {
        parent.put_on(&mut response);
    }
    if let Some(cross_origin) = cross_origin {
        cross_origin.put_on(&mut response);
    }
    timer.stop(&state.metrics, &response);
    PlainLength::note(&mut response);
    response
}

/// Refuses a request without a host, gives a problem its body, and every answer its security headers.
async fn inner(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let rendering = pages::problem::Rendering::new(&mut request, state.is_demo());
    let https = is_https(request.headers(), request.extensions());
    let response = match host::check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    security::harden(rendering.render(response), https)
}

/// Every API route with its description. Routes cannot be added without one, so the document is complete.
fn routes() -> Routes {
    openapi::empty_document()
        .merge(api::acceptance::router())
        .merge(api::articles::router())
        .merge(api::compare::router())
        .merge(api::complete::router())
        .merge(api::coverage::router())
        .merge(api::customers::router())
        .merge(pages::docs::router())
        .merge(api::feedback::router())
        .merge(api::feeds::router())
        .merge(api::health::router())
        .merge(api::imports::router())
        .merge(metrics::router())
        .merge(openapi::router())
        .merge(api::outfits::router())
        .merge(pages::problem::router())
        .merge(api::releases::router())
        .merge(api::routing::router())
        .merge(api::score::router())
        .merge(api::sources::router())
}

async fn not_found(method: Method, uri: Uri) -> Response {
    // `OPTIONS *` asks about the service as a whole (RFC 9110, 9.3.7).
    if method == Method::OPTIONS && uri.path() == "*" {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, http::METHODS)]).into_response();
    }
    Problem::new(Kind::NotFound, format!("no page or resource has the path {}", uri.path())).into_response()
}

/// The router adds the methods that the path takes, in `Allow`.
async fn method_not_allowed(method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(Kind::MethodNotAllowed, format!("{} does not support {method}", uri.path())).into_response()
}
