//! Events: what customers and visitors did in the shop, whether it came from a suggestion, and what customers own since.
//!
//! A ticket names the suggestion that an event belongs to; without one, the database looks for what the customer was shown.

use std::{collections::HashMap, time::Duration};

use atelier_core::domain::{ArticleId, Timestamp};
use atelier_files::{EventRow, FileError, Rows, Table};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{
    FeedbackKind,
    feedback::{Report, ReportError, check_id, insert_refused, with_ticket},
    sql::{
        acceptance::SuggestedArticle,
        events::{Attribution, Event, EventRecorded},
        feedback::{FeedbackEvent, Recorded},
    },
};
use crate::{
    completion::{
        Warning,
        profiles::Profiles,
        tickets::{Key, Ticket, TicketError, Tickets},
    },
    config::EventTerms,
    outcomes::exposure::Exposure,
    platform::{
        db::{Store, StoreError},
        fault::Fault,
        http::{AppState, Finding},
    },
    releases::{LiveRelease, Releases},
};

const DAY: Duration = Duration::from_hours(24);
const REST_OF_DAY: Duration = Duration::from_millis(24 * 60 * 60 * 1000 - 1);
/// How far a caller's clock may be ahead.
const AHEAD: Duration = Duration::from_mins(1);
/// The longest order or visitor, in characters.
const LONGEST: usize = 200;
/// No single event is worth as much.
const TOO_MUCH: f64 = 1e9;
/// Rows of a file that are recorded in one transaction.
const TOGETHER: usize = 500;
const LISTED: usize = 20;

#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a secret, which must not reach a log")]
pub struct Recorder<'a> {
    pub store: &'a Store,
    pub tickets: &'a Tickets,
    pub terms: EventTerms,
    /// The service's releases, and customers in memory; a command has none.
    pub serving: Option<(&'a Releases, &'a Profiles)>,
}

/// The result of recording an event, and a warning if its article is unknown or its ticket is for another customer.
#[derive(Debug)]
pub struct Receipt {
    pub event: EventRecorded,
    pub warning: Option<Warning>,
}

/// The result of recording a stream of events.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = EventsImported)]
pub struct Summary {
    /// New events.
    pub recorded: u64,
    /// Already recorded.
    pub known: u64,
    /// Lines that are no valid events.
    pub refused: u64,
    /// The first refused lines.
    #[serde(serialize_with = "write_lines")]
    #[schema(value_type = Vec<Finding>)]
    pub errors: Vec<(u64, String)>,
    /// Recorded events that belong to no suggestion although they name a ticket: it is for another customer.
    pub unattributed: u64,
    /// Recorded events of articles that the catalogue does not have.
    pub unknown_articles: u64,
    /// The first lines of both.
    #[serde(serialize_with = "write_lines")]
    #[schema(value_type = Vec<Finding>)]
    pub warnings: Vec<(u64, String)>,
}

