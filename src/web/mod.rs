//! HTTP: the router, and serving it.
//!
//! Handlers are beside their resource, one file each with one `router()`. Knows the store and the
//! release through their own surfaces; writes no SQL and reads no files.

mod articles;
mod assets;
mod audit;
mod bulk;
mod compare;
mod complete;
mod customers;
mod dashboard;
mod deadline;
mod docs;
mod extract;
mod features;
mod feedback;
mod health;
mod keys;
mod metrics;
mod openapi;
mod outfits;
mod paging;
mod pictures;
mod problem;
mod releases;
mod request_id;
mod routing;
mod score;
mod security;
mod serve;
mod served;
mod timing;
mod trace;
mod trace_parent;

use std::{ops::Deref, sync::Arc};

use axum::{
    Extension, Router,
    extract::{FromRef, Request, State},
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

use self::{keys::Keys, openapi::Documents};

use crate::{
    access::Access,
    completion::Secret,
    config::Limits,
    offer::{Offer, Offers},
    profiles::Profiles,
    store::Store,
    telemetry::Traces,
};

pub(crate) use assets::path as asset;
pub use metrics::{Metrics, SAMPLED};
pub use problem::{Finding, KINDS, Kind, Problem, ProblemBody};
pub use request_id::RequestId;
pub use serve::serve;

/// What every handler may use. Every request clones it more than once, so it is one pointer.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must reach no log")]
pub struct AppState(Arc<Parts>);

/// What is shared.
#[expect(missing_debug_implementations, reason = "it holds a secret, which must reach no log")]
pub struct Parts {
    pub store: Store,
    pub profiles: Profiles,
    pub offers: Arc<Offers>,
    pub limits: Limits,
    /// Signs the ids of completions.
    pub tickets: Secret,
    pub metrics: Metrics,
    pub access: Access,
    pub traces: Traces,
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl AppState {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// What completions are made from, for as long as one request takes.
    fn offer(&self) -> Result<Arc<Offer>, Problem> {
        self.offers.current().ok_or_else(|| {
            let detail = "no release is being served; make one with atelier-training, put it into the models \
                          folder and activate it";
            Problem::new(Kind::NoRelease, detail)
        })
    }
}

impl FromRef<AppState> for Limits {
    fn from_ref(state: &AppState) -> Self {
        state.limits
    }
}

/// The whole application without a listener, so that a test can bind one of its own.
pub fn app(state: AppState) -> Router {
    let (router, described) = routes().split_for_parts();
    let document = openapi::whole(described, state.limits, state.access.requires_key());
    let documents = Documents::new(&document);
    let keys = Keys::new(&document, state.access.clone(), state.limits.key_rate);
    let for_layers = state.clone();
    router
        .route_layer(middleware::from_fn_with_state(Arc::new(keys), keys::check))
        .merge(dashboard::router())
        .merge(pictures::router())
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
            Extension(documents),
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
    let reader = problem::Reader::new(&mut request);
    let response = deadline::hold(state.limits, request, next).await;
    security::harden(reader.render(response))
}

/// Every route for programs with its description: there is no other way in, so none is missing from the document.
fn routes() -> OpenApiRouter<AppState> {
    openapi::described()
        .merge(articles::router())
        .merge(compare::router())
        .merge(complete::router())
        .merge(customers::router())
        .merge(docs::router())
        .merge(feedback::router())
        .merge(health::router())
        .merge(metrics::router())
        .merge(openapi::router())
        .merge(outfits::router())
        .merge(problem::router())
        .merge(releases::router())
        .merge(routing::router())
        .merge(score::router())
}

async fn no_such_page(uri: Uri) -> Problem {
    Problem::new(Kind::NotFound, format!("nothing is at {}", uri.path()))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(Kind::MethodNotAllowed, format!("{} does not take {method}", uri.path()))
}
