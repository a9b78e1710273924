//! One event of feedback, and how it is held against what was suggested.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    domain::{ArticleId, CustomerId, Timestamp, Vocabulary},
    service::completion::{REMEMBERED, Ticket},
    store::{FeedbackEvent, FeedbackKind},
    util::calendar,
    web::http::{
        AppState, Finding, Kind, Problem,
        extract::{whole, whole_option},
        schema::id_text,
    },
};

const MAX_ID: usize = 256;

/// Something that happened to one suggested article.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FeedbackEvent)]
pub(crate) struct EventBody {
    /// The caller's own name for the event, another one for each: sent again, the event counts once.
    #[schema(examples("order-17/a-12"), min_length = 1, max_length = 256)]
    pub(crate) id: String,
    /// As the completion answered it.
    pub(crate) completion_id: String,
    pub(crate) kind: KindBody,
    /// The blank's place in the outfit, from 0.
    #[schema(examples(1))]
    #[serde(deserialize_with = "whole")]
    pub(crate) slot: u32,
    #[schema(schema_with = id_text)]
    pub(crate) article: String,
    /// The suggestion's rank, from 1. Needed where the service no longer knows it: beyond the first 20, and
    /// when another release is served by now.
    #[schema(examples(1), minimum = 1)]
    #[serde(default, deserialize_with = "whole_option")]
    pub(crate) rank: Option<u32>,
    /// Who did it, if the shop wants feedback to be found and erased with the customer.
    #[schema(examples("c-17"))]
    pub(crate) customer: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FeedbackKind)]
pub(crate) enum KindBody {
    Shown,
    Accepted,
    Rejected,
    Bought,
}

impl From<KindBody> for FeedbackKind {
    fn from(kind: KindBody) -> Self {
        match kind {
            KindBody::Shown => Self::Shown,
            KindBody::Accepted => Self::Accepted,
            KindBody::Rejected => Self::Rejected,
            KindBody::Bought => Self::Bought,
        }
    }
}

impl EventBody {
    /// Under its id.
    pub(super) fn read(self, state: &AppState, now: Timestamp) -> Result<(String, FeedbackEvent), Problem> {
        let mut errors = Vec::new();
        let article = ArticleId::new(&self.article)
            .map_err(|error| errors.push(Finding::at("/article", error.to_string())));
        let customer = self.customer.as_deref().map(CustomerId::new).transpose();
        let customer = customer.map_err(|error| errors.push(Finding::at("/customer", error.to_string())));
        if self.id.is_empty() || self.id.chars().count() > MAX_ID {
            let found = self.id.chars().count();
            errors.push(Finding::at(
                "/id",
                format!("an event's id has 1 to {MAX_ID} characters, found {found}"),
            ));
        }
        let (Ok(article), Ok(customer), true) = (article, customer, errors.is_empty()) else {
            return Err(Problem::invalid(errors));
        };
        let ticket = Ticket::open(&self.completion_id, &state.tickets)
            .map_err(|error| Problem::new(Kind::NotFound, error.to_string()))?;
        let live = state.serves(&ticket);
        let rank =
            rank(&ticket, live.as_ref().map(|live| live.serving.release().vocabulary()), &article, &self)
                .map_err(|finding| Problem::invalid(vec![finding]))?;
        let event = FeedbackEvent {
            kind: self.kind.into(),
            completion_id: self.completion_id,
            slot: self.slot,
            article,
            rank,
            method: ticket.method.to_string(),
            release: ticket.release,
            arm: ticket.arm,
            customer,
            at: now,
        };
        Ok((self.id, event))
    }
}

