//! `/releases` and `/methods`: what is served, and what could be.

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{
    domain::Method,
    models::{
        engine::QueueState,
        release::{Manifest, MethodEntry, ReleaseError},
    },
    service::{
        administration::{self, list_releases},
        live_release::LiveRelease,
    },
    web::http::{
        AppState, Kind, Problem,
        extract::{Json, Path, ReleaseName},
        keys::Caller,
        schema::{free_object, method_name},
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Complete, routes!(methods))
        .scoped(Scope::Complete, routes!(releases))
        .unlimited(Scope::Admin, routes!(activate))
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
    Ok(Json(MethodsBody::new(&*state.live_release()?)))
}

impl MethodsBody {
    fn new(live: &LiveRelease) -> Self {
        let serving = &live.serving;
        let entries = &serving.release().manifest().methods;
        let body = |(entry, (method, state)): (&MethodEntry, (Method, QueueState))| MethodBody {
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
            release: live.name().to_owned(),
            device: serving.device().as_str(),
            device_note: serving.device_note().map(ToOwned::to_owned),
            default_method: live.choose(None).method,
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
    let listed =
        list_releases(&state.releases).await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let releases = listed.into_iter().map(|(name, manifest)| ReleaseBody::new(manifest, name)).collect();
    let active = state.releases.current().map(|live| live.name().to_owned());
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
    Caller(actor): Caller,
    Path(ReleaseName(name)): Path<ReleaseName>,
) -> Result<Json<MethodsBody>, Problem> {
    let live = administration::activate(&state.releases, &state.store, actor, &name, state.now()).await?;
    Ok(Json(MethodsBody::new(&live)))
}
