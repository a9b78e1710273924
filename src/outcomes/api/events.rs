//! `/events`: what customers and visitors did in the shop.

use std::path::Path;

use atelier_core::util::json_pointer::step;
use atelier_files::EventRow;
use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::acceptance::DaysQuery;
use crate::{
    completion::Warning,
    outcomes::{
        FeedbackKind,
        acceptance::money,
        events::{Receipt, RowsError, Summary},
        sql::{
            acceptance::day_of,
            events::{Attribution, EventRecorded},
            feedback::Recorded,
        },
    },
    people::Scope,
    platform::http::{
        AppState, Finding, Kind, Problem, ProblemBody, RequestId,
        extract::{Incoming, Json, JsonText, Query, check_media_type, from_value, parse, parse_list},
        routes::Routes,
        schema::{ArticleIdSchema, CustomerIdSchema, PriceSchema},
        spool::{MEDIA_TYPES, spool},
        uncancelled::uncancelled,
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .scoped(Scope::Events, routes!(record))
        .streaming(Scope::Events, routes!(import))
        .scoped(Scope::Feedback, routes!(counts))
}

/// Events.
#[derive(ToSchema)]
#[schema(as = Events, example = json!([{
    "id": "order-10001/1", "kind": "bought", "article": "a-00134", "order": "10001", "value": 64.5,
}]))]
#[expect(dead_code, reason = "only the schema of the body, which is read item by item")]
struct EventsBody(Vec<EventBody>);

/// Something that a customer or visitor did.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Event)]
#[expect(dead_code, reason = "only the schema of an event, which is read as a row of a file")]
struct EventBody {
    /// The caller's own id of the event. An event that is sent again counts once.
    #[schema(examples("order-10001/1"), min_length = 1, max_length = 256)]
    id: String,
    kind: EventKind,
    /// A stored customer. Purchases are added to what the models know the customer owns.
    customer: Option<CustomerIdSchema>,
    /// A visitor who is no known customer. Kept, as a digest, only with `consent`.
    #[schema(max_length = 200)]
    visitor: Option<String>,
    /// Whether the visitor consented to be recognised.
    #[serde(default)]
    consent: bool,
    /// An article's id, or a variant's. One of `article` and `variant` is required.
    article: Option<ArticleIdSchema>,
    /// A variant's id, which comes before `article`.
    variant: Option<ArticleIdSchema>,
    /// Connects a return with its purchase. Kept only with a customer, or a visitor's consent.
    #[schema(examples("10001"), max_length = 200)]
    order: Option<String>,
    /// Amount paid or refunded, in the shop's currency: below 1,000,000,000.
    value: Option<PriceSchema>,
    /// When it happened, at most `events.late_days` ago; without it, now. `2026-11-21T14:34:00Z`, `21.11.2026 14:34`, or a date;
    /// UTC if it has no zone.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    time: Option<String>,
    /// The `completion_id` of the completion or look from which it came.
    ticket: Option<String>,
}

/// An event of an article.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the schema of a word")]
enum EventKind {
    Viewed,
    Added,
    Bought,
    Returned,
    Kept,
    Rejected,
}

fn read_event(mut fields: Map<String, Value>) -> Result<EventRow, Problem> {
    let read = EventRow::read(&mut fields);
    let others = fields.keys().map(|name| Finding::at(step(name), "an event has no such field"));
    let faults = read.as_ref().err().into_iter().flatten();
    let faults = faults.map(|(name, reason)| Finding::at(step(name), reason.as_str()));
    let findings: Vec<Finding> = others.chain(faults).collect();
    read.ok().filter(|_| findings.is_empty()).ok_or_else(|| Problem::invalid(findings))
}

/// A recorded event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventReceipt)]
struct RecordedEvent {
    /// The event's id.
    #[schema(examples("order-10001/1"))]
    id: String,
    /// False if it was already recorded.
    recorded: bool,
    /// How it belongs to a suggestion: `ticket`, or `window` if its article was suggested shortly before. Null if it does not,
    /// or was already recorded.
    #[schema(examples("ticket"))]
    attribution: Option<&'static str>,
    /// `unknown-article`: the catalogue has no such article. `ticket-of-another-customer`: it does not belong to its ticket's suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<Warning>,
}

/// The result for one of several events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum EventItem {
    Receipt(RecordedEvent),
    Problem(ProblemBody),
}

