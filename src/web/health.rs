//! For balancers and operators: is the process alive, and is it ready for work?

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{AppState, Problem, extract::Json};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(livez)).routes(routes!(readyz))
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
    onnx_runtime: &'static str,
    release: Option<String>,
}

/// Whether the service is ready for work
///
/// Asks the database something: a service that cannot read its profiles is not ready.
#[utoipa::path(get, path = "/readyz", tag = "service", responses(
    (status = 200, description = "It is", body = Ready),
))]
async fn readyz(State(state): State<AppState>) -> Result<Json<Ready>, Problem> {
    state.store.ping().await?;
    Ok(Json(Ready {
        status: "ready",
        database: state.store.kind(),
        onnx_runtime: state.onnx_runtime.build_info(),
        release: state.release.map(|release| release.manifest().name.clone()),
    }))
}
