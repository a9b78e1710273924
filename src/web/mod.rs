//! HTTP: the router, and serving it.
//!
//! Handlers are beside their resource, one file each with one `router()`. Knows the store and the
//! release through their own surfaces; writes no SQL and reads no files.

mod assets;
mod health;
mod home;
mod problem;
mod request_id;

use std::{future::Future, io, sync::Arc};

use axum::{Router, middleware};
use tokio::net::TcpListener;
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;

use crate::{onnx_runtime::OnnxRuntime, release::Release, store::Store};

pub use problem::{KINDS, Problem};
pub use request_id::RequestId;

/// What every handler may use. Cheap to clone: all of it is shared.
#[derive(Debug, Clone)]
pub struct AppState {
    pub store: Store,
    pub onnx_runtime: OnnxRuntime,
    /// None until a release is there: the catalogue can be browsed without one.
    pub release: Option<Arc<Release>>,
}

/// The whole application without a listener, so that a test can bind one of its own.
pub fn app(state: AppState) -> Router {
    Router::new()
        .merge(assets::router())
        .merge(home::router())
        .merge(health::router())
        .merge(problem::router())
        .fallback(async || Problem::NoSuchPage)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .with_state(state)
        .layer(CatchPanicLayer::custom(problem::from_panic))
        .layer(middleware::from_fn(problem::render))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(request_id::span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::INFO))
                // A problem logs itself, with its cause.
                .on_failure(()),
        )
        .layer(middleware::from_fn(request_id::assign))
}

/// Serves until `shutdown` is done, then lets the requests in progress finish.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, app(state)).with_graceful_shutdown(shutdown).await
}
