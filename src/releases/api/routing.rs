//! `/routing`: which method answers a request that names none.

use axum::extract::State;
use utoipa_axum::routes;

use crate::{
    people::{Scope, gate::Caller},
    platform::http::{AppState, Problem, extract::Json, fault, routes::Routes, uncancelled::uncancelled},
    releases::routing::Routing,
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(routing)).scoped(Scope::Admin, routes!(route))
}

/// Routing
#[utoipa::path(get, path = "/routing", operation_id = "getRouting", tag = "releases", responses(
    (status = 200, description = "Which method answers a request that names none", body = Routing),
))]
async fn routing(State(state): State<AppState>) -> Result<Json<Routing>, Problem> {
    Ok(Json(state.live_release()?.routing))
}

/// Set the routing
///
/// Sets the method that answers requests that name none and are in no experiment (`/experiments`).
#[utoipa::path(put, path = "/routing", operation_id = "setRouting",
    tag = "releases", request_body = Routing, responses(
    (status = 200, description = "The routing is set, on every replica within seconds", body = Routing),
))]
async fn route(
    State(state): State<AppState>,
    Caller(author): Caller,
    Json(routing): Json<Routing>,
) -> Result<Json<Routing>, Problem> {
    let live = state.live_release()?;
    if let Some(wrong) = routing.check(&live) {
        return Err(fault::problem(wrong.into()));
    }
    uncancelled(async move { state.releases().route(routing, author, state.now()).await }).await?;
    Ok(Json(routing))
}
