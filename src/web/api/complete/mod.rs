//! `/complete`: suggestions for an outfit's blanks.

mod answer;
mod body;

use axum::extract::State;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::routes;

use self::answer::CompletionBody;
pub(crate) use self::{
    answer::{SuggestionBody, suggestion_bodies},
    body::{CompleteBody, DEFAULT_K, FiltersBody, read_features, read_outfit},
};
use crate::web::api::fault;
use crate::{
    service::{access::Scope, asking::suggest},
    web::http::{
        AppState, Finding, Problem, ProblemBody, RequestId,
        extract::{Json, from_value},
        routes::Routes,
        timing::TimingBody,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(complete)).scoped(Scope::Complete, routes!(batch))
}

/// Complete an outfit
///
/// Suggests, for each blank (`null`) of the outfit, the articles that a stylist would most likely choose for this
/// customer. If the outfit has no blank, suggests one more article. Name the customer with `customer`, describe them
/// with `features`, or both: features in the request override the profile.
#[utoipa::path(post, path = "/complete", operation_id = "completeOutfit",
    tag = "completion", request_body = CompleteBody, responses(
    (status = 200, description = "Suggestions for each blank", body = CompletionBody,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "The method's queue is full, or the answer would be too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn complete(
    State(state): State<AppState>,
    Json(body): Json<CompleteBody>,
) -> Result<(TimingBody, Json<CompletionBody>), Problem> {
    let completion = complete_outfit(&state, body).await?;
    Ok((completion.timing, Json(completion)))
}

async fn complete_outfit(state: &AppState, body: CompleteBody) -> Result<CompletionBody, Problem> {
    let times = state.times();
    let live = state.live_release()?;
    let question = body.read(&live)?;
    let suggestions =
        suggest(&live, &state.profiles, &state.tickets, question, times).await.map_err(fault::problem)?;
    Ok(CompletionBody::new(&live, suggestions, times.begun.elapsed()))
}

/// How many items of a batch are completed at the same time.
const AT_A_TIME: usize = 16;

/// Several outfits to complete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"items": [
    {"customer": "c-000010", "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 1},
    {"features": {"gender": "female"}, "outfit": ["a-01243", null, null, null], "sets": 1},
]}))]
struct BatchBody {
    /// Each item is a body of `/complete`.
    #[schema(value_type = Vec<CompleteBody>, min_items = 1)]
    items: Vec<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
struct BatchAnswer {
    /// In the order of the request.
    items: Vec<BatchItem>,
}

/// The answer of `/complete`, or a problem.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Item)]
#[serde(untagged)]
enum BatchItem {
    Completion(Box<CompletionBody>),
    Problem(ProblemBody),
}

/// Complete many outfits
///
/// Each item gets its own answer or problem; a bad item does not fail the others.
#[utoipa::path(post, path = "/complete/batch", operation_id = "completeOutfits",
    tag = "completion", request_body = BatchBody, responses(
    (status = 200, description = "An answer or a problem for each item, in order", body = BatchAnswer),
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
    // Several at a time fill a model's batches; all at once would fill its queue.
    let items = stream::iter(items).map(|item| complete_item(&state, &request, item)).buffered(AT_A_TIME);
    Ok(Json(BatchAnswer { items: items.collect().await }))
}

/// Limits the size of the answer, which depends on the number of suggestions in all items.
fn check_size(items: &[Result<CompleteBody, Problem>], most: usize) -> Result<(), Problem> {
    let found: usize = items.iter().flatten().map(CompleteBody::count_suggestions).sum();
    if found > most {
        let detail = format!(
            "a batch asks for at most {most} suggestions over all blanks of all items, this one for {found}; split it"
        );
        return Err(Problem::invalid(vec![Finding::at("/items", detail)]));
    }
    Ok(())
}

async fn complete_item(
    state: &AppState,
    request: &RequestId,
    item: Result<CompleteBody, Problem>,
) -> BatchItem {
    let result = match item {
        Ok(body) => complete_outfit(state, body).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok(completion) => BatchItem::Completion(Box::new(completion)),
        Err(problem) => BatchItem::Problem(problem.into_item(request)),
    }
}
