//! Feedback on suggestions: which events count, acceptance per method, and accepted outfits as training data.
//!
//! An event names its completion. The release, the method and the arm follow from the completion's ticket, so a caller
//! cannot credit another method by mistake. The ticket also says what was suggested, whichever release is live by now.

use std::collections::BTreeMap;

use atelier_core::{
    domain::{ArticleId, CustomerId, Features, Outfit, Timestamp},
    util::digest,
};
use atelier_files::AcceptedOutfit;
use futures_util::{Stream, stream};

use super::{
    FeedbackKind, Source,
    exposure::Exposure,
    sql::{
        acceptance::{SuggestedArticle, day_of},
        feedback::{FeedbackEvent, Recorded},
    },
};
use crate::{
    completion::tickets::{Blank, Key, Ticket, TicketError, Tickets, of_caller, read_recorded},
    people::PersonId,
    platform::{
        db::{Conflict, Store, StoreError},
        fault::Fault,
    },
    releases::{LiveRelease, Releases},
};

/// The longest id of an event, in characters.
const MAX_EVENT_ID: usize = 256;
/// The length of a suggestion's name in hexadecimal digits: enough to tell millions of suggestions apart.
const NAME_LENGTH: usize = 16;
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
    /// Required for suggestions past those that the ticket remembers.
    pub rank: Option<u32>,
    pub customer: Option<CustomerId>,
    /// Tells apart those who share a completion and are no customers. It is not stored.
    pub visitor: Option<String>,
    /// Whether a page says so. Its ids are others than those of the shop's programs.
    pub from_page: bool,
}

impl Report {
    fn is_anonymous_page(&self) -> bool {
        self.from_page && self.customer.is_none()
    }

    /// Who shares the completion.
    fn caller(&self) -> String {
        let visitor = self.visitor.as_deref();
        match &self.customer {
            Some(customer) => customer.to_string(),
            // A visitor's id has no line break.
            None if self.from_page => format!("page\n{}", visitor.unwrap_or_default()),
            None => visitor.unwrap_or(&self.id).to_owned(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("the event is invalid: {}", .0.detail)]
    Fault(Fault),
    #[error(transparent)]
    Ticket(#[from] TicketError),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ReportError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(Conflict::UnknownCustomer) => {
                Self::Fault(Fault::new("customer", error.to_string()))
            }
            error => Self::Store(error),
        }
    }
}

/// An event that its ticket confirms: its id, and what is stored.
type Confirmed = (String, FeedbackEvent, SuggestedArticle);

/// Records events, each once for its id and with its time, in one transaction; gives the result of each.
pub async fn record_all(
    store: &Store,
    releases: &Releases,
    tickets: &Tickets,
    reports: impl IntoIterator<Item = (Report, Timestamp)>,
) -> Result<Vec<Result<Recorded, ReportError>>, StoreError> {
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    for (report, at) in reports {
        match confirm(store, releases, tickets, report, at).await {
            Ok(event) => {
                events.push(event);
                refused.push(None);
            }
            Err(error) => refused.push(Some(error)),
        }
    }
    let recorded = store.feedback().record_all(&events).await?;
    let finish = |((_, event, article), result): (&Confirmed, Result<Recorded, StoreError>)| {
        let recorded = result?;
        count(releases.follower::<Exposure>(), recorded, event.kind, article);
        Ok(recorded)
    };
    Ok(insert_refused(refused, events.iter().zip(recorded).map(finish)))
}

/// The results of all events: of the refused ones their errors, of the others these.
pub(super) fn insert_refused<T>(
    refused: Vec<Option<ReportError>>,
    mut others: impl Iterator<Item = Result<T, ReportError>>,
) -> Vec<Result<T, ReportError>> {
    let result = |refused: Option<ReportError>| match refused {
        Some(error) => Err(error),
        None => others.next().expect("every other event has a result"),
    };
    refused.into_iter().map(result).collect()
}

