//! For balancers and operators: is the process alive, and is it ready for work?

use axum::{Json, Router, extract::State, routing::get};
use serde::Serialize;

use super::{AppState, Problem};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/livez", get(livez)).route("/readyz", get(readyz))
}

#[derive(Serialize)]
struct Alive {
    status: &'static str,
}

/// The process answers; nothing else is asked.
async fn livez() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    database: &'static str,
    onnx_runtime: &'static str,
    release: Option<String>,
}

/// Asks the database something; a service that cannot read its profiles is not ready.
async fn readyz(State(state): State<AppState>) -> Result<Json<Ready>, Problem> {
    state.store.ping().await?;
    Ok(Json(Ready {
        status: "ready",
        database: state.store.kind(),
        onnx_runtime: state.onnx_runtime.build_info(),
        release: state.release.map(|release| release.manifest().name.clone()),
    }))
}
