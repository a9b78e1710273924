//! The HTTP server: the router of all routes, and serving it.
//!
//! Each feature has its `router()`s, of routes for programs and of pages.

mod following;
mod health;
pub(crate) mod operations;
mod pages;
mod probes;
mod shop;
mod state;

pub use self::{following::following, state::Parts};

use std::{io, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use tokio::net::TcpListener;

use crate::{
    agents, catalogue, completion, customers, experiments, imports, outcomes, outfits,
    people::gate::{self, Gate},
    platform::{
        self,
        http::{
            AppState, Kind, METHODS, Problem, Published, RequestId, compression, host,
            https::is_https,
            metrics, openapi,
            peer::Peer,
            problem, request_id,
            routes::{Routes, VERSION},
            security,
            serve::{self as server, Listener, Work},
            trace::{self, TraceParent},
        },
        page::docs,
    },
    privacy, releases, steering,
    telemetry::log,
};

/// Serves the application until `shutdown` completes, then lets the requests in progress finish.
pub async fn serve(
    listener: impl Into<Listener>,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let Listener { tcp, tls } = listener.into();
    let tcp = tcp.into_std()?;
    let (limits, work, router) = (state.limits, state.part::<Work>().clone(), app(state.clone()));
    let threads = work.clone();
    let serving = async move {
        let listener = Listener { tcp: TcpListener::from_std(tcp)?, tls };
        tokio::select! {
            served = server::serve(listener, router, limits, work, shutdown) => served,
            never = health::watch(state) => match never {},
        }
    };
    threads.serve(serving).await
}

/// The application without a listener, so that a test can bind its own.
pub fn app(state: AppState) -> Router {
    let (router, document, guards) = routes().into_parts();
    let document = openapi::finish(&document, &guards, state.limits, gate::describe);
    state.publish(Published {
        openapi: openapi::simplified(&document),
        page: docs::render(&document, state.is_demo()),
        tools: agents::describe(&document),
    });
    let work = state.part::<Work>().clone();
    let gate = Gate::new(state.access().clone(), state.clock.clone(), state.limits, guards, work);
    let around = middleware::from_fn_with_state(Arc::new((state.clone(), gate)), around);
    Router::new()
        .nest(VERSION, router.clone())
        .merge(router)
        .merge(pages::router())
        .merge(catalogue::page::pictures::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state)
        // The only one, because axum boxes and clones everything inside of each layer for every request.
        .layer(around)
}

/// Surrounds every request: gives it its ids, measures it and compresses its answer.
async fn around(State(outside): State<Arc<(AppState, Gate)>>, mut request: Request, next: Next) -> Response {
    let (state, gate) = &*outside;
    let timer = metrics::RequestTimer::start(&request);
    let parent = TraceParent::from_caller(&mut request);
    let id = request_id::assign(&mut request);
    Peer::see_through(&state.trusted_proxies, &mut request);
    let cross_origin =
        state.cross_origins.answer(&request, gate.is_for_pages(&request), gate::has_publishable_key);
    let accepted = compression::accepted(request.headers());
    let run = |request| {
        let names = request_id::for_log(&request);
        log::scope(Some(names), answer(state, gate, request, &id, next))
    };
    let mut response = trace::follow(&state.traces, request, run).await;
    id.put_on(&mut response);
    if let Some(parent) = parent {
        parent.put_on(&mut response);
    }
    if let Some(cross_origin) = cross_origin {
        cross_origin.put_on(&mut response);
    }
    timer.stop(&state.metrics, &response);
    compression::compress(accepted, response, state.part()).await
}

/// Refuses a request without a host, lets the gate admit it to its handler, gives a problem or a panic its body, and every
/// answer its security headers and its line in the log.
async fn answer(state: &AppState, gate: &Gate, mut request: Request, id: &RequestId, next: Next) -> Response {
    let begun = Instant::now();
    let rendering = platform::page::problem::Rendering::new(&mut request, state.is_demo());
    let https = is_https(request.headers(), request.extensions());
    let answer = async {
        match host::check(&request) {
            Ok(()) => gate.admit(request, next).await,
            Err(problem) => problem.into_response(),
        }
    };
    let answer = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(problem::from_panic);
    let response = security::harden(rendering.render(answer, id), https);
    let (latency, status) = (begun.elapsed().as_millis(), response.status().as_u16());
    tracing::info!(latency = format_args!("{latency} ms"), status, "finished processing request");
    response
}

/// Every API route with its description. Routes cannot be added without one, so the document is complete.
pub(crate) fn routes() -> Routes {
    openapi::empty_document()
        .merge(outcomes::api::acceptance::router())
        .merge(catalogue::api::router())
        .merge(completion::api::compare::router())
        .merge(completion::api::complete::router())
        .merge(outcomes::api::coverage::router())
        .merge(customers::api::router())
        .merge(docs::router())
        .merge(outcomes::api::events::router())
        .merge(experiments::api::router())
        .merge(outcomes::api::feedback::router())
        .merge(imports::api::bulk::router())
        .merge(imports::api::feeds::router())
        .merge(probes::router())
        .merge(steering::api::holdout::router())
        .merge(imports::api::imports::router())
        .merge(metrics::router())
        .merge(openapi::router())
        .merge(outfits::api::router())
        .merge(privacy::router())
        .merge(platform::page::problem::router())
        .merge(releases::api::releases::router())
        .merge(releases::api::routing::router())
        .merge(steering::api::rules::router())
        .merge(steering::api::looks::router())
        .merge(agents::router())
        .merge(completion::api::score::router())
        .merge(completion::api::similar::router())
        .merge(imports::api::sources::router())
}

async fn not_found(method: Method, uri: Uri) -> Response {
    // `OPTIONS *` asks about the service as a whole (RFC 9110, 9.3.7).
    if method == Method::OPTIONS && uri.path() == "*" {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, METHODS)]).into_response();
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
