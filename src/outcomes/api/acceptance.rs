//! `/feedback/acceptance`: how often suggestions of the last days were accepted.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::{
    outcomes::{
        Source,
        acceptance::{self, By, OutcomesBody, USUAL_DAYS},
        sql::acceptance::{CountedOnly, Outcomes},
    },
    people::Scope,
    platform::http::{
        AppState, Finding, Problem,
        extract::{Json, Query},
        fault,
        routes::Routes,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Feedback, routes!(get))
}

const MOST_DAYS: u32 = 3650;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AcceptanceQuery {
    /// `day` (in UTC), `method`, `release`, `arm`, `type`, `slot`, `articles` (those that the release was trained with, and new
    /// ones), `source` (who reported it), or a feature of the customers such as `customer.age`, as their profiles have it now. By day if it is not given.
    #[param(example = "day", pattern = r"^(day|method|release|arm|type|slot|articles|source|customer\..*)$")]
    by: Option<String>,
    /// Counts suggestions that were shown in the last days, including today. 30 if it is not given.
    #[param(minimum = 1, maximum = 3650, example = 30)]
    days: Option<u32>,
    /// Counts only suggestions of this release.
    release: Option<String>,
    /// Counts only suggestions of this method.
    method: Option<String>,
    /// Counts only suggestions of this arm of an experiment.
    #[param(example = "autumn/gsu")]
    arm: Option<String>,
    /// Counts only suggestions of articles of this type.
    r#type: Option<String>,
    /// Counts only suggestions for this slot of the outfit.
    #[param(minimum = 0, maximum = 255)]
    slot: Option<u8>,
    /// Counts only what was reported by the shop (`shop`), or by pages that name no customer (`pages`). Anyone can make up the
    /// latter.
    source: Option<Source>,
}

/// A period alone.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DaysQuery {
    /// The last days, including today (in UTC). 30 if it is not given.
    #[param(minimum = 1, maximum = 3650, example = 30)]
    days: Option<u32>,
}

impl DaysQuery {
    pub(crate) fn read(self) -> Result<u32, Problem> {
        let days = self.days.unwrap_or(USUAL_DAYS);
        if (1..=MOST_DAYS).contains(&days) {
            return Ok(days);
        }
        let detail = format!("a period has 1 to {MOST_DAYS} days, found {days}");
        Err(Problem::invalid(vec![Finding::parameter("days", detail)]))
    }
}

/// How often suggestions were accepted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Acceptance)]
struct AcceptanceBody {
    /// Days and slots in order; others by number of suggestions; values of a feature in the schema's order. With a set, a customer
    /// counts for each of its values.
    items: Vec<AcceptanceItem>,
    total: OutcomesBody,
}

/// The suggestions of one day, method, …
#[derive(Debug, Serialize, ToSchema)]
struct AcceptanceItem {
    /// The day, method, slot or whatever else `by` names.
    #[schema(examples("2026-11-21"))]
    value: String,
    #[serde(flatten)]
    outcomes: OutcomesBody,
}

/// Acceptance
///
/// How often suggestions of the last days were accepted, by day, method, experiment arm, type, slot, or a feature of the customers.
/// Later events count on the day when the suggestion was shown.
#[utoipa::path(get, path = "/feedback/acceptance", operation_id = "getAcceptance",
    tag = "feedback", params(AcceptanceQuery), responses(
    (status = 200, description = "The figures", body = AcceptanceBody),
))]
async fn get(
    State(state): State<AppState>,
    Query(query): Query<AcceptanceQuery>,
) -> Result<Json<AcceptanceBody>, Problem> {
    let refuse = |detail| Problem::invalid(vec![Finding::parameter("by", detail)]);
    let AcceptanceQuery { release, method, arm, r#type, slot, source, .. } = query;
    let slot = slot.map(u32::from);
    let only = CountedOnly { release, method, arm, article_type: r#type, slot, source };
    let by = query.by.map_or(Ok(By::DAY), |by| by.parse()).map_err(refuse)?;
    let days = DaysQuery { days: query.days }.read()?;
    let schema = state.releases().schema();
    let found = acceptance::acceptance(&state.store, &schema, &by, &only, days, state.now());
    let found = found.await.map_err(fault::query_problem)?;
    let item = |(value, outcomes): (String, Outcomes)| AcceptanceItem { value, outcomes: outcomes.into() };
    Ok(Json(AcceptanceBody { items: found.rows.into_iter().map(item).collect(), total: found.total.into() }))
}
