//! `/routing`: which method answers a request that names none.

use atelier_core::domain::Method;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    people::{Scope, gate::Caller},
    platform::http::{
        AppState, Problem, extract::Json, fault, routes::Routes, schema::MethodNameSchema,
        uncancelled::uncancelled,
    },
    releases::routing::Routing,
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(routing)).scoped(Scope::Admin, routes!(route))
}

/// Which method answers a request that names none.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Routing, example = json!({"default_method": "gsu"}))]
struct RoutingBody {
    /// Overrides the release's default method; null keeps it.
    #[serde(default)]
    #[schema(value_type = Option<MethodNameSchema>)]
    default_method: Option<Method>,
}

/// Routing
#[utoipa::path(get, path = "/routing", operation_id = "getRouting", tag = "releases", responses(
    (status = 200, description = "Which method answers a request that names none", body = RoutingBody),
))]
async fn routing(State(state): State<AppState>) -> Result<Json<RoutingBody>, Problem> {
    let Routing { default_method } = state.live_release()?.routing;
    Ok(Json(RoutingBody { default_method }))
}

/// Set the routing
///
/// Sets the method that answers requests that name none and are in no experiment (`/experiments`).
#[utoipa::path(put, path = "/routing", operation_id = "setRouting",
    tag = "releases", request_body = RoutingBody, responses(
    (status = 200, description = "The routing is set, on every replica within seconds", body = RoutingBody),
))]
async fn route(
    State(state): State<AppState>,
    Caller(author): Caller,
    Json(body): Json<RoutingBody>,
) -> Result<Json<RoutingBody>, Problem> {
    let live = state.live_release()?;
    let routing = Routing { default_method: body.default_method };
    if let Some(wrong) = routing.check(&live) {
        return Err(fault::problem(wrong.into()));
    }
    uncancelled(async move { state.releases().route(routing, author, state.now()).await }).await?;
    Ok(Json(body))
}
