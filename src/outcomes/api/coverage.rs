//! `/coverage`: which of the shop's articles the live release was trained with, and how the others fare.

use atelier_core::domain::Method;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    outcomes::acceptance::{self, OutcomesBody},
    people::Scope,
    platform::http::{AppState, Problem, extract::Json, routes::Routes},
    releases::coverage::{self, Report},
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Catalogue, routes!(get))
}

/// The most unknown values of an answer.
const MOST_VALUES: usize = 100;

/// How the catalogue and the live release overlap.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArticleCoverage)]
struct CoverageBody {
    /// The live release.
    #[schema(examples("demo"))]
    release: String,
    /// Number of the catalogue's articles that the release was trained with.
    known: usize,
    /// Number of the catalogue's articles that it was not trained with.
    new: usize,
    /// Number of articles that it was trained with and that are no longer in the catalogue.
    retired: usize,
    /// The methods that suggest new articles.
    #[schema(value_type = Vec<String>)]
    open_methods: Vec<Method>,
    /// Types and values of new articles that the release does not know, the most frequent first; at most 100.
    unknown: Vec<UnknownBody>,
    /// Number of further such values.
    more_unknown: usize,
    feedback: FeedbackBody,
}

/// A value that the release does not know.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UnknownValue)]
struct UnknownBody {
    /// `type`, or the name of an attribute.
    #[schema(examples("colour"))]
    attribute: String,
    /// In lower case.
    #[schema(examples("chartreuse"))]
    value: String,
    /// Number of new articles that have it.
    articles: u64,
}

/// Feedback on the release's suggestions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CoverageFeedback)]
struct FeedbackBody {
    /// Articles that it was trained with.
    known: OutcomesBody,
    /// Articles that it was not trained with.
    new: OutcomesBody,
}

/// Coverage of the catalogue
///
/// How many articles the live release was trained with, how many are new to it, what of them it does not know, and how
/// often suggestions of both were shown and accepted.
#[utoipa::path(get, path = "/coverage", operation_id = "getCoverage", tag = "articles", responses(
    (status = 200, description = "The live release's coverage", body = CoverageBody),
))]
async fn get(State(state): State<AppState>) -> Result<Json<CoverageBody>, Problem> {
    let live = state.live_release()?;
    let (known, new) = acceptance::of_known_and_new(&state.store, live.name()).await?;
    let feedback = FeedbackBody { known: known.into(), new: new.into() };
    Ok(Json(CoverageBody::new(live.name(), coverage::report(&live).await, feedback)))
}

impl CoverageBody {
    fn new(release: &str, report: Report, feedback: FeedbackBody) -> Self {
        let Report { known, new, retired, open, mut unknown } = report;
        let more_unknown = unknown.len().saturating_sub(MOST_VALUES);
        unknown.truncate(MOST_VALUES);
        let unknown = unknown.into_iter().map(|(value, articles)| UnknownBody {
            attribute: value.attribute,
            value: value.word,
            articles,
        });
        Self {
            release: release.to_owned(),
            known,
            new,
            retired,
            open_methods: open,
            unknown: unknown.collect(),
            more_unknown,
            feedback,
        }
    }
}