/// Record events
///
/// Takes a list of up to `x-limits.feedback_events` events, in any order. The answer is a list in the same order: for each
/// event, its result or a problem. A bad event does not stop the others; one that is sent alone, without a list, is refused.
/// An answered event is stored for good; without an answer, send the events again. An event of an article that the catalogue
/// does not have is kept, and its answer has a `warning`.
///
/// With a `ticket`, an event is also feedback on that suggestion: viewed means shown, added means accepted. A ticket for another
/// customer does not count, and the answer has a `warning`. Without a ticket, a
/// purchase belongs to the last suggestion of its article that the customer was shown within `events.window_days`. These
/// purchases are counted separately. A return or a kept article belongs to its purchase, by order and article.
#[utoipa::path(post, path = "/events", operation_id = "recordEvents",
    tag = "events", request_body = EventsBody, responses(
    (status = 200, description = "For each event, whether it is recorded now, or its problem", body = Vec<EventItem>),
))]
async fn record(
    State(state): State<AppState>,
    request: RequestId,
    JsonText(text): JsonText,
) -> Result<Json<Vec<EventItem>>, Problem> {
    let is_list = text.trim_ascii_start().first() == Some(&b'[');
    let events = if is_list { parse_list(&text)? } else { vec![parse(&text)?] };
    let most = state.limits.feedback_events;
    if events.len() > most as usize {
        let detail = format!("a list has at most {most} events, found {}; split it", events.len());
        return Err(Problem::invalid(vec![Finding::at("", detail)]));
    }
    let mut read: Vec<Result<EventRow, Problem>> =
        events.into_iter().map(|event| from_value(event).and_then(read_event)).collect();
    if let Some(Err(problem)) = read.pop_if(|event| !is_list && event.is_err()) {
        return Err(problem);
    }
    let good: Vec<EventRow> = read.iter().flatten().cloned().collect();
    let now = state.now();
    let recorded = uncancelled(async move { state.recorder().record(good, now).await }).await?;
    let mut recorded = recorded.into_iter();
    let item = |read: Result<EventRow, Problem>| {
        let result = read.and_then(|event| {
            let result = recorded.next().expect("every event has a result");
            result.map(|result| RecordedEvent::new(event.id, result)).map_err(super::event_problem)
        });
        match result {
            Ok(event) => EventItem::Receipt(event),
            Err(problem) => EventItem::Problem(problem.into_item(&request)),
        }
    };
    Ok(Json(read.into_iter().map(item).collect()))
}

impl RecordedEvent {
    fn new(id: String, Receipt { event, warning }: Receipt) -> Self {
        let EventRecorded { recorded, attribution, .. } = event;
        let recorded = recorded == Recorded::Now;
        Self { id, recorded, attribution: attribution.map(Attribution::as_str), warning }
    }
}

/// Record a stream of events
///
/// One event per line, as in `POST /events`; other fields are ignored. Lines are recorded in parts of a few
/// hundred, and bad ones are left out. After an interruption send the stream again: recorded events count once.
#[utoipa::path(post, path = "/events/bulk", operation_id = "importEvents", tag = "events",
    request_body(content = String, content_type = "application/x-ndjson", example =
        "{\"id\": \"v-1\", \"kind\": \"viewed\", \"article\": \"a-00134\"}\n"),
    responses((status = 200, description = "The good events are recorded", body = Summary)),
)]
async fn import(State(state): State<AppState>, request: Request) -> Result<Json<Summary>, Problem> {
    check_media_type(request.headers(), MEDIA_TYPES[0], |found| MEDIA_TYPES.contains(&found))?;
    let file = spool(Incoming::new(request, state.limits.bulk_bytes, state.limits)).await?;
    let length = file.metadata().map_err(|error| Problem::inside(Kind::Internal, error))?.len();
    let rows = atelier_files::read_json_lines(file, length, Path::new("the body"), &state.schema());
    let mut rows = rows.map_err(|error| Problem::inside(Kind::Internal, error))?;
    let recorded = uncancelled(async move {
        let most = state.limits.bulk_rows.into();
        state.recorder().record_rows(&mut rows, |row| Ok(vec![row]), most, state.now(), |_| {}).await
    });
    recorded.await.map(Json).map_err(|error| match error {
        RowsError::TooMany { most } => {
            let detail = format!("{error}; the first {most} were recorded, so send only the rest");
            Problem::new(Kind::Invalid, detail)
        }
        RowsError::File(error) => Problem::inside(Kind::Internal, error),
        RowsError::Store(error) => error.into(),
    })
}

/// Events by kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventCounts)]
struct CountsBody {
    items: Vec<CountBody>,
}

/// The events of a kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventCount)]
struct CountBody {
    /// The kind of these events.
    #[schema(examples("bought"))]
    kind: &'static str,
    /// Number of events.
    events: u64,
    /// The sum of their values, in the shop's currency.
    value: f64,
}

/// Event counts
///
/// How many events happened in the last days, by kind, including events that are no longer kept.
#[utoipa::path(get, path = "/events/counts", operation_id = "getEventCounts",
    tag = "events", params(DaysQuery), responses(
    (status = 200, description = "The counts", body = CountsBody),
))]
async fn counts(
    State(state): State<AppState>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<CountsBody>, Problem> {
    let days = query.read()?;
    let since = day_of(state.now()) + 1 - i64::from(days);
    let counts = state.store.events().counts(since).await?;
    let count = |(kind, events, value): (FeedbackKind, u64, i64)| CountBody {
        kind: kind.shop_word(),
        events,
        value: money(value),
    };
    Ok(Json(CountsBody { items: counts.into_iter().map(count).collect() }))
}
