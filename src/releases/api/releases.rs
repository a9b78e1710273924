//! `/releases` and `/methods`: the releases in the models folder, and the methods of the live one.

use atelier_core::domain::Method;
use atelier_engine::{inference::QueueState, release::MethodEntry};
use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema, openapi::Schema};
use utoipa_axum::routes;

use crate::{
    people::{Scope, gate::Caller},
    platform::{
        db::Author,
        http::{
            AppState, Finding, Kind, Problem,
            extract::{Incoming, Json, Path, Query, ReleaseName, check_media_type},
            routes::Routes,
            schema::{BytesSchema, MethodNameSchema, free_object},
            spool::spool_to,
            uncancelled::uncancelled,
        },
    },
    releases::{
        LiveRelease,
        release_folder::{Listed, Packed},
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Complete, routes!(methods))
        .scoped(Scope::Complete, routes!(releases))
        .streaming(Scope::Admin, routes!(add))
        .unlimited(Scope::Admin, routes!(activate))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Methods)]
struct MethodsBody {
    /// The live release.
    release: String,
    /// The device that the models run on.
    device: &'static str,
    /// Why a faster device could not be used, if one was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_note: Option<String>,
    /// The method that answers if the request names none and no experiment applies.
    #[schema(value_type = MethodNameSchema)]
    default_method: Method,
    methods: Vec<MethodBody>,
}

/// A method of the live release.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Method)]
struct MethodBody {
    #[schema(value_type = MethodNameSchema)]
    method: Method,
    /// Number of parameters, without the embeddings of articles and features and the last dense layer.
    parameters: u64,
    #[schema(schema_with = describe_metrics)]
    metrics: Map<String, Value>,
    /// Whether the method uses the customer's features.
    personal: bool,
    /// Number of jobs in the queue.
    waiting: usize,
    /// Maximum number of jobs in the queue.
    queue: usize,
}

fn describe_metrics() -> Schema {
    free_object("Measurements on the validation split.")
}

/// Methods
///
/// The methods of the live release.
#[utoipa::path(get, path = "/methods", operation_id = "listMethods", tag = "releases", responses(
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
            default_method: live.default_method(),
            methods: sorted.into_iter().zip(serving.queues()).map(body).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Releases)]
struct ReleasesBody {
    /// The live release.
    active: Option<String>,
    /// By name.
    releases: Vec<ReleaseBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Release)]
struct ReleaseBody {
    /// The name of the release.
    name: String,
    /// When it was made (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// The data that the release was trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Its methods.
    #[schema(value_type = Vec<String>)]
    methods: Vec<Method>,
    /// Whether this process has loaded the release and tried its models since its files last changed. A release that
    /// has not been tried may still be refused when it is activated.
    tried: bool,
    /// Why the release cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Releases
///
/// All folders in the models folder, except hidden ones; `refused` says why one of them is no release, or cannot be
/// served. This reads their manifests and the sizes of their files, and remembers how loading
/// them ended; activating a release checks the contents of its files and tries its models.
#[utoipa::path(get, path = "/releases", operation_id = "listReleases", tag = "releases", responses(
    (status = 200, description = "The releases", body = ReleasesBody),
))]
async fn releases(State(state): State<AppState>) -> Result<Json<ReleasesBody>, Problem> {
    let listed = state.releases().list().await.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let releases = listed.into_iter().map(ReleaseBody::new).collect();
    let active = state.releases().current().map(|live| live.name().to_owned());
    Ok(Json(ReleasesBody { active, releases }))
}

impl ReleaseBody {
    fn new(listed: Listed) -> Self {
        let (refused, tried) = (listed.refused(), listed.tried.is_some());
        let manifest = listed.manifest.ok();
        Self {
            name: listed.name,
            created: manifest.as_ref().map(|manifest| manifest.created.clone()),
            data: manifest.as_ref().map(|manifest| manifest.data.name.clone()),
            methods: manifest
                .iter()
                .flat_map(|manifest| &manifest.methods)
                .map(|entry| entry.method)
                .collect(),
            tried,
            refused,
        }
    }
}

const SHA256: &str = "X-Content-SHA256";

/// Send a release
///
/// The body is a tar archive, plain or compressed with gzip: one folder, which has the release's name, with its files. It is added to the models
/// folder of the replica that answers if it passes the checks of loading; otherwise nothing is left of it. It is not
/// activated. A release is never replaced.
#[utoipa::path(post, path = "/releases", operation_id = "sendRelease", tag = "releases",
    params(("X-Content-SHA256" = String, Header, description = "The SHA-256 of the body, in hexadecimal", pattern = "^[0-9A-Fa-f]{64}$",
        example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")),
    request_body(content = BytesSchema, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "The release is in the models folder", body = ReleaseBody),
        (status = 409, description = "There is a release of this name, or it cannot be served"),
    ),
)]
async fn add(
    State(state): State<AppState>,
    Caller(author): Caller,
    request: Request,
) -> Result<(StatusCode, Json<ReleaseBody>), Problem> {
    let added = receive(state, author, request).await?;
    Ok((StatusCode::CREATED, Json(ReleaseBody::new(added))))
}

/// Adds the archive in a request's body.
pub(crate) async fn receive(state: AppState, author: Author, request: Request) -> Result<Listed, Problem> {
    check_media_type(request.headers(), "application/octet-stream or another type of a file", |found| {
        !found.starts_with("multipart/")
    })?;
    let sha256 = request.headers().get(SHA256).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if sha256.len() != 64 || !sha256.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let detail = format!("expected the body's SHA-256, 64 hexadecimal digits, found {sha256:?}");
        return Err(Problem::invalid(vec![Finding::parameter(SHA256, detail)]));
    }
    let (sha256, most) = (sha256.to_ascii_lowercase(), state.limits.release_bytes);
    let file = spool_to(state.releases().make_file(), Incoming::new(request, most, state.limits)).await?;
    uncancelled(async move {
        let packed = Packed { file, sha256, most };
        Ok(state.releases().add(packed, author, state.now()).await?)
    })
    .await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ActivateQuery {
    /// Activate the release even if it has too few of the catalogue's articles.
    #[serde(default)]
    force: bool,
}

/// Activate a release
///
/// Loads the release next to the live one, tests it, and makes it live on every replica. Requests in progress finish
/// with the old one. Activating the live release reloads it. A release that has under half of the catalogue's articles (`models.least_known`) is
/// refused unless it is forced.
#[utoipa::path(post, path = "/releases/{name}/activate", operation_id = "activateRelease", tag = "releases",
    params(
        ("name" = String, Path, description = "The release's name", example = "demo",
            pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"),
        ActivateQuery,
    ),
    responses(
        (status = 200, description = "The release is live", body = MethodsBody),
        (status = 404, description = "There is no such release"),
        (status = 409, description = "The release cannot be served, has too few of the catalogue's articles, or a running \
            experiment compares releases; the old one stays live"),
    ),
)]
async fn activate(
    State(state): State<AppState>,
    Caller(author): Caller,
    Path(ReleaseName(name)): Path<ReleaseName>,
    Query(ActivateQuery { force }): Query<ActivateQuery>,
) -> Result<Json<MethodsBody>, Problem> {
    let live = uncancelled(async move { state.releases().activate(&name, force, author, state.now()).await })
        .await?;
    Ok(Json(MethodsBody::new(&live)))
}
