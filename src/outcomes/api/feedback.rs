//! `/feedback`: what happened to suggestions.
//!
//! The completion id of an event determines the release, method and arm of the suggestion, so a caller cannot credit
//! the wrong method by mistake.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use atelier_core::{
    domain::{ArticleId, Outfit, Timestamp},
    util::json_fields::{read_integer, read_optional_integer},
};
use axum::{
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::{
    outcomes::{
        FeedbackKind,
        events::check_visitor,
        feedback::{self, Report},
        sql::feedback::{FeedbackCounts, Recorded},
    },
    people::{
        Scope, Sender,
        gate::{Caller, Reader, refuse_rate},
        visitors::{drop_unknown, read_customer},
    },
    platform::{
        db::StoreError,
        http::{
            AppState, Finding, Kind, Problem, ProblemBody, RequestId,
            extract::{Json, JsonText, from_value, parse, parse_list},
            fault,
            problem::value_or_finding,
            routes::Routes,
            schema::{ArticleIdSchema, BytesSchema, CustomerIdSchema},
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new()
        .for_pages(Scope::Feedback, routes!(report))
        .scoped(Scope::Feedback, routes!(counts))
        .streaming(Scope::Feedback, routes!(accepted))
}

/// Events.
#[derive(ToSchema)]
#[schema(as = Feedback, example = json!([{
    "id": "order-17/a-00973", "completion_id": "the answer of /complete has it", "kind": "accepted", "slot": 1,
    "article": "a-00973",
}]))]
#[expect(dead_code, reason = "only the schema of the body, which is read item by item")]
struct FeedbackBody(Vec<EventBody>);

/// A recorded event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Accepted)]
struct RecordedEvent {
    /// The event's id.
    #[schema(examples("order-17/a-00973"))]
    id: String,
    /// False if the same was already recorded, under this id or another one. It counts once.
    recorded: bool,
}

/// The result for one of several events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum FeedbackItem {
    Recorded(RecordedEvent),
    Problem(ProblemBody),
}

/// One result, or a list of them.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum FeedbackResult {
    One(RecordedEvent),
    Several(Vec<FeedbackItem>),
}

/// Report what happened to suggestions
///
/// Takes a list of up to `x-limits.feedback_events` events. The answer is a list in the same order: for each event, its
/// result or a problem. An event that is sent alone, without a list, is answered with its result or problem alone. An event
/// may be sent again with the same id; it counts once. Events of one kind about the same suggestion count once even if
/// their ids differ.
///
/// Only what was suggested is recorded, whichever release is live by now. An article that is accepted, rejected or bought
/// counts as shown, too. An article that only one of the `sets` suggested has that set's rank.
///
/// A completion for a customer takes no feedback for another one.
///
/// A publishable key reports at most 50 events, only `shown` and `accepted`, and sends `customer` signed. Its events' ids are
/// apart from those of other keys. Without a customer, its events are figures of their own (`source`), and count for no experiment.
#[utoipa::path(post, path = "/feedback", operation_id = "reportFeedback",
    tag = "feedback", request_body = FeedbackBody, responses(
    (status = 200, description = "For each event, whether it is recorded now, or its problem", body = Vec<FeedbackItem>),
    (status = 404, description = "This service made no such completion"),
    (status = 409, description = "The id belongs to another event"),
    (status = 410, description = "The completion is too old"),
))]
async fn report(
    State(state): State<AppState>,
    request: RequestId,
    reader: Reader,
    Caller(author): Caller,
    JsonText(text): JsonText,
) -> Result<Json<FeedbackResult>, Problem> {
    let is_list = text.trim_ascii_start().first() == Some(&b'[');
    let events: Vec<Result<EventBody, Problem>> = if is_list {
        parse_list(&text)?.into_iter().map(from_value).collect()
    } else {
        vec![Ok(parse(&text)?)]
    };
    let most = state.limits.feedback_events;
    let most = if matches!(reader, Reader::Visitors(_)) { most.min(MOST_OF_A_PAGE) } else { most };
    let Some(count) = u32::try_from(events.len()).ok().filter(|count| *count <= most) else {
        let detail = format!("a list has at most {most} events, found {}; split it", events.len());
        return Err(Problem::invalid(vec![Finding::at("", detail)]));
    };
    check_pace(&state, &reader, author.peer, count)?;
    let mut results = record_all(&state, &reader, events, state.now()).await?;
    if !is_list {
        let result = results.pop().expect("each event has a result");
        return result.map(|event| Json(FeedbackResult::One(event)));
    }
    let item = |result: Result<RecordedEvent, Problem>| match result {
        Ok(event) => FeedbackItem::Recorded(event),
        Err(problem) => FeedbackItem::Problem(problem.into_item(&request)),
    };
    Ok(Json(FeedbackResult::Several(results.into_iter().map(item).collect())))
}