/// At which rank the article was suggested for the slot. `vocabulary` is what the ticket's numbers mean, if
/// its release is still served.
fn rank(
    ticket: &Ticket,
    vocabulary: Option<&Vocabulary>,
    article: &ArticleId,
    event: &EventBody,
) -> Result<u32, Finding> {
    let blank = ticket.blanks.iter().find(|(slot, _)| u32::try_from(*slot) == Ok(event.slot));
    let Some((_, suggested)) = blank else {
        let blanks: Vec<String> = ticket.blanks.iter().map(|(slot, _)| slot.to_string()).collect();
        let detail =
            format!("slot {} was no blank of that completion, only {}", event.slot, blanks.join(", "));
        return Err(Finding::at("/slot", detail));
    };
    if event.rank == Some(0) {
        return Err(Finding::at("/rank", "a rank is 1 or more, found 0"));
    }
    let Some(vocabulary) = vocabulary else {
        let detail =
            format!("release {:?} is not served any more as it was then, so rank is needed", ticket.release);
        return event.rank.ok_or_else(|| Finding::at("/rank", detail));
    };
    let index = vocabulary.index_of(article.as_str());
    let place = index.and_then(|index| suggested.iter().position(|suggested| *suggested == index));
    match (place.map(|place| u32::try_from(place + 1).expect("a ticket is short; this is a bug")), event.rank)
    {
        (Some(rank), Some(said)) if rank != said => {
            Err(Finding::at("/rank", format!("{article:?} was suggested at rank {rank}, not {said}")))
        }
        (Some(rank), _) => Ok(rank),
        (None, Some(said))
            if suggested.len() == REMEMBERED && said as usize > REMEMBERED && index.is_some() =>
        {
            Ok(said)
        }
        (None, _) => Err(Finding::at("/article", not_suggested(article, event.slot, suggested.len()))),
    }
}

fn not_suggested(article: &ArticleId, slot: u32, suggested: usize) -> String {
    if suggested == REMEMBERED {
        format!(
            "{article:?} is not among the first {REMEMBERED} suggestions for slot {slot}; if it came after \
             them, say its rank"
        )
    } else {
        format!("{article:?} was not suggested for slot {slot}")
    }
}

/// An event as it is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackStored {
    #[schema(examples("bought"))]
    kind: &'static str,
    completion_id: String,
    slot: u32,
    article: String,
    rank: u32,
    release: String,
    method: String,
    arm: Option<String>,
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
}

impl From<FeedbackEvent> for FeedbackStored {
    fn from(event: FeedbackEvent) -> Self {
        let FeedbackEvent { kind, completion_id, slot, article, rank, release, method, arm, at, .. } = event;
        let (kind, article) = (kind.as_str(), article.to_string());
        let at = calendar::moment(at.millis(), 1000, true);
        Self { kind, completion_id, slot, article, rank, release, method, arm, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Method;

    fn event(slot: u32, rank: Option<u32>) -> EventBody {
        EventBody {
            id: "e".into(),
            completion_id: String::new(),
            kind: KindBody::Shown,
            slot,
            article: String::new(),
            rank,
            customer: None,
        }
    }

    #[test]
    fn a_rank_is_looked_up_where_it_is_known() {
        let ids = (0..30).map(|n| ArticleId::new(format!("a-{n}")).unwrap()).collect();
        let vocabulary = Vocabulary::new(ids).unwrap();
        let ticket = Ticket {
            release: "old".into(),
            vocabulary: Some([0; 4]),
            method: Method::Gsu,
            arm: None,
            at: 0,
            slots: vec![Some(0), None, None],
            blanks: vec![(1, vec![7, 3]), (2, (0..20).collect())],
        };
        let known = |article: &str, slot, said| {
            let article = ArticleId::new(article).unwrap();
            rank(&ticket, Some(&vocabulary), &article, &event(slot, said))
        };
        let wrong = |place: &str, detail: &str| Err(Finding::at(place, detail));
        assert_eq!(known("a-3", 1, None), Ok(2));
        assert_eq!(known("a-3", 1, Some(2)), Ok(2));
        assert_eq!(known("a-3", 1, Some(1)), wrong("/rank", "\"a-3\" was suggested at rank 2, not 1"));
        assert_eq!(known("a-4", 1, Some(21)), wrong("/article", "\"a-4\" was not suggested for slot 1"));
        assert_eq!(
            known("a-3", 0, None),
            wrong("/slot", "slot 0 was no blank of that completion, only 1, 2")
        );
        assert_eq!(known("a-25", 2, Some(21)), Ok(21), "the ticket remembers no more than 20");
        let beyond =
            "\"a-25\" is not among the first 20 suggestions for slot 2; if it came after them, say its rank";
        assert_eq!(known("a-25", 2, None), wrong("/article", beyond));
        assert_eq!(known("a-25", 2, Some(20)), wrong("/article", beyond));
        assert!(known("unknown", 2, Some(21)).is_err());

        let article = ArticleId::new("a-3").unwrap();
        let unknown = |said| rank(&ticket, None, &article, &event(1, said));
        assert_eq!(unknown(Some(4)), Ok(4));
        assert_eq!(
            unknown(None),
            wrong("/rank", "release \"old\" is not served any more as it was then, so rank is needed")
        );
        assert_eq!(unknown(Some(0)), wrong("/rank", "a rank is 1 or more, found 0"));
    }
}
