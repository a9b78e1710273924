//! `/feedback`: what became of suggestions.
//!
//! An event names its completion, and inherits from there which release, method and arm made the suggestion:
//! a caller cannot credit another method by a slip.

mod counts;
mod event;
mod outfits;

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::routes;

use self::event::EventBody;
pub(crate) use self::event::FeedbackStored;
use crate::service::access::Scope;
use crate::web::http::routes::Routes;
use crate::{
    domain::Timestamp,
    service::feedback::record,
    store::Recorded,
    web::http::{
        AppState, Finding, Kind, Problem, ProblemBody, RequestId,
        extract::{Json, JsonText, from_value, parse, parse_list},
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().scoped(Scope::Feedback, routes!(report)).merge(counts::router()).merge(outfits::router())
}

/// One event, or several.
#[derive(ToSchema)]
#[schema(as = Feedback)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes the body, which is read item by item")]
enum FeedbackBody {
    One(EventBody),
    Several(Vec<EventBody>),
}

/// An event that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Taken {
    /// The event's id.
    #[schema(examples("order-17/a-12"))]
    id: String,
    /// False if it was reported before: nothing changed.
    recorded: bool,
}

/// What became of one of several events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedbackItem)]
#[serde(untagged)]
enum Item {
    Taken(Taken),
    Problem(ProblemBody),
}

/// What became of what was reported.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedbackTaken)]
#[serde(untagged)]
enum Answer {
    One(Taken),
    Several(Vec<Item>),
}

/// Report what became of suggestions
///
/// One event, or a list of up to `x-limits.feedback_events` of them, which is answered by a list in the same
/// order: what was taken, or its problem. The same event may be sent again under its id; it counts once.
#[utoipa::path(post, path = "/feedback", tag = "feedback", request_body = FeedbackBody, responses(
    (status = 200, description = "It is recorded, or was before", body = Answer),
    (status = 404, description = "This service gave no such completion"),
    (status = 409, description = "The id was used for another event"),
))]
async fn report(
    State(state): State<AppState>,
    request: RequestId,
    JsonText(text): JsonText,
) -> Result<Json<Answer>, Problem> {
    let now = state.now();
    if text.trim_ascii_start().first() != Some(&b'[') {
        let event = parse(&text)?;
        return take(&state, event, now).await.map(|taken| Json(Answer::One(taken)));
    }
    let events = parse_list(&text)?;
    let most = state.limits.feedback_events;
    if events.len() > most as usize {
        let detail = format!("a list has up to {most} events, found {}; send the others apart", events.len());
        return Err(Problem::invalid(vec![Finding::at("", detail)]));
    }
    several(&state, events, &request, now).await.map(|items| Json(Answer::Several(items)))
}

async fn several(
    state: &AppState,
    events: Vec<Value>,
    request: &RequestId,
    now: Timestamp,
) -> Result<Vec<Item>, Problem> {
    let mut items = Vec::with_capacity(events.len());
    for (place, event) in events.into_iter().enumerate() {
        // A list tells what happened in its order; a millisecond apart, that order is kept.
        let at = now + Duration::from_millis(place as u64);
        let taken = match from_value(event) {
            Ok(event) => take(state, event, at).await,
            Err(problem) => Err(problem),
        };
        items.push(match taken {
            Ok(taken) => Item::Taken(taken),
            // What the service cannot do for one event it cannot do for the others.
            Err(problem) if problem.kind() == Kind::Unavailable => return Err(problem),
            Err(problem) => Item::Problem(problem.into_item(request)),
        });
    }
    Ok(items)
}

async fn take(state: &AppState, body: EventBody, now: Timestamp) -> Result<Taken, Problem> {
    let report = body.read()?;
    let id = report.id.clone();
    let recorded = record(&state.store, &state.releases, &state.tickets, report, now).await?;
    Ok(Taken { id, recorded: recorded == Recorded::Now })
}