/// How many events one transaction records: one each takes many times longer, and all together keep other writers waiting.
const TOGETHER: usize = 100;
/// The most events of a page's request.
const MOST_OF_A_PAGE: u32 = 50;
/// How many events a second pages at an address may report, for each request a second.
const EVENTS_EACH: u32 = 5;

/// Counts the events that pages at an address report.
fn check_pace(state: &AppState, reader: &Reader, peer: Option<IpAddr>, count: u32) -> Result<(), Problem> {
    let (Reader::Visitors(_), Some(address)) = (reader, peer) else { return Ok(()) };
    let rate = state.limits.address_rate.saturating_mul(EVENTS_EACH).max(MOST_OF_A_PAGE);
    let counted = state.access().check_rate(Sender::of_events(address), count, rate, Instant::now());
    counted.map_err(|wait| refuse_rate("this address", rate, "events", wait))
}

async fn record_all(
    state: &AppState,
    reader: &Reader,
    events: Vec<Result<EventBody, Problem>>,
    now: Timestamp,
) -> Result<Vec<Result<RecordedEvent, Problem>>, Problem> {
    let mut results = Vec::with_capacity(events.len());
    let mut events = (0..).zip(events);
    loop {
        let mut part: Vec<Result<(Report, Timestamp), Problem>> = Vec::new();
        for (place, event) in events.by_ref().take(TOGETHER) {
            // The list is in the order of events. Times a millisecond apart keep that order.
            let at = now + Duration::from_millis(place);
            let report = match event {
                Ok(event) => event.read(state, reader).await,
                Err(problem) => Err(problem),
            };
            part.push(report.map(|report| (report, at)));
        }
        if part.is_empty() {
            return Ok(results);
        }
        let good = part.iter().flatten().cloned();
        let recorded = feedback::record_all(&state.store, state.releases(), state.tickets(), good).await?;
        let mut recorded = recorded.into_iter();
        for report in part {
            let result = report.and_then(|(report, _)| {
                let result = recorded.next().expect("every report has a result");
                let recorded = result.map_err(super::event_problem)?;
                if let Some(customer) = report.customer.filter(|_| report.kind.is_sale()) {
                    state.profiles().forget(&customer);
                }
                Ok(RecordedEvent::new(report.id, recorded))
            });
            match result {
                // The other events would fail, too.
                Err(problem) if problem.kind() == Kind::Unavailable => return Err(problem),
                result => results.push(result),
            }
        }
    }
}

impl RecordedEvent {
    fn new(id: String, recorded: Recorded) -> Self {
        Self { id, recorded: recorded == Recorded::Now }
    }
}

