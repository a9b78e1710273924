//! `/holdout`: the customers who are answered without rules.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    people::{Scope, gate::Caller},
    platform::http::{AppState, Problem, extract::Json, fault, routes::Routes, uncancelled::uncancelled},
    releases::routing::Holdout,
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Rules, routes!(get, put))
}

/// The share of the customers who are answered without rules.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Holdout, example = json!({"share": 0.1}))]
struct HoldoutBody {
    /// Customers who are held out stay held out as the share grows.
    #[schema(minimum = 0, maximum = 0.5)]
    share: f64,
}

/// Holdout
#[utoipa::path(get, path = "/holdout", operation_id = "getHoldout", tag = "rules", responses(
    (status = 200, description = "The share of the customers who are answered without rules", body = HoldoutBody),
))]
async fn get(State(state): State<AppState>) -> Result<Json<HoldoutBody>, Problem> {
    Ok(Json(HoldoutBody { share: Holdout::read(&state.store).await?.share() }))
}

/// Set the holdout
///
/// Rules do not apply to this share of the named customers, from the next request, and on other replicas within a second. Feedback then
/// shows what each rule changes (`/rules/{name}/effect`).
#[utoipa::path(put, path = "/holdout", operation_id = "setHoldout", tag = "rules", request_body = HoldoutBody,
    responses((status = 200, description = "The holdout is set", body = HoldoutBody)),
)]
async fn put(
    State(state): State<AppState>,
    Caller(author): Caller,
    Json(body): Json<HoldoutBody>,
) -> Result<Json<HoldoutBody>, Problem> {
    let holdout = Holdout::new(body.share).map_err(|wrong| fault::problem(wrong.into()))?;
    uncancelled(async move { state.releases().hold_out(holdout, author, state.now()).await }).await?;
    Ok(Json(body))
}
