//! `/complete`: suggestions for an outfit's blanks.

mod answer;
mod body;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use atelier_core::domain::Method;
use atelier_engine::inference::Reservation;
use axum::extract::State;
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use self::{
    answer::CompletionBody,
    body::{PageBody, Routed},
};
pub(crate) use self::{
    answer::{ReasonBody, Shown, SuggestionBody, VariantBody, suggestion_bodies},
    body::{CompleteBody, DEFAULT_K, FiltersBody, LiveBody, Offer, read_features, read_live, read_outfit},
};
use crate::{
    completion::{api::timing::TimingBody, asking::suggest},
    people::{
        Scope,
        gate::{Reader, Scopes},
    },
    platform::http::{
        AppState, Finding, Problem, ProblemBody, RequestId,
        extract::{Json, JsonText, MOST_BYTES, parse, too_long},
        fault,
        routes::Routes,
        serve::{Amount, Work},
    },
    releases::{LiveRelease, routing::Route},
};

pub(crate) fn router() -> Routes {
    Routes::new().for_pages(Scope::Complete, routes!(complete)).scoped(Scope::Complete, routes!(batch))
}

/// Complete an outfit
///
/// Suggests, for each blank (`null`) of the outfit, the articles that a stylist would most likely choose for this
/// customer. If the outfit has no blank, suggests one more article. Name the customer with `customer`, describe them
/// with `features`, or both: features in the request override the profile.
///
/// A publishable key sends `outfit`, `k` up to 8, `sets` up to 1, `skip_unknown`, a store in `filters`, and `customer` signed. It gets public
/// attributes without `warnings`, always `one_per_type`; what of a long basket does not fit into an outfit is left out.
#[utoipa::path(post, path = "/complete", operation_id = "completeOutfit",
    tag = "completion", request_body = CompleteBody, responses(
    (status = 200, description = "Suggestions for each blank", body = CompletionBody,
        headers(("Server-Timing" = String, description = "`queue`, `inference` and `total` in milliseconds"))),
    (status = 429, description = "The method's queue is full, or the answer would be too late"),
    (status = 504, description = "No answer within the deadline"),
))]
async fn complete(
    State(state): State<AppState>,
    scopes: Scopes,
    reader: Reader,
    JsonText(text): JsonText,
) -> Result<(TimingBody, Json<CompletionBody>), Problem> {
    let body: CompleteBody = match &reader {
        Reader::Program => parse(&text)?,
        Reader::Visitors(_) => parse::<PageBody>(&text)?.read(&state, &reader).await?,
    };
    let completion = if body.is_large() {
        let work = state.part::<Work>().clone();
        let answer = Box::pin(async move { complete_outfit(&state, &scopes, &reader, body).await });
        work.run(Amount::Much, answer).await
    } else {
        complete_outfit(&state, &scopes, &reader, body).await
    }?;
    Ok((completion.timing, Json(completion)))
}

pub(crate) async fn complete_outfit(
    state: &AppState,
    scopes: &Scopes,
    reader: &Reader,
    body: CompleteBody,
) -> Result<CompletionBody, Problem> {
    complete_routed(state, scopes, reader, body.route(state.live_release()?), false).await
}

/// `admitted` says that the queue has room for it already.
async fn complete_routed(
    state: &AppState,
    scopes: &Scopes,
    reader: &Reader,
    mut routed: Routed,
    admitted: bool,
) -> Result<CompletionBody, Problem> {
    if !routed.body.rules {
        scopes.require(Scope::Rules, "`rules: false`")?;
    }
    let times = state.times();
    let fields = Shown::new(routed.body.fields.take())?;
    let (route, mut request) = routed.read(times.now)?;
    let shown = match reader {
        Reader::Program => fields,
        Reader::Visitors(_) => Shown::to(reader, state, request.filters.store.as_deref()),
    };
    request.admitted = admitted;
    let suggestions =
        suggest(&route, state.profiles(), state.tickets(), request, times).await.map_err(fault::problem)?;
    Ok(CompletionBody::new(route, suggestions, &shown, times.begun.elapsed()))
}

