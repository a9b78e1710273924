//! Feedback on suggestions: which events count, acceptance per method, and accepted outfits as training data.
//!
//! An event names its completion. The release, the method and the arm follow from the completion's ticket, so a caller
//! cannot credit another method by mistake.

use std::collections::BTreeMap;

use super::{
    completion::{NoTicket, REMEMBERED, Secret, Ticket},
    fault::{Fault, Field},
    live_release::Releases,
};
use crate::{
    domain::{ArticleId, CustomerId, Features, Outfit, Timestamp, Vocabulary},
    files,
    store::{Conflict, FeedbackEvent, FeedbackKind, Recorded, Store, StoreError},
};

/// The longest id of an event, in characters.
const MAX_EVENT_ID: usize = 256;
/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;
/// Completions that are read together for the accepted outfits.
const PAGE: u32 = 200;

/// Something that happened to one suggested article.
#[derive(Debug, Clone)]
pub struct Report {
    /// The caller's own name for the event: sent again, the event counts once.
    pub id: String,
    pub completion_id: String,
    pub kind: FeedbackKind,
    pub slot: u32,
    pub article: ArticleId,
    /// Required if the ticket does not tell it.
    pub rank: Option<u32>,
    pub customer: Option<CustomerId>,
}

/// Why an event was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("the event is invalid: {}", .0.detail)]
    Fault(Fault),
    #[error(transparent)]
    Ticket(#[from] NoTicket),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records an event, once for its id.
pub async fn record(
    store: &Store,
    releases: &Releases,
    secret: &Secret,
    report: Report,
    now: Timestamp,
) -> Result<Recorded, ReportError> {
    check_id(&report.id).map_err(ReportError::Fault)?;
    let ticket = Ticket::open(&report.completion_id, secret)?;
    let live = releases.matching(&ticket);
    let vocabulary = live.as_ref().map(|live| live.serving.release().vocabulary());
    let rank = find_rank(&ticket, vocabulary, &report).map_err(ReportError::Fault)?;
    let event = FeedbackEvent {
        kind: report.kind,
        completion_id: report.completion_id,
        slot: report.slot,
        article: report.article,
        rank,
        method: ticket.method.to_string(),
        release: ticket.release,
        arm: ticket.arm,
        customer: report.customer,
        at: now,
    };
    store.feedback().record(&report.id, &event).await.map_err(|error| match error {
        StoreError::Conflict(Conflict::UnknownCustomer) => {
            ReportError::Fault(Fault::new(Field::Customer, error.to_string()))
        }
        error => error.into(),
    })
}

/// An event's id has 1 to 256 characters.
pub fn check_id(id: &str) -> Result<(), Fault> {
    let length = id.chars().count();
    if (1..=MAX_EVENT_ID).contains(&length) {
        return Ok(());
    }
    let detail = format!("an event's id has 1 to {MAX_EVENT_ID} characters, found {length}");
    Err(Fault::new(Field::EventId, detail))
}

/// The rank at which the article was suggested for the slot. `vocabulary` gives the ticket's numbers their meaning; it is
/// `None` once another release is being served.
fn find_rank(ticket: &Ticket, vocabulary: Option<&Vocabulary>, report: &Report) -> Result<u32, Fault> {
    let article = &report.article;
    let blank = ticket.blanks.iter().find(|(slot, _)| u32::try_from(*slot) == Ok(report.slot));
    let Some((_, suggested)) = blank else {
        let blanks: Vec<String> = ticket.blanks.iter().map(|(slot, _)| slot.to_string()).collect();
        let detail = format!(
            "slot {} was not a blank of that completion; its blanks are {}",
            report.slot,
            blanks.join(", ")
        );
        return Err(Fault::new(Field::EventSlot, detail));
    };
    if report.rank == Some(0) {
        return Err(Fault::new(Field::Rank, "a rank is 1 or more, found 0"));
    }
    let Some(vocabulary) = vocabulary else {
        let detail = format!("release {:?} is no longer live in that version; send `rank`", ticket.release);
        return report.rank.ok_or_else(|| Fault::new(Field::Rank, detail));
    };
    let index = vocabulary.index_of(article.as_str());
    let place = index.and_then(|index| suggested.iter().position(|suggested| *suggested == index));
    match (
        place.map(|place| u32::try_from(place + 1).expect("a ticket is short; this is a bug")),
        report.rank,
    ) {
        (Some(rank), Some(said)) if rank != said => {
            Err(Fault::new(Field::Rank, format!("{article:?} was suggested at rank {rank}, not {said}")))
        }
        (Some(rank), _) => Ok(rank),
        (None, Some(said))
            if suggested.len() == REMEMBERED && said as usize > REMEMBERED && index.is_some() =>
        {
            Ok(said)
        }
        (None, _) => {
            Err(Fault::new(Field::EventArticle, not_suggested(article, report.slot, suggested.len())))
        }
    }
}

fn not_suggested(article: &ArticleId, slot: u32, suggested: usize) -> String {
    if suggested == REMEMBERED {
        format!(
            "{article:?} is not among the first {REMEMBERED} suggestions for slot {slot}; if it was ranked lower, \
             send its rank"
        )
    } else {
        format!("{article:?} was not suggested for slot {slot}")
    }
}

/// A page of accepted outfits as JSON Lines, and the completion that the next page begins after, if there is one.
///
/// An outfit counts if it belongs to a completion of the release that is being served, for a known customer, and every
/// blank has an accepted or bought article.
pub async fn accepted_outfits(
    store: &Store,
    releases: &Releases,
    secret: &Secret,
    after: &str,
) -> Result<(String, Option<String>), StoreError> {
    let feedback = store.feedback();
    let ids = feedback.accepted_completions(after, PAGE).await?;
    let mut lines = String::new();
    for id in &ids {
        let Ok(ticket) = Ticket::open(id, secret) else { continue };
        let Some(live) = releases.matching(&ticket) else { continue };
        let release = live.serving.release();
        let events = feedback.for_completion(id).await?;
        if let Some(outfit) = accepted_outfit(&ticket, release.vocabulary(), &events) {
            lines.push_str(&files::json_line(&outfit, release.schema()));
        }
    }
    let more = ids.len() == PAGE as usize;
    Ok((lines, ids.into_iter().last().filter(|_| more)))
}

/// The outfit that a completion's events, in the order of time, add up to.
fn accepted_outfit(ticket: &Ticket, vocabulary: &Vocabulary, events: &[FeedbackEvent]) -> Option<Outfit> {
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

/// A share with its 95 % interval (Wilson's).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Wilson's score interval: unlike the usual one it stays within 0 and 1, and says something where nothing
/// or everything was accepted.
pub fn share(hits: u64, of: u64) -> Option<Share> {
    if of == 0 || hits > of {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let (hits, of) = (hits as f64, of as f64);
    let value = hits / of;
    let spread = 1.0 + Z * Z / of;
    let centre = (value + Z * Z / (2.0 * of)) / spread;
    let half = Z / spread * (value * (1.0 - value) / of + Z * Z / (4.0 * of * of)).sqrt();
    // Rounding may step over what the formula gives exactly.
    Some(Share { value, low: (centre - half).clamp(0.0, value), high: (centre + half).clamp(value, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Method;

    fn report(article: &str, slot: u32, rank: Option<u32>) -> Report {
        Report {
            id: "e".into(),
            completion_id: String::new(),
            kind: FeedbackKind::Shown,
            slot,
            article: ArticleId::new(article).unwrap(),
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
        let known =
            |article: &str, slot, said| find_rank(&ticket, Some(&vocabulary), &report(article, slot, said));
        let wrong = |field: Field, detail: &str| Err(Fault::new(field, detail));
        assert_eq!(known("a-3", 1, None), Ok(2));
        assert_eq!(known("a-3", 1, Some(2)), Ok(2));
        assert_eq!(known("a-3", 1, Some(1)), wrong(Field::Rank, "\"a-3\" was suggested at rank 2, not 1"));
        assert_eq!(
            known("a-4", 1, Some(21)),
            wrong(Field::EventArticle, "\"a-4\" was not suggested for slot 1")
        );
        assert_eq!(
            known("a-3", 0, None),
            wrong(Field::EventSlot, "slot 0 was not a blank of that completion; its blanks are 1, 2")
        );
        assert_eq!(known("a-25", 2, Some(21)), Ok(21), "the ticket remembers no more than 20");
        let beyond = "\"a-25\" is not among the first 20 suggestions for slot 2; if it was ranked lower, send its rank";
        assert_eq!(known("a-25", 2, None), wrong(Field::EventArticle, beyond));
        assert_eq!(known("a-25", 2, Some(20)), wrong(Field::EventArticle, beyond));
        assert!(known("unknown", 2, Some(21)).is_err());

        let unknown = |said| find_rank(&ticket, None, &report("a-3", 1, said));
        assert_eq!(unknown(Some(4)), Ok(4));
        assert_eq!(
            unknown(None),
            wrong(Field::Rank, "release \"old\" is no longer live in that version; send `rank`")
        );
        assert_eq!(unknown(Some(0)), wrong(Field::Rank, "a rank is 1 or more, found 0"));
    }

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
            accepted_outfit(&ticket, &vocabulary, events).map(|outfit| {
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
        assert_eq!(accepted_outfit(&unknown, &vocabulary, &[]), None, "the release did not know an article");
    }

    /// The bounds are the roots x of (p − x)² = z²·x(1 − x)/n, solved as a quadratic in forty decimal digits.
    #[test]
    fn the_interval_is_wilsons() {
        for (hits, of, low, high) in [
            (10, 100, 0.055_229_137_060_675, 0.174_365_661_504_913),
            (0, 10, 0.0, 0.277_532_799_862_889),
            (10, 10, 0.722_467_200_137_111, 1.0),
        ] {
            let share = share(hits, of).unwrap();
            assert!((share.low - low).abs() < 1e-12 && (share.high - high).abs() < 1e-12, "{share:?}");
        }
        assert_eq!((share(0, 0), share(2, 1)), (None, None));
    }
}
