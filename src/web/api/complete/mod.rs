//! `/complete`: which articles belong in an outfit's blanks, for this customer.

mod answer;
mod body;

use std::time::Instant;

use axum::extract::State;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::routes;

use self::answer::Answer;
pub(crate) use self::{
    answer::{PlacementBody, SuggestionBody, WarningBody, suggestions},
    body::{CompleteBody, DEFAULT_K, FiltersBody, article_id, customer_id, given_features, method, outfit},
};
use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{
    service::asking::suggest,
    web::http::{
        AppState, Finding, Problem, ProblemBody, RequestId,
        extract::{Json, from_value},
        timing::TimingBody,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Complete, routes!(complete)).scoped(Scope::Complete, routes!(batch))
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

async fn answer(state: &AppState, body: CompleteBody) -> Result<Answer, Problem> {
    let begun = Instant::now();
    let live = state.live_release()?;
    let question = body.read(&live)?;
    let times = (state.now(), begun, begun + state.limits.deadline());
    let suggestions = suggest(&live, &state.profiles, &state.tickets, question, times).await?;
    Ok(Answer::new(&live, suggestions, begun.elapsed()))
}

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
