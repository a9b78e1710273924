//! Events: what customers and visitors did in the shop, whether it came from a suggestion, and what customers own since.
//!
//! A ticket says which suggestion an event is about; without one the database looks for what the customer was shown.

use std::time::Duration;

use atelier_core::domain::{ArticleId, CustomerId, Timestamp};
use atelier_files::{EventRow, FileError, Rows};

use super::{
    changes::Copies,
    fault::Fault,
    feedback::{ReportError, check_id, describe},
    live_release::LiveRelease,
    tickets::{Key, Ticket, TicketError, Tickets, of_caller},
};
use crate::store::{
    Attribution, Conflict, Event, EventKind, EventRecorded, FeedbackEvent, Recorded, Store, StoreError,
    SuggestedArticle,
};

/// How far a caller's clock may be ahead.
const AHEAD: Duration = Duration::from_mins(1);
/// The longest order or visitor, in characters.
const LONGEST: usize = 200;
/// No single event is worth as much.
const TOO_MUCH: f64 = 1e9;
/// Rows of a file that are recorded in one transaction.
const TOGETHER: usize = 500;
/// The bad rows that are listed.
const LISTED: usize = 20;

/// For how long events matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How late they may come. Their ids are known for at least as long.
    pub late: Duration,
    /// How long they are kept.
    pub kept: Duration,
    /// How long after a suggestion a purchase without a ticket belongs to it.
    pub window: Duration,
}

/// An event in the caller's words.
#[derive(Debug, Clone)]
pub struct Reported {
    pub id: String,
    pub kind: EventKind,
    pub customer: Option<CustomerId>,
    pub visitor: Option<String>,
    /// Whether the visitor consented to be recognised.
    pub consent: bool,
    /// Or a variant of one.
    pub article: ArticleId,
    pub order: Option<String>,
    pub value: Option<f64>,
    /// That of arrival if there is none.
    pub time: Option<Timestamp>,
    pub ticket: Option<String>,
}

impl TryFrom<EventRow> for Reported {
    type Error = String;

    fn try_from(row: EventRow) -> Result<Self, String> {
        let EventRow { id, kind, customer, visitor, consent, article, order, value, time, ticket } = row;
        let kind = kind.parse().map_err(|error| format!("field \"kind\": {error}"))?;
        Ok(Self { id, kind, customer, visitor, consent, article, order, value, time, ticket })
    }
}

/// Records events.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct Recorder<'a> {
    pub store: &'a Store,
    pub tickets: &'a Tickets,
    pub terms: Terms,
    /// Of the service; a command has none.
    pub copies: Option<Copies<'a>>,
}

/// What became of the rows of a file.
#[derive(Debug, Default)]
pub struct Summary {
    pub recorded: u64,
    /// Recorded before.
    pub known: u64,
    pub refused: u64,
    /// The first refused rows, each with its line.
    pub errors: Vec<(u64, String)>,
}