fn write_lines<S: Serializer>(errors: &[(u64, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(errors.iter().map(|(line, reason)| Finding::line(*line, reason)))
}

impl Recorder<'_> {
    /// Records events in one transaction, and gives the result of each.
    pub async fn record(
        self,
        reports: Vec<EventRow>,
        now: Timestamp,
    ) -> Result<Vec<Result<Receipt, ReportError>>, StoreError> {
        let live = self.serving.and_then(|(releases, _)| releases.current());
        let (articles, types) = self.name_articles(live.as_deref(), &reports).await?;
        let (mut events, mut refused, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for (report, article) in reports.into_iter().zip(articles) {
            match self.check(report, article, &types, live.as_deref(), now).await {
                Ok((event, warning)) => {
                    events.push(event);
                    warnings.push(warning);
                    refused.push(None);
                }
                // The other events would fail, too.
                Err(ReportError::Ticket(TicketError::Store(error))) => return Err(error),
                Err(error) => refused.push(Some(error)),
            }
        }
        let recorded = self.store.events().record(&events, self.terms.window).await?;
        let recorded =
            events.iter().zip(recorded).zip(warnings).map(|((event, result), warning)| {
                Ok(Receipt { event: self.finish(event, result?), warning })
            });
        let results = insert_refused(refused, recorded);
        if let Some((releases, _)) = self.serving {
            let exposure = releases.follower::<Exposure>();
            exposure.add_refused(results.iter().filter(|result| result.is_err()).count());
            let is_unknown = |Receipt { event, warning }: &&Receipt| {
                event.recorded == Recorded::Now
                    && warning.as_ref().is_some_and(|one| one.code == UNKNOWN_ARTICLE)
            };
            exposure.add_unknown_articles(results.iter().flatten().filter(is_unknown).count());
        }
        Ok(results)
    }

    /// Records the events that rows of a file are, in parts, up to `most` rows. What is recorded stays if a later part fails: sent
    /// again, it counts once.
    pub async fn record_rows<T: Table + Send>(
        self,
        rows: &mut Rows<T>,
        mut events: impl FnMut(T) -> Result<Vec<EventRow>, String>,
        most: u64,
        now: Timestamp,
        mut progress: impl FnMut(u64),
    ) -> Result<Summary, RowsError> {
        let (mut summary, mut left) = (Summary::default(), most);
        loop {
            let mut part = rows.next_rows(TOGETHER);
            if part.is_empty() {
                return Ok(summary);
            }
            let is_more = part.len() as u64 > left;
            part.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= part.len() as u64;
            let (mut lines, mut reports) = (Vec::with_capacity(part.len()), Vec::with_capacity(part.len()));
            for row in part {
                match row {
                    Ok(row) => match events(row.value) {
                        Ok(events) => {
                            reports.extend(events);
                            lines.resize(reports.len(), row.line);
                        }
                        Err(reason) => summary.refuse(row.line, reason),
                    },
                    Err(error) if error.is_fatal() => {
                        return Err(FileError::Interrupted { path: rows.path().to_owned(), error }.into());
                    }
                    Err(error) => summary.refuse(error.line, error.reason),
                }
            }
            for (line, result) in lines.into_iter().zip(self.record(reports, now).await?) {
                match result {
                    Ok(receipt) => summary.add(line, receipt),
                    Err(ReportError::Fault(fault)) => {
                        summary.refuse(line, format!("field \"{}\": {}", fault.field, fault.detail));
                    }
                    Err(error) => summary.refuse(line, error.to_string()),
                }
            }
            if is_more {
                return Err(RowsError::TooMany { most });
            }
            progress(rows.progress().0);
        }
    }

    /// The articles of events that may name variants, none of unknown ones, and the types of those that the live release does not
    /// say.
    async fn name_articles(
        self,
        live: Option<&LiveRelease>,
        reports: &[EventRow],
    ) -> Result<(Vec<Option<ArticleId>>, HashMap<ArticleId, String>), StoreError> {
        if let Some(live) = live {
            let articles = reports.iter().map(|report| live.find_article_id(&report.article));
            return Ok((articles.collect(), HashMap::new()));
        }
        let ids: Vec<ArticleId> = reports.iter().map(|report| report.article.clone()).collect();
        let named = self.store.articles().named(&ids).await?;
        let articles: Vec<Option<ArticleId>> = ids.iter().map(|id| named.get(id).cloned()).collect();
        let of_tickets = articles.iter().zip(reports).filter(|(_, report)| report.ticket.is_some());
        let of_tickets: Vec<ArticleId> = of_tickets.filter_map(|(article, _)| article.clone()).collect();
        let found = self.store.articles().get_many(&of_tickets).await?.into_iter();
        Ok((articles, found.map(|article| (article.id.clone(), article.kind().to_owned())).collect()))
    }

    async fn check(
        self,
        report: EventRow,
        article: Option<ArticleId>,
        types: &HashMap<ArticleId, String>,
        live: Option<&LiveRelease>,
        now: Timestamp,
    ) -> Result<(Event, Option<Warning>), ReportError> {
        let EventRow { id, kind, customer, visitor, consent, order, value, time, is_date, ticket, .. } =
            report;
        let mut warning = article.is_none().then(|| warn_of_unknown_article(&report.article));
        let article = article.unwrap_or(report.article);
        let kind = FeedbackKind::from_shop_word(&kind)
            .map_err(|reason| ReportError::Fault(Fault::new("kind", reason)))?;
        let is_said = |text: &String| !text.trim().is_empty();
        let (order, visitor) = (order.filter(is_said), visitor.filter(is_said));
        let at = self.check_time(time, now).map_err(ReportError::Fault)?;
        // A day's purchases come after all that was seen on it.
        let at = if is_date && kind.is_sale() { now.min(at + REST_OF_DAY) } else { at };
        let checked = check_id(&id)
            .and(check_line("order", order.as_deref()))
            .and(check_visitor(visitor.as_deref()))
            .and(value.map(thousandths).transpose());
        let value = checked.map_err(ReportError::Fault)?;
        let mut event =
            Event { id, kind, customer, visitor: None, article, order, value, at, suggestion: None };
        if let Some(ticket) = ticket {
            let of_ticket;
            (event.suggestion, of_ticket) = self.open(&ticket, &event, visitor.as_deref(), live).await?;
            warning = warning.or(of_ticket);
            if let Some((_, article)) = &mut event.suggestion {
                article.kind = article.kind.take().or_else(|| types.get(&event.article).cloned());
            }
        }
        // A visitor without consent is forgotten here.
        event.visitor = visitor.filter(|_| consent && event.customer.is_none());
        Ok((event, warning))
    }

    fn check_time(self, time: Option<Timestamp>, now: Timestamp) -> Result<Timestamp, Fault> {
        let Some(at) = time else { return Ok(now) };
        if at > now + AHEAD {
            return Err(Fault::new("time", "the time is in the future; check the clock and the time zone"));
        }
        if at + self.terms.late < now {
            let days = self.terms.late.as_secs() / DAY.as_secs();
            let detail = format!("events may be up to {days} days late, and this one is older");
            return Err(Fault::new("time", detail));
        }
        Ok(at)
    }

    /// The suggestion that a ticket names. An expired one says nothing, nor does one that does not remember all of its
    /// suggestions and not this one. One for another customer says nothing either, and there is a warning.
    async fn open(
        self,
        id: &str,
        event: &Event,
        visitor: Option<&str>,
        live: Option<&LiveRelease>,
    ) -> Result<(Option<(FeedbackEvent, SuggestedArticle)>, Option<Warning>), ReportError> {
        let (ticket, key) = match self.tickets.open(id, event.at).await {
            Ok(opened) => opened,
            Err(TicketError::Expired { .. }) => return Ok((None, None)),
            Err(error) => return Err(error.into()),
        };
        if let Some(customer) =
            event.customer.as_ref().filter(|customer| ticket.is_for_another(&key, customer))
        {
            let detail = format!(
                "the ticket is for another customer than {customer}, so this event does not count for its suggestion; \
                 send the completion_id of theirs, or no ticket"
            );
            return Ok((None, Some(Warning::new("ticket-of-another-customer", detail))));
        }
        let Some((slot, rank)) = find(&ticket, &key, &event.article) else {
            if ticket.blanks.iter().any(|blank| blank.first.len() < blank.count) {
                return Ok((None, None));
            }
            let detail = format!("{} was not suggested with this ticket; leave it out", event.article);
            return Err(ReportError::Fault(Fault::new("ticket", detail)));
        };
        let number = |number: usize| u32::try_from(number).expect("a ticket is short");
        let report = Report {
            id: event.id.clone(),
            completion_id: id.to_owned(),
            kind: event.kind,
            slot: number(slot),
            article: event.article.clone(),
            rank: None,
            customer: event.customer.clone(),
            visitor: visitor.map(str::to_owned),
            from_page: false,
        };
        let (_, feedback, article) = with_ticket(report, ticket, &key, number(rank), live, event.at);
        Ok((Some((feedback, article)), None))
    }

    /// Counts an event, and brings the customer's profile in memory up to date.
    fn finish(self, event: &Event, recorded: EventRecorded) -> EventRecorded {
        let Some((releases, profiles)) = self.serving else { return recorded };
        let exposure = releases.follower::<Exposure>();
        exposure.add_shop_event(event.kind, recorded);
        if let (true, Some((_, article))) = (recorded.counts, &event.suggestion)
            && recorded.attribution == Some(Attribution::Ticket)
            && let Some(is_new) = article.is_new
        {
            exposure.add_event(event.kind, is_new, 1);
        }
        if let Some(customer) = &event.customer
            && recorded.recorded == Recorded::Now
            && matches!(event.kind, FeedbackKind::Bought | FeedbackKind::Returned)
        {
            profiles.forget(customer);
        }
        recorded
    }
}

const UNKNOWN_ARTICLE: &str = "unknown-article";

fn warn_of_unknown_article(id: &ArticleId) -> Warning {
    let detail = format!(
        "the catalogue has no article or variant {:?}; the event is kept, but check that you send the catalogue's ids",
        id.as_str()
    );
    Warning::new(UNKNOWN_ARTICLE, detail)
}

/// Why the rows of a file were not all read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error("there are more than {most} lines (limits.bulk_rows)")]
    TooMany { most: u64 },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Summary {
    fn add(&mut self, line: u64, Receipt { event, warning }: Receipt) {
        *(if event.recorded == Recorded::Now { &mut self.recorded } else { &mut self.known }) += 1;
        if let Some(warning) = warning {
            let is_unknown = warning.code == UNKNOWN_ARTICLE;
            *(if is_unknown { &mut self.unknown_articles } else { &mut self.unattributed }) += 1;
            if self.warnings.len() < LISTED {
                self.warnings.push((line, warning.detail));
            }
        }
    }

    fn refuse(&mut self, line: u64, reason: String) {
        self.refused += 1;
        if self.errors.len() < LISTED {
            self.errors.push((line, reason));
        }
    }
}

/// The slot for which an article was suggested, and its rank. Of several slots it is the one where it ranks best.
fn find(ticket: &Ticket, key: &Key, article: &ArticleId) -> Option<(usize, usize)> {
    let mark = key.mark(article.as_str());
    let found = ticket.blanks.iter().filter_map(|blank| Some((blank.slot, blank.rank_of(mark)?)));
    found.min_by_key(|(_, rank)| *rank)
}

pub fn check_visitor(visitor: Option<&str>) -> Result<(), Fault> {
    check_line("visitor", visitor)
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

impl AppState {
    pub(crate) fn recorder(&self) -> Recorder<'_> {
        let serving = Some((&**self.releases(), self.profiles()));
        Recorder { store: &self.store, tickets: self.tickets(), terms: *self.part(), serving }
    }
}
