//! `/routing`: which method answers where none is named.

use std::time::SystemTime;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::web::http::schema::method_name;
use crate::web::http::{
    AppState, Finding, Problem,
    extract::{Json, object_option, objects, whole},
    keys::Caller,
};
use crate::{
    domain::Method,
    service::{
        live_release::LiveRelease,
        routing::{Arm, Experiment, Routing},
    },
    store::{Actor, StoreError},
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(routing, route))
}

/// Which method answers where none is named.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Routing)]
struct RoutingBody {
    /// Instead of the release's own default; null is that.
    #[serde(default)]
    #[schema(value_type = Option<String>, examples("gsu"))]
    default_method: Option<Method>,
    /// Traffic of known customers split between methods; null is none.
    #[serde(default, deserialize_with = "object_option")]
    experiment: Option<ExperimentBody>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Experiment)]
struct ExperimentBody {
    /// Feedback is counted by it; another name splits the customers anew.
    #[schema(examples("autumn"), max_length = 64)]
    name: String,
    #[schema(min_items = 2, max_items = 10)]
    #[serde(deserialize_with = "objects")]
    arms: Vec<ArmBody>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Arm)]
struct ArmBody {
    #[schema(schema_with = method_name)]
    method: Method,
    /// Of the customers, beside the other arms' shares.
    #[schema(minimum = 1)]
    #[serde(deserialize_with = "whole")]
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
#[utoipa::path(get, path = "/routing", tag = "releases", responses(
    (status = 200, description = "Which method answers where none is named", body = RoutingBody),
))]
async fn routing(State(state): State<AppState>) -> Result<Json<RoutingBody>, Problem> {
    Ok(Json(Routing::clone(&state.live_release()?.routing).into()))
}

/// Set the routing
///
/// The method that answers where a request names none, and an experiment that splits known customers between
/// methods: each customer stays with one for as long as the experiment keeps its name and arms.
#[utoipa::path(put, path = "/routing", tag = "releases", request_body = RoutingBody, responses(
    (status = 200, description = "It holds from now on, on every replica within seconds", body = RoutingBody),
))]
async fn route(
    State(state): State<AppState>,
    Caller(actor): Caller,
    Json(body): Json<RoutingBody>,
) -> Result<Json<RoutingBody>, Problem> {
    let live = state.live_release()?;
    let routing = Routing::from(body);
    let wrong = faults(&routing, &live);
    if !wrong.is_empty() {
        return Err(Problem::invalid(wrong));
    }
    set_routing(&state, actor, &routing).await?;
    Ok(Json(routing.into()))
}

/// Sets the routing, which has no faults, and writes it down.
pub(crate) async fn set_routing(state: &AppState, actor: Actor, routing: &Routing) -> Result<(), StoreError> {
    let before = state.releases.current().map(|live| live.routing.to_string());
    state.releases.route(routing, SystemTime::now().into()).await?;
    state.note(actor, "routing.set", "routing", json!({"before": before, "after": routing.to_string()})).await
}

/// What is wrong with a routing, for the release that is served.
pub(crate) fn faults(routing: &Routing, live: &LiveRelease) -> Vec<Finding> {
    let arms = routing.experiment.iter().flat_map(|experiment| experiment.arms.iter().enumerate());
    let arms = arms.map(|(place, arm)| (format!("/experiment/arms/{place}/method"), arm.method));
    let default = routing.default_method.map(|method| ("/default_method".to_owned(), method));
    let unknown = |(pointer, method): (String, Method)| {
        let detail = format!("the release {} has no method {method}", live.name());
        (!live.serving.has(method)).then(|| Finding::at(pointer, detail))
    };
    let mut wrong: Vec<Finding> = default.into_iter().chain(arms).filter_map(unknown).collect();
    if let Some(Err(error)) = routing.experiment.as_ref().map(Experiment::check) {
        wrong.push(Finding::at("/experiment", error.to_string()));
    }
    wrong
}
