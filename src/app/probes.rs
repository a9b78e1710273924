//! Health checks for load balancers and operators.

use std::sync::Arc;

use atelier_engine::catalogue::Coverage;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::health::Health;
use crate::platform::http::{AppState, Kind, Problem, extract::Json, routes::Routes};

pub(crate) fn router() -> Routes {
    Routes::new().open(routes!(livez)).open(routes!(readyz))
}

#[derive(Serialize, ToSchema)]
struct Alive {
    /// Always `alive`.
    #[schema(examples("alive"))]
    status: &'static str,
}

/// Liveness
///
/// Answers if the process is alive; checks nothing else.
#[utoipa::path(get, path = "/livez", operation_id = "getLiveness", tag = "service", responses(
    (status = 200, description = "The process is alive", body = Alive),
))]
async fn livez() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

#[derive(Serialize, ToSchema)]
struct Ready {
    /// Always `ready`.
    #[schema(examples("ready"))]
    status: &'static str,
    /// Whether this is the demo, where nothing is private.
    demo: bool,
    /// `SQLite` or `Postgres`.
    database: &'static str,
    /// The version of ONNX Runtime; `none` if a server runs the models.
    onnx_runtime: &'static str,
    /// The live release.
    release: String,
    /// The device that the models run on.
    device: &'static str,
    articles: CoverageBody,
    /// If it is not, the changes of articles since would take more than this replica's `limits.catalogue_bytes`; its log says how much.
    catalogue_current: bool,
    /// The release that a running experiment needs besides the live one.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_release: Option<SecondBody>,
}

/// A release next to the live one.
#[derive(Serialize, ToSchema)]
#[schema(as = SecondRelease)]
struct SecondBody {
    /// Its name.
    release: String,
    /// The experiment that needs it.
    experiment: String,
    /// If it is not, the experiment has no customers on this replica; its log says why.
    loaded: bool,
}

/// How many articles the catalogue and the live release have.
#[derive(Serialize, ToSchema)]
#[schema(as = Coverage)]
struct CoverageBody {
    /// Articles of the catalogue that the release was trained with.
    both: usize,
    /// Articles that the release was not trained with: only some methods can suggest them.
    only_in_catalogue: usize,
    /// Articles that the shop does not have.
    only_in_release: usize,
}

/// Readiness
///
/// Each second the service queries the database and lets the default method complete an empty outfit; this reports the
/// result. The service is not ready if the database (in three seconds; then its breaker is open, and other requests do not wait for it)
/// or the model does not answer, if the `SQLite` file was
/// deleted, replaced or damaged, or once it was told to stop: for `server.unready_ms` it still answers other requests. It is
/// ready even if the release has none of the catalogue's articles, which `articles` shows.
#[utoipa::path(get, path = "/readyz", operation_id = "getReadiness", tag = "service", responses(
    (status = 200, description = "The service is ready", body = Ready),
    (status = 504, description = "A model did not answer within the deadline"),
))]
async fn readyz(State(state): State<AppState>) -> Result<Json<Ready>, Problem> {
    if state.is_stopping() {
        return Err(Problem::new(
            Kind::Stopping,
            "this replica was told to stop; send new requests to another one",
        ));
    }
    if state.store.is_gone() {
        let detail =
            "the database does not answer: requests that need it are refused without waiting (breaker open)";
        return Err(Problem::new(Kind::Unavailable, detail));
    }
    state.part::<Arc<Health>>().check()?;
    let live = state.live_release()?;
    let Coverage { both, only_catalogue, only_release } = live.catalogue.coverage();
    Ok(Json(Ready {
        status: "ready",
        demo: state.is_demo(),
        database: state.store.kind(),
        onnx_runtime: state.releases().engine().onnx_runtime(),
        release: live.name().to_owned(),
        device: live.serving.device().as_str(),
        articles: CoverageBody { both, only_in_catalogue: only_catalogue, only_in_release: only_release },
        catalogue_current: live.has_all_articles(),
        second_release: live.beside.as_ref().map(|beside| SecondBody {
            release: beside.release.clone(),
            experiment: beside.experiment.to_string(),
            loaded: beside.loaded.is_ok(),
        }),
    }))
}
