//! `/score`: how well an outfit's articles fit together for a customer.

use std::time::Duration;

use atelier_core::util::json_fields::read_present;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::complete::CompleteBody;
use crate::{
    completion::{
        ArticleScore, Filters, OutfitScore, Request, Warning, api::timing::TimingBody, asking::score_outfit,
    },
    people::Scope,
    platform::http::{
        AppState, Problem,
        extract::Json,
        fault,
        routes::Routes,
        schema::{CustomerIdSchema, FeaturesSchema, MethodNameSchema, scored_ids},
    },
    releases::routing::Route,
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(score))
}

/// A complete outfit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Score, example = json!({
    "features": {"gender": "female", "age": 34}, "outfit": ["a-00134", "a-01243", "a-00568", "a-00259"],
}))]
pub(crate) struct ScoreBody {
    /// The customer's id. Their profile must be stored, unless there are `features`, even `{}`.
    #[schema(value_type = Option<CustomerIdSchema>)]
    customer: Option<String>,
    /// Features of the customer or the occasion, by name. They override the profile.
    #[serde(default, deserialize_with = "read_present")]
    #[schema(value_type = FeaturesSchema)]
    features: Option<Map<String, Value>>,
    #[schema(schema_with = scored_ids)]
    outfit: Vec<String>,
    /// The method that scores; by default, the service's default method or an experiment's arm.
    #[schema(value_type = Option<MethodNameSchema>)]
    method: Option<String>,
    /// Leave out articles that do not exist, with the warning `unknown-article`. They are errors otherwise.
    #[serde(default)]
    skip_unknown: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Scored)]
pub(crate) struct ScoredBody {
    /// The release that answered.
    release: String,
    /// The method that scored.
    method: String,
    /// The device that the models run on.
    device: &'static str,
    /// Mean natural logarithm of the articles' probabilities, each given the others.
    mean_log_probability: f64,
    articles: Vec<ArticleScore>,
    /// The slot of the article that fits least, compared with others of its type.
    weakest: usize,
    warnings: Vec<Warning>,
    timing: TimingBody,
}

/// Score an outfit
///
/// Removes each article in turn and computes how likely the model is to suggest it again. The answer shows how well the
/// articles fit together for this customer, and which one fits least.
#[utoipa::path(post, path = "/score", operation_id = "scoreOutfit",
    tag = "completion", request_body = ScoreBody, responses(
    (status = 200, description = "Each article's probability given the others", body = ScoredBody,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "The method's queue is full, or the answer would be too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn score(
    State(state): State<AppState>,
    Json(body): Json<ScoreBody>,
) -> Result<(TimingBody, Json<ScoredBody>), Problem> {
    let scored = answer(&state, body).await?;
    Ok((scored.timing, Json(scored)))
}

pub(crate) async fn answer(state: &AppState, body: ScoreBody) -> Result<ScoredBody, Problem> {
    let times = state.times();
    let (route, request) = body.into_completion().route(state.live_release()?).read(times.now)?;
    let request = Request { filters: Filters::everything(), ..request };
    let score = score_outfit(&route, state.profiles(), request, times).await.map_err(fault::problem)?;
    Ok(ScoredBody::new(&route, score, times.begun.elapsed()))
}

impl ScoreBody {
    fn into_completion(self) -> CompleteBody {
        CompleteBody {
            customer: self.customer,
            features: self.features,
            outfit: self.outfit.into_iter().map(Some).collect(),
            method: self.method,
            skip_unknown: self.skip_unknown,
            ..CompleteBody::default()
        }
    }
}

impl ScoredBody {
    fn new(Route { live, method, .. }: &Route, score: OutfitScore, took: Duration) -> Self {
        Self {
            release: live.name().to_owned(),
            method: method.to_string(),
            device: live.serving.device().as_str(),
            mean_log_probability: score.mean_log_probability,
            articles: score.articles,
            weakest: score.weakest,
            warnings: score.warnings,
            timing: TimingBody::new(score.cost, took),
        }
    }
}