/// Something that happened to one suggested article.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FeedbackEvent)]
struct EventBody {
    /// The caller's own id of the event. An event that is sent again counts once.
    #[schema(examples("order-17/a-00973"), min_length = 1, max_length = 256)]
    id: String,
    /// The completion's `completion_id`.
    #[schema(min_length = 1)]
    completion_id: String,
    kind: FeedbackKind,
    /// The blank's place in the outfit, from 0.
    #[schema(examples(1), maximum = 7)]
    #[serde(deserialize_with = "read_integer")]
    slot: u32,
    #[schema(value_type = ArticleIdSchema)]
    article: String,
    /// The suggestion's rank, from 1. Needed only past the suggestions that the completion id remembers: the first 140
    /// of one blank, 70 each of two, 20 each of seven.
    #[schema(examples(1), minimum = 1, maximum = 250)]
    #[serde(default, deserialize_with = "read_optional_integer")]
    rank: Option<u32>,
    /// The customer, if the feedback is to be exported and erased with them.
    #[schema(value_type = Option<CustomerIdSchema>)]
    customer: Option<String>,
    /// Without a customer: your id of the visitor, or of their visit. Looks that everybody sees count once for each; with a
    /// publishable key, all events without it are of one visitor. It is not stored.
    #[schema(max_length = 200)]
    visitor: Option<String>,
}

impl EventBody {
    async fn read(self, state: &AppState, reader: &Reader) -> Result<Report, Problem> {
        let mut findings = Vec::new();
        if matches!(reader, Reader::Visitors(_))
            && !matches!(self.kind, FeedbackKind::Shown | FeedbackKind::Accepted)
        {
            let detail = "a publishable key reports only shown and accepted; the shop's backend reports what was bought";
            findings.push(Finding::at("/kind", detail.to_owned()));
        }
        let article = value_or_finding(ArticleId::new(&self.article), || "/article".into(), &mut findings);
        let customer = read_customer(reader, self.customer.as_deref(), state.now());
        let customer = value_or_finding(customer, || "/customer".into(), &mut findings);
        let checked = feedback::check_id(&self.id).and(check_visitor(self.visitor.as_deref()));
        findings.extend(checked.err().map(fault::finding));
        let (Some(article), Some(customer), true) = (article, customer, findings.is_empty()) else {
            return Err(Problem::invalid(findings));
        };
        let customer = drop_unknown(state, reader, customer).await?;
        Ok(Report {
            id: self.id,
            completion_id: self.completion_id,
            kind: self.kind,
            slot: self.slot,
            article,
            rank: self.rank,
            customer,
            visitor: self.visitor,
            from_page: matches!(reader, Reader::Visitors(_)),
        })
    }
}

/// Feedback by release, method and arm.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FeedbackCounts)]
struct CountsBody {
    items: Vec<FeedbackCounts>,
}

/// Feedback counts
///
/// How often suggestions are accepted, by release, method, the experiment's arm and who reported it. If the intervals of two methods
/// overlap widely, there are too few events to tell which is better.
#[utoipa::path(get, path = "/feedback/counts", operation_id = "getFeedbackCounts",
    tag = "feedback", responses(
    (status = 200, description = "The counts", body = CountsBody),
))]
async fn counts(State(state): State<AppState>) -> Result<Json<CountsBody>, Problem> {
    Ok(Json(CountsBody { items: state.store.feedback().counts().await? }))
}

/// Accepted outfits as training data
///
/// One outfit per line, in the format of `atelier export`: one for each completion of any release that has feedback from
/// a known customer, an accepted or bought article in every blank, and as many articles in total as outfits of the live
/// release's schema have. An article that was rejected after it was accepted, or came back, does not count.
#[utoipa::path(get, path = "/feedback/outfits.jsonl", operation_id = "exportAcceptedOutfits",
    tag = "feedback", responses(
    (status = 200, description = "The outfits", body = BytesSchema, content_type = "application/x-ndjson"),
))]
async fn accepted(State(state): State<AppState>) -> Response {
    let schema = state.releases().schema();
    let pages = feedback::accepted_outfits(&state.store).map_ok(move |page| {
        let fits = |outfit: &Outfit| schema.outfit_size().check(outfit.articles().len()).is_ok();
        let outfits = page.into_iter().map(|accepted| accepted.outfit).filter(fits);
        outfits.map(|outfit| atelier_files::json_line(&outfit, &schema)).collect::<String>()
    });
    // The answer has already started, so an error can only cut it off and be logged.
    let pages = pages.inspect_err(|error: &StoreError| {
        tracing::error!(%error, "the answer with accepted outfits was cut off");
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pages)).into_response()
}
