//! `/releases` and `/methods`: the releases in the models folder, and the methods of the live one.

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    domain::Method,
    models::{
        engine::QueueState,
        release::{Manifest, MethodEntry, ReleaseError},
    },
    service::{
        access::Scope,
        administration::{self, list_releases},
        live_release::LiveRelease,
    },
    web::http::{
        AppState, Kind, Problem,
        extract::{Json, Path, ReleaseName},
        keys::Caller,
        routes::Routes,
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
    /// The device that the models run on.
    device: &'static str,
    /// Why a faster device could not be used, if one was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_note: Option<String>,
    /// The method that answers if the request names none and no experiment applies.
    #[schema(schema_with = method_name)]
    default_method: Method,
    methods: Vec<MethodBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Method)]
struct MethodBody {
    #[schema(schema_with = method_name)]
    method: Method,
    /// Number of parameters, without the embeddings of articles and features and the last dense layer.
    parameters: u64,
    /// Measurements on the validation split.
    #[schema(schema_with = free_object)]
    metrics: Map<String, Value>,
    /// Whether the method uses the customer's features.
    personal: bool,
    /// Number of jobs in the queue.
    waiting: usize,
    /// Maximum number of jobs in the queue.
    queue: usize,
}

/// Methods
///
/// The methods of the live release.
#[utoipa::path(get, path = "/methods", tag = "releases", responses(
    (status = 200, description = "The live release's methods", body = MethodsBody),
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
    /// The live release.
    active: Option<String>,
    releases: Vec<ReleaseBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Release)]
struct ReleaseBody {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// The data that the release was trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[schema(value_type = Vec<String>)]
    methods: Vec<Method>,
    /// Why the release cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Releases
///
/// All releases in the models folder. This reads only their manifests; activating a release checks its other files.
#[utoipa::path(get, path = "/releases", tag = "releases", responses(
    (status = 200, description = "The releases", body = ReleasesBody),
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
/// Loads the release beside the live one, tests it, and makes it live on every replica. Requests in progress finish
/// with the old one. Activating the live release reloads it.
#[utoipa::path(post, path = "/releases/{name}/activate", tag = "releases",
    params(("name" = String, Path, description = "The release's name", example = "demo")),
    responses(
        (status = 200, description = "The release is live", body = MethodsBody),
        (status = 404, description = "There is no such release"),
        (status = 409, description = "The release cannot be served; the old one stays live"),
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
