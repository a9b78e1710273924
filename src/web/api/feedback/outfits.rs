//! `/feedback/outfits.jsonl`: outfits that came about by accepting suggestions, as data to train on.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{TryStreamExt, stream};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    domain::{ArticleId, CustomerId, Features, Outfit, Vocabulary},
    files,
    service::completion::Ticket,
    store::{FeedbackEvent, FeedbackKind, StoreError},
    web::http::AppState,
};

/// Completions that are looked at together.
const PAGE: u32 = 200;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(accepted))
}

/// Accepted outfits as training data
///
/// One outfit a line, as `atelier export` writes them: of every completion of the release that is served now,
/// for a known customer, whose every blank has an accepted or bought article, where the whole has four to
/// eight articles. An article that was rejected after it was accepted does not count.
#[utoipa::path(get, path = "/feedback/outfits.jsonl", tag = "feedback", responses(
    (status = 200, description = "The outfits", body = String, content_type = "application/x-ndjson"),
))]
async fn accepted(State(state): State<AppState>) -> Response {
    let pages = stream::try_unfold(Some(String::new()), move |after| {
        let state = state.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            page(&state, &after).await.map(Some)
        }
    });
    // The answer has begun by then: all that is left is to break it off, and to say why in the log.
    let pages = pages.inspect_err(|error: &StoreError| tracing::error!(%error, "accepted outfits broke off"));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pages)).into_response()
}

/// The lines of a page of completions, and where the next one begins.
async fn page(state: &AppState, after: &str) -> Result<(String, Option<String>), StoreError> {
    let feedback = state.store.feedback();
    let ids = feedback.accepted_completions(after, PAGE).await?;
    let mut lines = String::new();
    for id in &ids {
        let Ok(ticket) = Ticket::open(id, &state.tickets) else { continue };
        let Some(live) = state.serves(&ticket) else { continue };
        let release = live.serving.release();
        let events = feedback.for_completion(id).await?;
        if let Some(outfit) = outfit(&ticket, release.vocabulary(), &events) {
            lines.push_str(&files::json_line(&outfit, release.schema()));
        }
    }
    let more = ids.len() == PAGE as usize;
    Ok((lines, ids.into_iter().last().filter(|_| more)))
}

/// The outfit that the events, in the order of time, made of a completion.
fn outfit(ticket: &Ticket, vocabulary: &Vocabulary, events: &[FeedbackEvent]) -> Option<Outfit> {
    let mut chosen: BTreeMap<usize, (&ArticleId, &CustomerId)> = BTreeMap::new();
    for event in events {
        let slot = event.slot as usize;
        match (event.kind, &event.customer) {
            (FeedbackKind::Accepted | FeedbackKind::Bought, Some(customer)) => {
                chosen.insert(slot, (&event.article, customer));
            }
            (FeedbackKind::Rejected, _) if chosen.get(&slot).is_some_and(|(id, _)| **id == event.article) => {
                chosen.remove(&slot);
            }
            _ => {}
        }
    }
    let customer = chosen.values().next().map(|(_, customer)| CustomerId::clone(customer))?;
    if chosen.values().any(|(_, other)| **other != customer) {
        return None;
    }
    let blank = |slot| ticket.blanks.iter().any(|(blank, _)| *blank == slot);
    let visible = ticket.slots.iter().enumerate().filter(|(slot, _)| !blank(*slot));
    let visible = visible.map(|(_, index)| vocabulary.article((*index)?).cloned());
    let filled = ticket.blanks.iter().map(|(slot, _)| chosen.get(slot).map(|(id, _)| ArticleId::clone(id)));
    let articles = visible.chain(filled).collect::<Option<Vec<_>>>()?;
    Outfit::new(customer, articles, None, Features::default()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Method, Timestamp};

    fn event(kind: FeedbackKind, slot: u32, article: &str, customer: Option<&str>) -> FeedbackEvent {
        FeedbackEvent {
            kind,
            completion_id: "k".into(),
            slot,
            article: ArticleId::new(article).unwrap(),
            rank: 1,
            release: "demo".into(),
            method: "gsu".into(),
            arm: None,
            customer: customer.map(|id| CustomerId::new(id).unwrap()),
            at: Timestamp::from_millis(1),
        }
    }

    #[test]
    fn what_was_accepted_becomes_an_outfit() {
        use FeedbackKind::{Accepted, Bought, Rejected, Shown};
        let ids = ["a", "b", "c", "d", "e", "f"].map(|id| ArticleId::new(id).unwrap());
        let vocabulary = Vocabulary::new(ids.to_vec()).unwrap();
        let ticket = Ticket {
            release: "demo".into(),
            vocabulary: Some([0; 4]),
            method: Method::Gsu,
            arm: None,
            at: 0,
            slots: vec![Some(0), None, Some(1), None],
            blanks: vec![(1, vec![2, 3]), (3, vec![4, 5])],
        };
        let made = |events: &[FeedbackEvent]| {
            outfit(&ticket, &vocabulary, events).map(|outfit| {
                let ids: Vec<_> = outfit.articles().iter().map(ToString::to_string).collect();
                (outfit.customer.to_string(), ids.join(" "))
            })
        };
        let whole = |articles: &str| Some(("x".to_owned(), articles.to_owned()));
        let first = event(Accepted, 1, "c", Some("x"));
        let second = event(Bought, 3, "f", Some("x"));
        let shown = event(Shown, 3, "e", Some("x"));
        assert_eq!(made(&[first.clone(), shown.clone()]), None, "a blank is left");
        assert_eq!(made(&[first.clone(), shown, second.clone()]), whole("a b c f"));
        let changed = event(Accepted, 1, "d", Some("x"));
        assert_eq!(made(&[first.clone(), changed.clone(), second.clone()]), whole("a b d f"));
        let rejected = event(Rejected, 1, "d", None);
        assert_eq!(made(&[changed, rejected, second.clone()]), None);
        let other = event(Bought, 3, "f", Some("y"));
        assert_eq!(made(&[first.clone(), other]), None, "two customers have no outfit together");
        assert_eq!(made(&[first, event(Accepted, 3, "c", Some("x")), second]), whole("a b c f"));
        let unknown = Ticket { slots: vec![Some(0), None, None, None], ..ticket.clone() };
        assert_eq!(outfit(&unknown, &vocabulary, &[]), None, "the release did not know an article");
    }
}
