//! `/routing`: which method answers a request that names none.

use atelier_core::domain::Method;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    service::{
        access::Scope,
        administration::check_routing,
        fault::ServiceError,
        routing::{Arm, Experiment, Routing},
    },
    web::{
        api::fault,
        http::{
            AppState, Problem,
            extract::{Json, read_integer, read_objects, read_optional_object},
            keys::Caller,
            routes::Routes,
            schema::MethodNameSchema,
            uncancelled::uncancelled,
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(routing)).scoped(Scope::Admin, routes!(route))
}

/// Which method answers a request that names none.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Routing, example = json!({
    "default_method": "gsu",
    "experiment": {"name": "autumn", "arms": [{"method": "gsu", "share": 9}, {"method": "none", "share": 1}]},
}))]
struct RoutingBody {
    /// Overrides the release's default method; null keeps it.
    #[serde(default)]
    #[schema(value_type = Option<MethodNameSchema>)]
    default_method: Option<Method>,
    /// Splits known customers between methods; null for no experiment.
    #[serde(default, deserialize_with = "read_optional_object")]
    experiment: Option<ExperimentBody>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Experiment)]
struct ExperimentBody {
    /// Feedback is counted by this name. A new name assigns the customers to arms again.
    #[schema(examples("autumn"), pattern = "^[A-Za-z0-9._-]{1,64}$")]
    name: String,
    #[schema(min_items = 2, max_items = 11)]
    #[serde(deserialize_with = "read_objects")]
    arms: Vec<ArmBody>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Arm)]
struct ArmBody {
    #[schema(value_type = MethodNameSchema)]
    method: Method,
    /// Share of the customers, relative to the other arms' shares.
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    #[serde(deserialize_with = "read_integer")]
    share: u32,
}

impl From<Routing> for RoutingBody {
    fn from(routing: Routing) -> Self {
        let arm = |Arm { method, share }| ArmBody { method, share };
        let experiment =
            |Experiment { name, arms }| ExperimentBody { name, arms: arms.into_iter().map(arm).collect() };
        Self { default_method: routing.default_method, experiment: routing.experiment.map(experiment) }
    }
}

impl From<RoutingBody> for Routing {
    fn from(body: RoutingBody) -> Self {
        let arm = |ArmBody { method, share }| Arm { method, share };
        let experiment =
            |ExperimentBody { name, arms }| Experiment { name, arms: arms.into_iter().map(arm).collect() };
        Self { default_method: body.default_method, experiment: body.experiment.map(experiment) }
    }
}

/// Routing
#[utoipa::path(get, path = "/routing", operation_id = "getRouting", tag = "releases", responses(
    (status = 200, description = "Which method answers a request that names none", body = RoutingBody),
))]
async fn routing(State(state): State<AppState>) -> Result<Json<RoutingBody>, Problem> {
    Ok(Json(Routing::clone(&state.live_release()?.routing).into()))
}

/// Set the routing
///
/// Sets the method that answers requests that name none, and an experiment that splits known customers between methods.
/// Each customer stays with one method while the experiment keeps its name and arms.
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
    let routing = Routing::from(body);
    let faults = check_routing(&routing, &live);
    if !faults.is_empty() {
        return Err(fault::problem(ServiceError::Faults(faults)));
    }
    let (routing, set) = uncancelled(async move {
        let set = state.releases.route(&routing, author, state.now()).await;
        (routing, set)
    })
    .await;
    set?;
    Ok(Json(routing.into()))
}
