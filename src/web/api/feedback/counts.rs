//! `/feedback/counts`: how often which method's suggestions are accepted.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{
    service::feedback::{Share, share},
    store::FeedbackCounts,
    web::http::{AppState, Problem, extract::Json},
};

pub(super) fn router() -> Routes {
    Routes::new().scoped(Scope::Feedback, routes!(counts))
}

/// Feedback by release, method and arm.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedbackCounts)]
struct CountsBody {
    items: Vec<CountBody>,
}

/// What became of one method's suggestions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedbackCount)]
struct CountBody {
    #[schema(examples("demo"))]
    release: String,
    #[schema(examples("gsu"))]
    method: String,
    /// The experiment's arm; null for what no experiment chose.
    arm: Option<String>,
    shown: u64,
    accepted: u64,
    rejected: u64,
    bought: u64,
    /// Accepted among shown; null where nothing was shown, or more accepted than shown.
    acceptance: Option<ShareBody>,
}

/// A share with its 95 % interval (Wilson's).
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Share)]
struct ShareBody {
    value: f64,
    low: f64,
    high: f64,
}

impl From<Share> for ShareBody {
    fn from(Share { value, low, high }: Share) -> Self {
        Self { value, low, high }
    }
}

/// How often suggestions are accepted
///
/// By release, method and the experiment's arm, with intervals: two methods whose intervals overlap widely
/// cannot be told apart yet.
#[utoipa::path(get, path = "/feedback/counts", tag = "feedback", responses(
    (status = 200, description = "The counts", body = CountsBody),
))]
async fn counts(State(state): State<AppState>) -> Result<Json<CountsBody>, Problem> {
    let counts = state.store.feedback().counts().await?;
    Ok(Json(CountsBody { items: counts.into_iter().map(CountBody::from).collect() }))
}

impl From<FeedbackCounts> for CountBody {
    fn from(counts: FeedbackCounts) -> Self {
        let FeedbackCounts { release, method, arm, shown, accepted, rejected, bought } = counts;
        let acceptance = share(accepted, shown).map(ShareBody::from);
        Self { release, method, arm, shown, accepted, rejected, bought, acceptance }
    }
}
