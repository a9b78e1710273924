//! `/complete`: which articles belong in an outfit's blanks, for this customer.

mod answer;
mod body;

use std::time::{Duration, Instant, SystemTime};

use axum::extract::State;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use self::{
    answer::{Answer, PlacementBody, SuggestionBody, WarningBody, completion_id, suggestions},
    body::{
        Asked, CompleteBody, DEFAULT_K, FiltersBody, article_id, customer_id, given, known, method, outfit,
        profile,
    },
};
use crate::service::completion;
use crate::web::http::{
    AppState, Finding, Kind, Problem, ProblemBody, RequestId,
    extract::{Json, from_value},
    timing::TimingBody,
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(batch))
}

/// Complete an outfit
///
/// Says for each blank (`null`) of the outfit which articles a stylist would most likely put there for this
/// customer. Without a blank one more article is asked for. The customer is named by `customer`, or described by
/// `features`, or both: features in the request win over those of the profile.
#[utoipa::path(post, path = "/complete", tag = "completion", request_body = CompleteBody, responses(
    (status = 200, description = "Suggestions for each blank", body = Answer,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "The method's queue is full, or an answer would come too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn complete(
    State(state): State<AppState>,
    Json(body): Json<CompleteBody>,
) -> Result<(TimingBody, Json<Answer>), Problem> {
    let answer = answer(&state, body).await?;
    Ok((answer.timing, Json(answer)))
}

/// One completion, for every path that makes one.
pub(crate) async fn answer(state: &AppState, body: CompleteBody) -> Result<Answer, Problem> {
    let began = Instant::now();
    let live = state.live_release()?;
    let (asked, aged) = body.read(state, &live).await?;
    let mut completion =
        completion::complete(live.served(), &asked.request, began + state.limits.deadline()).await?;
    completion.warnings.extend(aged);
    Ok(Answer::new(state, &live, &asked, completion, began.elapsed(), SystemTime::now().into()))
}

/// When a server of models that cannot be reached is worth another try.
const UNREACHABLE: Duration = Duration::from_secs(1);

/// Items of a batch that are answered at a time.
const AT_A_TIME: usize = 16;

/// Several outfits to complete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchBody {
    /// Each as for `/complete`.
    #[schema(value_type = Vec<CompleteBody>, min_items = 1)]
    items: Vec<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
struct BatchAnswer {
    /// In the order of the request.
    items: Vec<Item>,
}

/// What `/complete` would have answered, or the problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum Item {
    Answer(Box<Answer>),
    Problem(ProblemBody),
}

/// Complete many outfits
///
/// Each item has its own answer or problem; one bad item never fails the rest.
#[utoipa::path(post, path = "/complete/batch", tag = "completion", request_body = BatchBody, responses(
    (status = 200, description = "An answer or a problem for each item, in their order", body = BatchAnswer),
))]
async fn batch(
    State(state): State<AppState>,
    request: RequestId,
    Json(body): Json<BatchBody>,
) -> Result<Json<BatchAnswer>, Problem> {
    let (found, most) = (body.items.len(), state.limits.batch_items as usize);
    if found == 0 || found > most {
        let detail = format!("a batch has 1 to {most} items, this one has {found}");
        return Err(Problem::invalid(vec![Finding::at("/items", detail)]));
    }
    let items: Vec<_> = body.items.into_iter().map(from_value::<CompleteBody>).collect();
    check_size(&items, state.limits.batch_suggestions as usize)?;
    // Several at a time, so that they fill a model's batches; not all, so that they leave its queue to others.
    let items = stream::iter(items).map(|item| item_of(&state, &request, item)).buffered(AT_A_TIME);
    Ok(Json(BatchAnswer { items: items.collect().await }))
}

/// How many suggestions all items ask for together is what an answer's size follows.
fn check_size(items: &[Result<CompleteBody, Problem>], most: usize) -> Result<(), Problem> {
    let asked: usize = items.iter().flatten().map(CompleteBody::suggestions).sum();
    if asked > most {
        let detail = format!(
            "a batch asks for at most {most} suggestions over all blanks of all items, this one for {asked}; split it"
        );
        return Err(Problem::invalid(vec![Finding::at("/items", detail)]));
    }
    Ok(())
}

async fn item_of(state: &AppState, request: &RequestId, item: Result<CompleteBody, Problem>) -> Item {
    let answered = match item {
        Ok(body) => answer(state, body).await,
        Err(problem) => Err(problem),
    };
    match answered {
        Ok(answer) => Item::Answer(Box::new(answer)),
        Err(problem) => Item::Problem(problem.into_item(request)),
    }
}

impl From<completion::CompletionError> for Problem {
    fn from(error: completion::CompletionError) -> Self {
        use crate::models::engine::AskError;
        match error {
            completion::CompletionError::Invalid(found) => {
                let finding = |found: completion::Invalid| Finding::at(found.pointer, found.detail);
                Self::invalid(found.into_iter().map(finding).collect())
            }
            completion::CompletionError::Ask(error @ AskError::Full { retry_after, .. }) => {
                Self::new(Kind::QueueFull, error.to_string()).retry_after(retry_after)
            }
            completion::CompletionError::Ask(error @ AskError::Deadline { .. }) => {
                Self::new(Kind::Deadline, error.to_string())
            }
            completion::CompletionError::Ask(error @ AskError::Unreachable(_)) => {
                Self::inside(Kind::Unavailable, error).retry_after(UNREACHABLE)
            }
            completion::CompletionError::Ask(error @ (AskError::Failed(_) | AskError::NoMethod(_))) => {
                Self::inside(Kind::Internal, error)
            }
        }
    }
}
