//! `/releases`, `/methods`, `/routing`: what is served, and which method answers where none is named.

use std::time::SystemTime;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    AppState, Finding, Kind, Problem,
    extract::{Json, Path, PathParameter, object_option, objects, whole},
    openapi::{free_object, method_name},
};
use crate::{
    offer::{Offer, OfferError},
    release::{Manifest, Method, MethodEntry, Release, ReleaseError},
    routing::{Arm, Experiment, Routing},
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(methods))
        .routes(routes!(releases))
        .routes(routes!(activate))
        .routes(routes!(routing, route))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Methods)]
struct MethodsBody {
    release: String,
    /// What models compute on.
    device: &'static str,
    /// Why it is not a better one, where that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_note: Option<String>,
    /// The method that answers where none is named and no experiment decides.
    #[schema(schema_with = method_name)]
    default_method: Method,
    methods: Vec<MethodBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Method)]
struct MethodBody {
    #[schema(schema_with = method_name)]
    method: Method,
    /// Without the embeddings of articles and features, and without the last dense layer.
    parameters: u64,
    /// What was measured of it on the validation split.
    #[schema(schema_with = free_object)]
    metrics: Map<String, Value>,
    /// Whether it sees the customer.
    personal: bool,
    /// Outfits that wait for it, and most that may.
    waiting: usize,
    queue: usize,
}

/// Methods
///
/// What the served release can answer with.
#[utoipa::path(get, path = "/methods", tag = "releases", responses(
    (status = 200, description = "The served release's methods", body = MethodsBody),
))]
async fn methods(State(state): State<AppState>) -> Result<Json<MethodsBody>, Problem> {
    Ok(Json(MethodsBody::new(&*state.offer()?)))
}

impl MethodsBody {
    fn new(offer: &Offer) -> Self {
        let serving = &offer.serving;
        let entries = &serving.release().manifest().methods;
        let body =
            |(entry, (method, state)): (&MethodEntry, (Method, crate::engine::QueueState))| MethodBody {
                method,
                parameters: entry.parameters,
                metrics: entry.metrics.clone(),
                personal: serving.takes_features(method),
                waiting: state.waiting,
                queue: state.limit,
            };
        let mut sorted: Vec<&MethodEntry> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry.method);
        Self {
            release: offer.name().to_owned(),
            device: serving.device().as_str(),
            device_note: serving.device_note().map(ToOwned::to_owned),
            default_method: offer.choose(None).method,
            methods: sorted.into_iter().zip(serving.queues()).map(body).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Releases)]
struct ReleasesBody {
    /// The one that is served.
    active: Option<String>,
    releases: Vec<ReleaseBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Release)]
struct ReleaseBody {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// The data that it was trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[schema(value_type = Vec<String>)]
    methods: Vec<Method>,
    /// Why it cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Releases
///
/// All in the models folder, by their manifests; what stands in their files is looked at when one is activated.
#[utoipa::path(get, path = "/releases", tag = "releases", responses(
    (status = 200, description = "What is there", body = ReleasesBody),
))]
async fn releases(State(state): State<AppState>) -> Result<Json<ReleasesBody>, Problem> {
    let offers = state.offers.clone();
    let look = move || -> std::io::Result<Vec<ReleaseBody>> {
        let names = offers.releases()?;
        Ok(names
            .into_iter()
            .map(|name| ReleaseBody::new(Release::manifest_of(&offers.folder_of(&name)), name))
            .collect())
    };
    let releases = task::spawn_blocking(look)
        .await
        .expect("looking does not panic; this is a bug")
        .map_err(|error| Problem::inside(Kind::Internal, error))?;
    let active = state.offers.current().map(|offer| offer.name().to_owned());
    Ok(Json(ReleasesBody { active, releases }))
}

impl ReleaseBody {
    fn new(manifest: Result<Manifest, ReleaseError>, name: String) -> Self {
        match manifest {
            Ok(manifest) => Self {
                name,
                created: Some(manifest.created),
                data: Some(manifest.data.name),
                methods: manifest.methods.iter().map(|entry| entry.method).collect(),
                refused: None,
            },
            Err(error) => Self {
                name,
                created: None,
                data: None,
                methods: Vec::new(),
                refused: Some(error.to_string()),
            },
        }
    }
}

/// Activate a release
///
/// It is loaded and tried out beside the one that answers, then takes its place at once, on every replica; requests
/// in progress finish with the old one. Activating the one that is served loads it anew.
#[utoipa::path(post, path = "/releases/{name}/activate", tag = "releases",
    params(("name" = String, Path, description = "The release's name", example = "demo")),
    responses(
        (status = 200, description = "It answers from now on", body = MethodsBody),
        (status = 404, description = "There is no such release"),
        (status = 409, description = "It cannot be served; the one before goes on answering"),
    ),
)]
async fn activate(
    State(state): State<AppState>,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Json<MethodsBody>, Problem> {
    let offer = state.offers.activate(&name, SystemTime::now().into()).await?;
    Ok(Json(MethodsBody::new(&offer)))
}

/// A release's name, which is its folder's.
#[derive(Debug)]
struct ReleaseName(String);

impl PathParameter for ReleaseName {
    fn parse(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if text.is_empty() || text.starts_with('.') || text.len() > 128 || !text.chars().all(plain) {
            return Err(format!(
                "a release's name has 1 to 128 letters, digits, dots, hyphens or underscores, found {text:?}"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl From<OfferError> for Problem {
    fn from(error: OfferError) -> Self {
        match error {
            OfferError::NoRelease { .. } => Self::new(Kind::NotFound, error.to_string()),
            OfferError::Load(_) => Self::new(Kind::Refused, error.to_string()),
            OfferError::Store(error) => error.into(),
        }
    }
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
    Ok(Json(Routing::clone(&state.offer()?.routing).into()))
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
    Json(body): Json<RoutingBody>,
) -> Result<Json<RoutingBody>, Problem> {
    let offer = state.offer()?;
    let routing = Routing::from(body);
    let wrong = faults(&routing, &offer);
    if !wrong.is_empty() {
        return Err(Problem::invalid(wrong));
    }
    state.offers.route(&routing, SystemTime::now().into()).await?;
    Ok(Json(routing.into()))
}

/// What is wrong with a routing, for the release that is served.
fn faults(routing: &Routing, offer: &Offer) -> Vec<Finding> {
    let arms = routing.experiment.iter().flat_map(|experiment| experiment.arms.iter().enumerate());
    let arms = arms.map(|(place, arm)| (format!("/experiment/arms/{place}/method"), arm.method));
    let default = routing.default_method.map(|method| ("/default_method".to_owned(), method));
    let unknown = |(pointer, method): (String, Method)| {
        let detail = format!("the release {} has no method {method}", offer.name());
        (!offer.serving.has(method)).then(|| Finding::at(pointer, detail))
    };
    let mut wrong: Vec<Finding> = default.into_iter().chain(arms).filter_map(unknown).collect();
    if let Some(Err(error)) = routing.experiment.as_ref().map(Experiment::check) {
        wrong.push(Finding::at("/experiment", error.to_string()));
    }
    wrong
}