async fn confirm(
    store: &Store,
    releases: &Releases,
    tickets: &Tickets,
    mut report: Report,
    now: Timestamp,
) -> Result<Confirmed, ReportError> {
    check_id(&report.id).map_err(ReportError::Fault)?;
    if let Some(live) = releases.current() {
        report.article = live.find_article_id(&report.article).unwrap_or(report.article);
    }
    let (ticket, key) = tickets.open(&report.completion_id, now).await?;
    if let Some(customer) = report.customer.as_ref().filter(|customer| ticket.is_for_another(&key, customer))
    {
        let detail = format!(
            "this completion is for another customer than {customer}; send the completion_id of theirs"
        );
        return Err(ReportError::Fault(Fault::new("customer", detail)));
    }
    let (rank, is_remembered) = find_rank(&ticket, &key, &report).map_err(ReportError::Fault)?;
    if !is_remembered && store.articles().get(&report.article).await?.is_none() {
        let detail = format!("there is no article {}", report.article);
        return Err(ReportError::Fault(Fault::new("article", detail)));
    }
    Ok(with_ticket(report, ticket, &key, rank, releases.current().as_deref(), now))
}

/// A report with what its ticket says. Its customer or visitor tells apart those who share a completion; without either, its id
/// does. What a page says without a customer is about a suggestion of its own: it changes nothing that the shop reports, and pages
/// without a visitor are one.
pub(super) fn with_ticket(
    report: Report,
    ticket: Ticket,
    key: &Key,
    rank: u32,
    live: Option<&LiveRelease>,
    at: Timestamp,
) -> Confirmed {
    let described = describe(live, &ticket.release, &report.article);
    let article = if report.is_anonymous_page() {
        SuggestedArticle { source: Source::Pages, ..described }
    } else {
        SuggestedArticle { rules: ticket.rules_of(report.slot), ..described }
    };
    let completion_id = if ticket.is_shared || report.is_anonymous_page() {
        of_caller(&report.completion_id, key, &report.caller())
    } else {
        report.completion_id
    };
    let id = if report.from_page { format!("page\n{}", report.id) } else { report.id };
    let event = FeedbackEvent {
        kind: report.kind,
        completion_id,
        slot: report.slot,
        article: report.article,
        rank,
        method: ticket.method,
        release: ticket.release,
        arm: ticket.arm,
        customer: report.customer,
        at,
        reason: None,
    };
    (id, event, article)
}

/// Counts an event that is not a repetition.
fn count(exposure: &Exposure, recorded: Recorded, kind: FeedbackKind, article: &SuggestedArticle) {
    if let (Recorded::Now, Some(is_new)) = (recorded, article.is_new) {
        exposure.add_event(kind, is_new, 1);
    }
}

/// The facts of a suggested article, by catalogue and release.
pub(crate) fn describe(live: Option<&LiveRelease>, release: &str, article: &ArticleId) -> SuggestedArticle {
    let Some(live) = live else { return SuggestedArticle::default() };
    let place = live.catalogue.position_of(article.as_str());
    let found = place.and_then(|place| live.catalogue.article(place));
    let is_known =
        |one: &LiveRelease| one.serving.release().vocabulary().index_of(article.as_str()).is_some();
    SuggestedArticle {
        kind: found.map(|article| article.kind().to_owned()),
        is_new: live.find(release).map(|one| !is_known(one)),
        ..SuggestedArticle::default()
    }
}

/// A page on which a person looks at suggestions.
#[derive(Debug)]
pub struct Viewing<'a> {
    pub person: PersonId,
    /// A known one.
    pub customer: Option<&'a CustomerId>,
    /// Tells the outfit from the customer's others of the day: when it was begun, or its number if it was opened again.
    pub outfit: Option<i64>,
    pub completion_id: &'a str,
    pub live: &'a LiveRelease,
    pub method: &'a str,
    pub arm: Option<&'a str>,
    pub at: Timestamp,
}

/// A suggestion on such a page.
#[derive(Debug)]
pub struct Seen {
    pub slot: usize,
    pub article: ArticleId,
    pub rank: usize,
}

impl Viewing<'_> {
    /// A short name for a suggestion. It is the same for the same person, customer, outfit and slot on the same day, whatever
    /// else is in the outfit by then: what is suggested again counts as shown once.
    pub fn name(&self, slot: usize, article: &ArticleId) -> String {
        let Self { person, customer, outfit, live, method, at, .. } = self;
        let day = day_of(*at);
        let customer = customer.map_or("", CustomerId::as_str);
        // No part contains a line break.
        let all = [
            &person.0.to_string(),
            &day.to_string(),
            customer,
            live.name(),
            method,
            &slot.to_string(),
            article.as_str(),
            &outfit.map(|outfit| outfit.to_string()).unwrap_or_default(),
        ];
        let mut name = digest::sha256(all.join("\n").as_bytes());
        name.truncate(NAME_LENGTH);
        name
    }
}

