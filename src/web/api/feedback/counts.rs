//! `/feedback/counts`: how often which method's suggestions are accepted.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    store::FeedbackCounts,
    web::http::{AppState, Problem, extract::Json},
};

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(counts))
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
    acceptance: Option<Share>,
}

/// A share with its 95 % interval (Wilson's).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub(crate) struct Share {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
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
        Self { release, method, arm, shown, accepted, rejected, bought, acceptance: share(accepted, shown) }
    }
}

/// Wilson's score interval: unlike the usual one it stays within 0 and 1, and says something where nothing
/// or everything was accepted.
pub(crate) fn share(hits: u64, of: u64) -> Option<Share> {
    if of == 0 || hits > of {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (hits, of) = (hits as f64, of as f64);
    let value = hits / of;
    let spread = 1.0 + Z * Z / of;
    let centre = (value + Z * Z / (2.0 * of)) / spread;
    let half = Z / spread * (value * (1.0 - value) / of + Z * Z / (4.0 * of * of)).sqrt();
    // Rounding may step over what the formula gives exactly.
    Some(Share { value, low: (centre - half).clamp(0.0, value), high: (centre + half).clamp(value, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds are the roots x of (p − x)² = z²·x(1 − x)/n, solved as a quadratic in forty decimal digits.
    #[test]
    fn the_interval_is_wilsons() {
        for (hits, of, low, high) in [
            (10, 100, 0.055_229_137_060_675, 0.174_365_661_504_913),
            (0, 10, 0.0, 0.277_532_799_862_889),
            (10, 10, 0.722_467_200_137_111, 1.0),
        ] {
            let share = share(hits, of).unwrap();
            assert!((share.low - low).abs() < 1e-12 && (share.high - high).abs() < 1e-12, "{share:?}");
        }
        assert_eq!((share(0, 0), share(2, 1)), (None, None));
    }
}