/// About how many questions of a batch are asked at the same time, of how many items at most. Fewer would wait for their turn
/// among other requests more often; all at once would fill the queue.
const QUESTIONS_AT_A_TIME: usize = 128;
const ITEMS_AT_A_TIME: usize = 64;

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
    items: Vec<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct BatchAnswer {
    /// In the order of the request.
    #[schema(value_type = Vec<BatchItem>)]
    items: Vec<Box<RawValue>>,
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
/// Each item gets its own answer or problem; a bad item does not fail the others. A method's queue that has no room for the
/// work of all items refuses the batch. So does an answer that would be longer than 32 MiB.
#[utoipa::path(post, path = "/complete/batch", operation_id = "completeOutfits",
    tag = "completion", request_body = BatchBody, responses(
    (status = 200, description = "An answer or a problem for each item, in order", body = BatchAnswer),
    (status = 429, description = "A method's queue has no room for all items, or the answers would be too late"),
))]
async fn batch(
    State(state): State<AppState>,
    request: RequestId,
    scopes: Scopes,
    JsonText(text): JsonText,
) -> Result<Json<BatchAnswer>, Problem> {
    let body: BatchBody = parse(&text)?;
    refuse_early(&state, &body.items)?;
    let (found, most) = (body.items.len(), state.limits.batch_items as usize);
    if found == 0 || found > most {
        let detail = format!("a batch has 1 to {most} items, this one has {found}");
        return Err(Problem::invalid(vec![Finding::at("/items", detail)]));
    }
    let items: Vec<_> = body.items.iter().map(|item| parse::<CompleteBody>(item.get().as_bytes())).collect();
    check_size(&items, state.limits.batch_suggestions as usize)?;
    let live = state.live_release()?;
    check_bytes(&items, &live)?;
    let items: Vec<_> = items.into_iter().map(|item| Ok(item?.route(Arc::clone(&live)))).collect();
    let (questions, admitted) = admit(&items, state.times().deadline)?;
    let at_a_time = (QUESTIONS_AT_A_TIME * items.len() / questions.max(1)).clamp(1, ITEMS_AT_A_TIME);
    let item = |item| complete_item(&state, (&request, &scopes), &admitted, item);
    collect(stream::iter(items).map(item).buffered(at_a_time)).await.map(Json)
}

/// Stops with the first item that makes the answer too long.
async fn collect(items: impl Stream<Item = BatchItem>) -> Result<BatchAnswer, Problem> {
    let (mut items, mut answer, mut bytes) = (pin!(items), BatchAnswer { items: Vec::new() }, 0);
    while let Some(item) = items.next().await {
        let item = to_raw_value(&item).expect("an answer is plain JSON");
        bytes += item.get().len();
        if bytes > MOST_BYTES {
            return Err(too_long("the answer would be"));
        }
        answer.items.push(item);
    }
    Ok(answer)
}

/// Refuses a batch without a named method for which the default method has no room. To read the items takes far longer than
/// to count them.
fn refuse_early(state: &AppState, items: &[Box<RawValue>]) -> Result<(), Problem> {
    let names_no_method = items.iter().all(|item| !item.get().contains("\"method\""));
    if names_no_method && let Ok(live) = state.live_release() {
        live.serving.reserve(live.default_method(), items.len(), state.times().deadline)?;
    }
    Ok(())
}

/// The room that a batch has in the queues of its methods, each of a release.
type Admitted = BTreeMap<(String, Method), Mutex<Reservation>>;

/// About how many questions the items ask, and their room.
fn admit(items: &[Result<Routed, Problem>], deadline: Instant) -> Result<(usize, Admitted), Problem> {
    let mut asked = BTreeMap::new();
    for item in items.iter().flatten() {
        let Routed { route, .. } = item;
        let (_, questions) = asked.entry((route.live.name(), route.method)).or_insert((&route.live, 0));
        *questions += item.estimate().unwrap_or(0);
    }
    let (mut all, mut admitted) = (0, Admitted::new());
    for ((release, method), (live, questions)) in asked {
        all += questions;
        // An item whose method the release lacks fails singly.
        if questions > 0 && live.serving.has(method) {
            let reservation = live.serving.reserve(method, questions, deadline)?;
            admitted.insert((release.to_owned(), method), Mutex::new(reservation));
        }
    }
    Ok((all, admitted))
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

/// Limits the bytes of the answer, by the articles of the catalogue, before there is one.
fn check_bytes(items: &[Result<CompleteBody, Problem>], live: &LiveRelease) -> Result<(), Problem> {
    let of_article = live.catalogue.estimate_bytes();
    let of_item = |item: &CompleteBody| {
        item.count_suggestions() * if item.fields.is_some() { LEAST_BYTES } else { LEAST_BYTES + of_article }
    };
    let bytes: usize = items.iter().flatten().map(of_item).sum();
    if bytes > MOST_BYTES {
        return Err(too_long(&format!("the answer would have about {} MiB, which is", bytes >> 20)));
    }
    Ok(())
}

/// A suggestion's bytes without its article.
const LEAST_BYTES: usize = 100;

async fn complete_item(
    state: &AppState,
    (request, scopes): (&RequestId, &Scopes),
    admitted: &Admitted,
    item: Result<Routed, Problem>,
) -> BatchItem {
    let result = match item {
        Ok(item) => {
            let Route { live, method, .. } = &item.route;
            let reserved = item
                .estimate()
                .and_then(|count| Some((admitted.get(&(live.name().to_owned(), *method))?, count)));
            if let Some((reservation, count)) = reserved {
                reservation.lock().unwrap_or_else(PoisonError::into_inner).spend(count);
            }
            complete_routed(state, scopes, &Reader::Program, item, reserved.is_some()).await
        }
        Err(problem) => Err(problem),
    };
    match result {
        Ok(completion) => BatchItem::Completion(Box::new(completion)),
        Err(problem) => BatchItem::Problem(problem.into_item(request)),
    }
}