impl Recorder<'_> {
    /// Records events in one transaction, and gives the result of each.
    ///
    /// # Errors
    /// If the database fails; then none is recorded.
    pub async fn record(
        self,
        reports: Vec<Reported>,
        now: Timestamp,
    ) -> Result<Vec<Result<EventRecorded, ReportError>>, StoreError> {
        let live = self.copies.and_then(|copies| copies.releases.current());
        let articles = self.name_articles(live.as_deref(), &reports).await?;
        let (mut events, mut refused) =
            (Vec::with_capacity(reports.len()), Vec::with_capacity(reports.len()));
        for (report, article) in reports.into_iter().zip(articles) {
            match self.check(report, article, live.as_deref(), now).await {
                Ok(event) => {
                    events.push(event);
                    refused.push(None);
                }
                // The other events would fail, too.
                Err(ReportError::Ticket(TicketError::Store(error))) => return Err(error),
                Err(error) => refused.push(Some(error)),
            }
        }
        let recorded = self.store.events().record(&events, self.terms.window).await?;
        let mut recorded = events.iter().zip(recorded).map(|(event, result)| self.finish(event, result));
        let result = |refused: Option<ReportError>| match refused {
            Some(error) => Err(error),
            None => recorded.next().expect("every other event has a result; this is a bug"),
        };
        let results: Vec<_> = refused.into_iter().map(result).collect();
        if let Some(copies) = self.copies {
            copies.releases.exposure().add_refused(results.iter().filter(|result| result.is_err()).count());
        }
        Ok(results)
    }

    /// Records the rows of a file in parts. What is recorded stays if a later part fails: sent again, it counts once.
    ///
    /// # Errors
    /// If the file cannot be read, or the database fails.
    pub async fn record_rows(
        self,
        rows: &mut Rows<EventRow>,
        now: Timestamp,
        mut progress: impl FnMut(u64),
    ) -> Result<Summary, RowsError> {
        let mut summary = Summary::default();
        loop {
            let part = rows.next_rows(TOGETHER);
            if part.is_empty() {
                return Ok(summary);
            }
            let (mut lines, mut reports) = (Vec::with_capacity(part.len()), Vec::with_capacity(part.len()));
            for row in part {
                let (line, report) = match row {
                    Ok(row) => (row.line, Reported::try_from(row.value)),
                    Err(error) if error.is_fatal() => {
                        return Err(FileError::Interrupted { path: rows.path().to_owned(), error }.into());
                    }
                    Err(error) => (error.line, Err(error.reason)),
                };
                match report {
                    Ok(report) => {
                        lines.push(line);
                        reports.push(report);
                    }
                    Err(reason) => summary.refuse(line, reason),
                }
            }
            for (line, result) in lines.into_iter().zip(self.record(reports, now).await?) {
                match result {
                    Ok(EventRecorded { recorded: Recorded::Now, .. }) => summary.recorded += 1,
                    Ok(_) => summary.known += 1,
                    Err(ReportError::Fault(fault)) => {
                        summary.refuse(line, format!("field \"{}\": {}", fault.field, fault.detail));
                    }
                    Err(error) => summary.refuse(line, error.to_string()),
                }
            }
            progress(rows.progress().0);
        }
    }

    /// The articles of events that may name variants.
    async fn name_articles(
        self,
        live: Option<&LiveRelease>,
        reports: &[Reported],
    ) -> Result<Vec<ArticleId>, StoreError> {
        if let Some(live) = live {
            return Ok(reports.iter().map(|report| live.article_id(&report.article)).collect());
        }
        let ids: Vec<ArticleId> = reports.iter().map(|report| report.article.clone()).collect();
        let named = self.store.articles().named(&ids).await?;
        Ok(ids.into_iter().map(|id| named.get(&id).cloned().unwrap_or(id)).collect())
    }

    async fn check(
        self,
        report: Reported,
        article: ArticleId,
        live: Option<&LiveRelease>,
        now: Timestamp,
    ) -> Result<Event, ReportError> {
        let Reported { id, kind, customer, visitor, consent, order, value, time, ticket, .. } = report;
        // What a caller does not let the shop keep is forgotten here.
        let is_said = |text: &String| !text.trim().is_empty();
        let (order, visitor) = (order.filter(is_said), visitor.filter(is_said));
        let visitor = visitor.filter(|_| consent && customer.is_none());
        let at = self.check_time(time, now).map_err(ReportError::Fault)?;
        let checked = check_id(&id)
            .and(check_line("order", order.as_deref()))
            .and(check_line("visitor", visitor.as_deref()))
            .and(value.map(thousandths).transpose());
        let value = checked.map_err(ReportError::Fault)?;
        let mut event = Event { id, kind, customer, visitor, article, order, value, at, suggestion: None };
        if let Some(ticket) = ticket {
            event.suggestion = self.open(&ticket, &event, live).await?;
        }
        Ok(event)
    }

    fn check_time(self, time: Option<Timestamp>, now: Timestamp) -> Result<Timestamp, Fault> {
        const DAY: u64 = 24 * 60 * 60;
        let Some(at) = time else { return Ok(now) };
        if at > now + AHEAD {
            return Err(Fault::new("time", "the time is in the future; check the clock and the time zone"));
        }
        if at + self.terms.late < now {
            let days = self.terms.late.as_secs() / DAY;
            let detail = format!("events may be up to {days} days late, and this one is older");
            return Err(Fault::new("time", detail));
        }
        Ok(at)
    }

    /// The suggestion that a ticket is about. An expired one says nothing, nor does one that does not remember all of its
    /// suggestions and not this one.
    async fn open(
        self,
        id: &str,
        event: &Event,
        live: Option<&LiveRelease>,
    ) -> Result<Option<(FeedbackEvent, SuggestedArticle)>, ReportError> {
        let (ticket, key) = match self.tickets.open(id, event.at).await {
            Ok(opened) => opened,
            Err(TicketError::Expired { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some((slot, rank)) = find(&ticket, &key, &event.article) else {
            if ticket.blanks.iter().any(|blank| blank.first.len() < blank.count) {
                return Ok(None);
            }
            let detail = format!("{} was not suggested with this ticket; leave it out", event.article);
            return Err(ReportError::Fault(Fault::new("ticket", detail)));
        };
        let number = |number: usize| u32::try_from(number).expect("a ticket is short; this is a bug");
        let rules = ticket.rules_of(number(slot));
        let article = SuggestedArticle { rules, ..describe(live, &ticket.release, &event.article) };
        let completion_id = if ticket.is_shared {
            // Without either, an event's own id tells who it is of.
            let customer = event.customer.as_ref().map(CustomerId::as_str);
            of_caller(id, customer.or(event.visitor.as_deref()).unwrap_or(&event.id))
        } else {
            id.to_owned()
        };
        let feedback = FeedbackEvent {
            kind: event.kind.of_suggestion(),
            completion_id,
            slot: number(slot),
            article: event.article.clone(),
            rank: number(rank),
            release: ticket.release,
            method: ticket.method,
            arm: ticket.arm,
            customer: event.customer.clone(),
            at: event.at,
            reason: None,
        };
        Ok(Some((feedback, article)))
    }

    /// Counts an event, and brings the customer's profile in memory up to date.
    fn finish(
        self,
        event: &Event,
        recorded: Result<EventRecorded, StoreError>,
    ) -> Result<EventRecorded, ReportError> {
        let recorded = recorded.map_err(|error| match error {
            StoreError::Conflict(Conflict::UnknownCustomer) => {
                ReportError::Fault(Fault::new("customer", error.to_string()))
            }
            error => error.into(),
        })?;
        let Some(copies) = self.copies else { return Ok(recorded) };
        let exposure = copies.releases.exposure();
        exposure.add_shop_event(event.kind, recorded);
        if let (true, Some((_, article))) = (recorded.counts, &event.suggestion)
            && recorded.attribution == Some(Attribution::Ticket)
            && let Some(is_new) = article.is_new
        {
            exposure.add_event(event.kind.of_suggestion(), is_new);
        }
        if let Some(customer) = &event.customer
            && recorded.recorded == Recorded::Now
            && matches!(event.kind, EventKind::Bought | EventKind::Returned)
        {
            copies.profiles.forget(customer);
        }
        Ok(recorded)
    }
}

/// Why the rows of a file were not all read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Summary {
    fn refuse(&mut self, line: u64, reason: String) {
        self.refused += 1;
        if self.errors.len() < LISTED {
            self.errors.push((line, reason));
        }
    }
}

/// The slot for which an article was suggested, and its rank.
fn find(ticket: &Ticket, key: &Key, article: &ArticleId) -> Option<(usize, usize)> {
    let mark = key.mark(article.as_str());
    ticket.blanks.iter().find_map(|blank| Some((blank.slot, blank.rank_of(mark)?)))
}

fn check_line(field: &str, text: Option<&str>) -> Result<(), Fault> {
    let is_line = |text: &str| text.chars().count() <= LONGEST && !text.chars().any(char::is_control);
    if text.is_none_or(is_line) {
        return Ok(());
    }
    Err(Fault::new(field, format!("expected at most {LONGEST} characters, and no control characters")))
}

fn thousandths(value: f64) -> Result<i64, Fault> {
    if !(0.0..TOO_MUCH).contains(&value) {
        let detail = format!("a value is a number from 0 to below {TOO_MUCH:e}, found {value}");
        return Err(Fault::new("value", detail));
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is small enough")]
    let thousandths = (value * 1000.0).round() as i64;
    Ok(thousandths)
}
