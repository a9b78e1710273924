//! For balancers and operators: is the process alive, and is it ready for work?

use std::time::Instant;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::web::http::routes::Routes;
use crate::web::http::{AppState, Problem, extract::Json};
use crate::{models::engine::AskError, service::completion::CompletionError};

pub(crate) fn router() -> Routes {
    Routes::new().open(routes!(livez)).open(routes!(readyz))
}

#[derive(Serialize, ToSchema)]
struct Alive {
    #[schema(examples("alive"))]
    status: &'static str,
}

/// Whether the process is alive
///
/// It answers; nothing else is asked.
#[utoipa::path(get, path = "/livez", tag = "service", responses(
    (status = 200, description = "It is", body = Alive),
))]
async fn livez() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

#[derive(Serialize, ToSchema)]
struct Ready {
    #[schema(examples("ready"))]
    status: &'static str,
    database: &'static str,
    /// `none` where models are at a server.
    onnx_runtime: &'static str,
    release: String,
    /// What models compute on.
    device: &'static str,
}

/// Whether the service is ready for work
///
/// Asks the database something and the default method about an empty outfit: a service that cannot read its
/// profiles, or whose models do not answer, is not ready.
#[utoipa::path(get, path = "/readyz", tag = "service", responses(
    (status = 200, description = "It is", body = Ready),
    (status = 504, description = "A model did not answer within the deadline"),
))]
async fn readyz(State(state): State<AppState>) -> Result<Json<Ready>, Problem> {
    state.store.ping().await?;
    let live = state.live_release()?;
    let deadline = Instant::now() + state.limits.deadline();
    match live.serving.probe(live.choose(None).method, deadline).await {
        // Models that have all hands full do answer: a balancer must not take away whoever is busy.
        Ok(()) | Err(AskError::Full { .. }) => {}
        Err(error) => return Err(CompletionError::from(error).into()),
    }
    Ok(Json(Ready {
        status: "ready",
        database: state.store.kind(),
        onnx_runtime: state.releases.engine().onnx_runtime(),
        release: live.name().to_owned(),
        device: live.serving.device().as_str(),
    }))
}