pub async fn record_shown(store: &Store, viewing: &Viewing<'_>, seen: &[Seen]) -> Result<(), StoreError> {
    let ticket = read_recorded(viewing.completion_id);
    let number = |number: usize| u32::try_from(number).expect("an outfit and a page are short");
    let event = |Seen { slot, article, rank }: &Seen| {
        let event = FeedbackEvent {
            kind: FeedbackKind::Shown,
            completion_id: viewing.completion_id.to_owned(),
            slot: number(*slot),
            article: article.clone(),
            rank: number(*rank),
            release: viewing.live.name().to_owned(),
            method: viewing.method.to_owned(),
            arm: viewing.arm.map(str::to_owned),
            customer: viewing.customer.cloned(),
            at: viewing.at,
            reason: None,
        };
        let article = SuggestedArticle {
            rules: ticket.as_ref().map(|ticket| ticket.rules_of(event.slot)).unwrap_or_default(),
            ..describe(Some(viewing.live), viewing.live.name(), &event.article)
        };
        (key_of(&viewing.name(*slot, &event.article), FeedbackKind::Shown), event, article)
    };
    let events: Vec<_> = seen.iter().map(event).collect();
    for ((.., article), recorded) in events.iter().zip(store.feedback().record_all(&events).await?) {
        match recorded {
            Ok(recorded) => {
                count(viewing.live.follower::<Exposure>(), recorded, FeedbackKind::Shown, article);
            }
            // It was shown before, elsewhere in the outfit.
            Err(StoreError::Conflict(Conflict::FeedbackDiffers)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Records what a person did with a suggestion, by its name. Does nothing if no suggestion of this article was shown under
/// that name, or if it was first shown with a piece that the `saved` outfit lacks: the accepted outfit would be one that
/// nobody made.
pub async fn judge(
    store: &Store,
    releases: &Releases,
    name: &str,
    article: &ArticleId,
    saved: Option<&[Option<ArticleId>]>,
    kind: FeedbackKind,
    now: Timestamp,
) -> Result<(), StoreError> {
    let shown = store.feedback().by_key(&key_of(name, FeedbackKind::Shown)).await?;
    let is_beside_others = |shown: &FeedbackEvent| {
        let seen = read_recorded(&shown.completion_id).and_then(|ticket| ticket.outfit).unwrap_or_default();
        saved.is_some_and(|saved| seen.iter().any(|id| id.is_some() && !saved.contains(id)))
    };
    if let Some(shown) = shown.filter(|shown| shown.article == *article && !is_beside_others(shown)) {
        let judged = FeedbackEvent { kind, at: now, ..shown };
        // Its suggestion is counted already, with the article.
        let counted = SuggestedArticle::default();
        let recorded = store.feedback().record(&key_of(name, kind), &judged, &counted).await?;
        let article = describe(releases.current().as_deref(), &judged.release, article);
        count(releases.follower::<Exposure>(), recorded, kind, &article);
    }
    Ok(())
}

/// The key of a suggestion's refusal, by the suggestion's name.
pub(crate) fn refusal_key(name: &str) -> String {
    key_of(name, FeedbackKind::Rejected)
}

fn key_of(name: &str, kind: FeedbackKind) -> String {
    format!("studio-{}-{name}", kind.as_str())
}

pub fn check_id(id: &str) -> Result<(), Fault> {
    let length = id.chars().count();
    if (1..=MAX_EVENT_ID).contains(&length) {
        return Ok(());
    }
    let detail = format!("an event's id has 1 to {MAX_EVENT_ID} characters, found {length}");
    Err(Fault::new("id", detail))
}

/// The rank at which the article was suggested for the slot, and whether the ticket says so. If only the caller does, the ticket does
/// not contradict it: as many articles were suggested, and this one is neither among those that it remembers nor in the outfit.
fn find_rank(ticket: &Ticket, key: &Key, report: &Report) -> Result<(u32, bool), Fault> {
    let article = &report.article;
    let Some(blank) = ticket.blanks.iter().find(|blank| u32::try_from(blank.slot) == Ok(report.slot)) else {
        let blanks: Vec<String> = ticket.blanks.iter().map(|blank| blank.slot.to_string()).collect();
        let detail = format!(
            "slot {} was not a blank of that completion; its blanks are {}",
            report.slot,
            blanks.join(", ")
        );
        return Err(Fault::new("slot", detail));
    };
    if report.rank == Some(0) {
        return Err(Fault::new("rank", "a rank is 1 or more, found 0"));
    }
    let rank = blank.rank_of(key.mark(article.as_str()));
    let rank = rank.map(|rank| u32::try_from(rank).expect("a ticket is short"));
    let in_outfit = ticket.outfit.iter().flatten().flatten().any(|other| other == article);
    match (rank, report.rank) {
        (Some(rank), Some(said)) if rank != said => {
            Err(Fault::new("rank", format!("{article:?} was suggested at rank {rank}, not {said}")))
        }
        (Some(rank), _) => Ok((rank, true)),
        (None, Some(said))
            if (blank.first.len() + 1..=blank.count).contains(&(said as usize)) && !in_outfit =>
        {
            Ok((said, false))
        }
        (None, _) => Err(Fault::new("article", not_suggested(article, blank))),
    }
}

fn not_suggested(article: &ArticleId, Blank { slot, count, first, .. }: &Blank) -> String {
    let remembered = first.len();
    if remembered < *count {
        format!(
            "{article:?} is not among the first {remembered} suggestions for slot {slot}; if it was ranked lower, send its \
             rank, from {} to {count}",
            remembered + 1
        )
    } else {
        format!("{article:?} was not suggested for slot {slot}")
    }
}

/// The accepted outfits, in parts as needed. An outfit counts if it belongs to a known customer, and every blank has an accepted or
/// bought article. Neither the completion's release nor the age of the ticket matters.
pub fn accepted_outfits(
    store: &Store,
) -> impl Stream<Item = Result<Vec<AcceptedOutfit>, StoreError>> + Send + use<> {
    let store = store.clone();
    stream::try_unfold(Some(String::new()), move |after| {
        let store = store.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            let feedback = store.feedback();
            let ids = feedback.accepted_completions(&after, PAGE).await?;
            let mut outfits = Vec::new();
            for id in &ids {
                let Some(ticket) = read_recorded(id) else { continue };
                outfits.extend(accepted_outfit(&ticket, &feedback.for_training(id).await?));
            }
            let more = ids.len() == PAGE as usize;
            Ok(Some((outfits, ids.into_iter().last().filter(|_| more))))
        }
    })
}

/// The outfit that a completion's events, in the order of time, add up to.
fn accepted_outfit(ticket: &Ticket, events: &[FeedbackEvent]) -> Option<AcceptedOutfit> {
    let mut chosen: BTreeMap<usize, (&ArticleId, &CustomerId, Timestamp)> = BTreeMap::new();
    for event in events {
        let slot = event.slot as usize;
        match (event.kind, &event.customer) {
            (FeedbackKind::Accepted | FeedbackKind::Bought, Some(customer)) => {
                chosen.insert(slot, (&event.article, customer, event.at));
            }
            (FeedbackKind::Rejected | FeedbackKind::Returned, _)
                if chosen.get(&slot).is_some_and(|(id, ..)| **id == event.article) =>
            {
                chosen.remove(&slot);
            }
            _ => {}
        }
    }
    let customer = chosen.values().next().map(|(_, customer, _)| CustomerId::clone(customer))?;
    if chosen.values().any(|(_, other, _)| **other != customer) {
        return None;
    }
    let time = chosen.values().map(|(.., at)| *at).max()?;
    let visible = ticket.outfit.as_ref()?.iter().flatten().cloned().map(Some);
    let filled =
        ticket.blanks.iter().map(|blank| chosen.get(&blank.slot).map(|(id, ..)| ArticleId::clone(id)));
    let articles = visible.chain(filled).collect::<Option<Vec<_>>>()?;
    let outfit = Outfit::new(customer, articles, None, Features::default()).ok()?;
    Some(AcceptedOutfit { outfit, time })
}
