//! The ledger of outcomes: the suggestion that each event belongs to, and what it changes.
//!
//! A [`Ledger`] begins with what is stored about the suggestions, people and orders of some reports. Recording these notes all that
//! is to be written. `sql::ledger` does both; nothing here knows the database.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use atelier_core::domain::{ArticleId, CustomerId, RuleDigest, Timestamp};
use sha2::{Digest, Sha256};

use super::{
    FeedbackKind, Source,
    sql::{
        acceptance::{SuggestedArticle, day_of},
        arms::ArmCounts,
        events::{Attribution, Event, EventRecorded},
        feedback::{FeedbackEvent, Recorded, check_texts},
    },
};
use crate::{
    completion::tickets::CountedRules,
    platform::db::{Conflict, StoreError},
};

/// Half of a SHA-256 digest of an event's id: enough to tell apart more events than there ever are.
pub(super) type EventHash = [u8; 16];
/// The digest of a caller's key, or of a suggestion: its completion, slot and article.
pub(super) type Hash = [u8; 32];
/// Whose order, the order, and the article.
pub(super) type Line = (Who, String, ArticleId);
/// Added to columns of counts.
pub(super) type Columns = BTreeMap<&'static str, i64>;

/// The stored data, and with each report its consequences.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub window: Duration,
    pub customers: HashSet<String>,
    /// The stored feedback with the callers' keys.
    pub keys: HashMap<Hash, FeedbackEvent>,
    /// The kinds, articles and customers of recorded events. Their times may be those of arrival.
    pub events: HashMap<EventHash, (FeedbackKind, String, Option<String>)>,
    pub suggestions: HashMap<Hash, Suggestion>,
    /// The completions of experiments, with the customers who were shown some of their suggestions.
    pub completions: HashSet<(String, String)>,
    /// When which suggestions of an article were shown to someone.
    pub shown: HashMap<(Who, ArticleId), Vec<(Timestamp, Hash)>>,
    /// Earlier purchases that belong to no suggestion, of articles whose suggestions the events are about.
    pub unclear: Vec<Sale>,
    pub sales: HashMap<Line, Vec<Sale>>,
    pub changes: Changes,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub feedback: Vec<NewFeedback>,
    /// Suggestions that were accepted, and whose articles came back.
    pub taken_back: Vec<Hash>,
    /// New ones, and those that were recorded before and belong to a suggestion since.
    pub events: Vec<Sale>,
    pub counts: BTreeMap<CountsRow, Columns>,
    /// By the rule, the day on which the suggestion was shown, and whether the rules did not apply.
    pub rules: BTreeMap<(RuleDigest, i64, bool), Columns>,
    /// By arm and customer.
    pub arms: BTreeMap<(String, String), ArmCounts>,
    /// By day and kind.
    pub event_counts: BTreeMap<(i64, FeedbackKind), Columns>,
    /// By customer and article: how often it was bought and returned, and when last.
    pub purchases: BTreeMap<(String, String), (i64, i64, i64)>,
}

/// Feedback to be stored. Without a suggestion it is a repeat, which counts nowhere.
#[derive(Debug)]
pub(super) struct NewFeedback {
    pub key: Hash,
    pub event: FeedbackEvent,
    pub suggestion: Option<Hash>,
    pub counts: bool,
}

/// A row of `feedback_counts`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CountsRow {
    Stored(i64),
    /// The row that has these, if there is one.
    With {
        day: i64,
        release: String,
        method: String,
        arm: String,
        article_type: String,
        is_new: i64,
        slot: u32,
        source: Source,
    },
}

/// A suggestion that was shown, and what became of it.
#[derive(Debug)]
pub(super) struct Suggestion {
    pub shown: FeedbackEvent,
    pub rules: CountedRules,
    pub day: i64,
    pub counts: CountsRow,
    /// The feedback on it, and whether it counts: what was accepted and came back does not.
    pub feedback: BTreeMap<FeedbackKind, bool>,
    /// The sales that count for it, one of each kind.
    pub sales: HashMap<(Attribution, FeedbackKind), Sale>,
}

/// An event as it is stored, mostly of a sale.
#[derive(Debug, Clone)]
pub(super) struct Sale {
    pub id: EventHash,
    pub kind: FeedbackKind,
    pub who: Option<Who>,
    pub article: ArticleId,
    /// None without a customer or a visitor who consented: it must not be kept.
    pub order: Option<String>,
    pub value: Option<i64>,
    pub at: Timestamp,
    pub suggestion: Option<(Attribution, Hash)>,
    /// Its part of the revenue, if it counts for its suggestion. Of a return, at most its purchase's part is taken back.
    pub revenue: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Customer(String),
    Visitor(Vec<u8>),
}

impl Who {
    pub(super) fn of(event: &Event) -> Option<Self> {
        match (&event.customer, &event.visitor) {
            (Some(customer), _) => Some(Self::Customer(customer.to_string())),
            (None, Some(visitor)) => Some(Self::Visitor(hash_event(visitor).to_vec())),
            (None, None) => None,
        }
    }
}

impl Sale {
    fn new(event: &Event) -> Self {
        let who = Who::of(event);
        Self {
            id: hash_event(&event.id),
            kind: event.kind,
            order: event.order.clone().filter(|_| who.is_some()),
            who,
            article: event.article.clone(),
            value: event.value,
            at: event.at,
            suggestion: None,
            revenue: None,
        }
    }

    pub(super) fn line(&self) -> Option<Line> {
        Some((self.who.clone()?, self.order.clone()?, self.article.clone()))
    }

    pub(super) fn customer(&self) -> Option<&str> {
        if let Some(Who::Customer(id)) = &self.who { Some(id) } else { None }
    }
}

impl Suggestion {
    fn new(event: &FeedbackEvent, article: &SuggestedArticle) -> Self {
        let day = day_of(event.at);
        Self {
            counts: CountsRow::With {
                day,
                release: event.release.clone(),
                method: event.method.clone(),
                arm: event.arm.clone().unwrap_or_default(),
                article_type: article.kind.clone().unwrap_or_default(),
                is_new: article.is_new.map_or(-1, i64::from),
                slot: event.slot,
                source: article.source,
            },
            shown: FeedbackEvent { kind: FeedbackKind::Shown, ..event.clone() },
            rules: article.rules.clone(),
            day,
            feedback: BTreeMap::new(),
            sales: HashMap::new(),
        }
    }

    pub(super) fn has(&self, kind: FeedbackKind) -> bool {
        self.feedback.contains_key(&kind)
    }
}

impl Changes {
    /// Notes that a recorded event belongs to a suggestion since, or adds another revenue.
    fn change(&mut self, event: Sale) {
        match self.events.iter_mut().find(|other| other.id == event.id) {
            Some(other) => *other = event,
            None => self.events.push(event),
        }
    }
}

impl Ledger {
    /// Records events, in the order of what may have caused them: what was shown comes before the purchase, and that before the
    /// return.
    pub(super) fn record_events(&mut self, events: &[Event]) -> Vec<Result<EventRecorded, StoreError>> {
        let (sales, others): (Vec<_>, Vec<_>) =
            events.iter().enumerate().partition(|(_, event)| event.kind.is_sale());
        let (purchases, later): (Vec<_>, Vec<_>) =
            sales.into_iter().partition(|(_, event)| event.kind == FeedbackKind::Bought);
        let mut results = Vec::with_capacity(events.len());
        results.extend(others.into_iter().map(|(place, event)| (place, self.record_event(event))));
        self.attribute_earlier();
        let sales = purchases.into_iter().chain(later);
        results.extend(sales.map(|(place, event)| (place, self.record_event(event))));
        results.sort_unstable_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Records feedback under the caller's key, each once.
    pub(super) fn record_feedback(
        &mut self,
        key: Hash,
        event: &FeedbackEvent,
        article: &SuggestedArticle,
    ) -> Result<Recorded, StoreError> {
        check_texts(event)?;
        if !self.keys.contains_key(&key) {
            self.check_customer(event.customer.as_ref())?;
        }
        let recorded = self.record(key, event, article)?;
        let more =
            (i64::from(event.kind == FeedbackKind::Bought), i64::from(event.kind == FeedbackKind::Returned));
        if let (Recorded::Now, Some(customer), 1) = (recorded, &event.customer, more.0 + more.1) {
            self.add_purchase(customer.as_str(), &event.article, more, event.at);
        }
        Ok(recorded)
    }

    fn check_customer(&self, customer: Option<&CustomerId>) -> Result<(), StoreError> {
        match customer {
            Some(customer) if !self.customers.contains(customer.as_str()) => {
                Err(StoreError::Conflict(Conflict::UnknownCustomer))
            }
            _ => Ok(()),
        }
    }

    /// Another event of the same kind about the same suggestion is stored, and does not count again. What is accepted, rejected
    /// or bought was shown.
    fn record(
        &mut self,
        key: Hash,
        event: &FeedbackEvent,
        article: &SuggestedArticle,
    ) -> Result<Recorded, StoreError> {
        if let Some(stored) = self.keys.get(&key) {
            let differs = StoreError::Conflict(Conflict::FeedbackDiffers);
            return if repeats(event, stored) { Ok(Recorded::Before) } else { Err(differs) };
        }
        self.keys.insert(key, event.clone());
        let (id, kind) = (hash_suggestion(event), event.kind);
        let suggestion = self.suggestions.entry(id).or_insert_with(|| Suggestion::new(event, article));
        if suggestion.has(kind) {
            let event = event.clone();
            self.changes.feedback.push(NewFeedback { key, event, suggestion: None, counts: false });
            return Ok(Recorded::Before);
        }
        if kind == FeedbackKind::Shown {
            self.show(id, key);
            return Ok(Recorded::Now);
        }
        let is_back = suggestion.has(FeedbackKind::Returned)
            || suggestion.sales.contains_key(&(Attribution::Window, FeedbackKind::Returned));
        let counts = kind != FeedbackKind::Accepted || !is_back;
        let is_sold_in_window = suggestion.sales.contains_key(&(Attribution::Window, kind));
        if !suggestion.has(FeedbackKind::Shown) {
            // No caller's key has that digest.
            self.show(id, id);
        }
        if kind == FeedbackKind::Returned {
            self.take_back(&id);
        }
        self.suggestion(&id).feedback.insert(kind, counts);
        let event = event.clone();
        self.changes.feedback.push(NewFeedback { key, event, suggestion: Some(id), counts });
        if counts {
            self.count(&id, kind, 1);
            if !is_sold_in_window {
                self.count_for_arm(&id, ArmCounts::of(kind, 1));
            }
        }
        Ok(Recorded::Now)
    }

    fn suggestion(&mut self, id: &Hash) -> &mut Suggestion {
        self.suggestions.get_mut(id).expect("it was found before")
    }

    /// Records that a suggestion was shown. A completion counts once for its customer.
    fn show(&mut self, id: Hash, key: Hash) {
        let suggestion = self.suggestion(&id);
        suggestion.feedback.insert(FeedbackKind::Shown, true);
        let event = suggestion.shown.clone();
        let mut more = ArmCounts::of(FeedbackKind::Shown, 1);
        if let (Some(_), Some(customer)) = (&event.arm, &event.customer) {
            let is_first = self.completions.insert((event.completion_id.clone(), customer.to_string()));
            more.completions = is_first.into();
        }
        self.changes.feedback.push(NewFeedback { key, event, suggestion: Some(id), counts: true });
        self.count(&id, FeedbackKind::Shown, 1);
        self.count_for_arm(&id, more);
    }

    /// The article came back, so that it was accepted no longer counts.
    fn take_back(&mut self, id: &Hash) {
        if self.suggestion(id).feedback.get(&FeedbackKind::Accepted) == Some(&true) {
            self.suggestion(id).feedback.insert(FeedbackKind::Accepted, false);
            self.changes.taken_back.push(*id);
            self.count(id, FeedbackKind::Accepted, -1);
            self.count_for_arm(id, ArmCounts::of(FeedbackKind::Accepted, -1));
        }
    }

    /// Counts an outcome by ticket.
    fn count(&mut self, id: &Hash, kind: FeedbackKind, more: i64) {
        let suggestion = &self.suggestions[id];
        let CountedRules { held_out, rules } = &suggestion.rules;
        let of_rules = rules.iter().map(|rule| (*rule, suggestion.day, *held_out));
        for key in of_rules {
            *self.changes.rules.entry(key).or_default().entry(kind.as_str()).or_default() += more;
        }
        let counts = self.changes.counts.entry(suggestion.counts.clone()).or_default();
        *counts.entry(kind.as_str()).or_default() += more;
    }

    fn count_for_arm(&mut self, id: &Hash, more: ArmCounts) {
        let FeedbackEvent { arm, customer, .. } = &self.suggestions[id].shown;
        if let (Some(arm), Some(customer)) = (arm, customer) {
            *self.changes.arms.entry((arm.clone(), customer.to_string())).or_default() += more;
        }
    }

    fn record_event(&mut self, event: &Event) -> Result<EventRecorded, StoreError> {
        let mut sale = Sale::new(event);
        let (id, kind) = (sale.id, event.kind);
        if let Some((known_kind, article, customer)) = self.events.get(&id) {
            // A customer who was erased is none.
            let is_theirs = customer
                .as_deref()
                .is_none_or(|customer| event.customer.as_ref().is_some_and(|own| own.as_str() == customer));
            return if (*known_kind, &**article) == (kind, event.article.as_str()) && is_theirs {
                Ok(EventRecorded { recorded: Recorded::Before, attribution: None, counts: false })
            } else {
                Err(StoreError::Conflict(Conflict::EventDiffers))
            };
        }
        self.check_customer(event.customer.as_ref())?;
        let mut counts = false;
        if let Some((feedback, article)) = &event.suggestion {
            check_texts(feedback)?;
            let feedback = FeedbackEvent { kind, at: event.at, ..feedback.clone() };
            let suggestion = hash_suggestion(&feedback);
            if let Some(who) = sale.who.clone() {
                let shown = self.shown.entry((who, event.article.clone())).or_default();
                shown.push((event.at, suggestion));
            }
            sale.suggestion = Some((Attribution::Ticket, suggestion));
            if !self.is_of_repeat(&sale) {
                counts = self.record(key_of_event(&id), &feedback, article)? == Recorded::Now;
            }
            if counts && kind.is_sale() {
                self.count_sale(&mut sale, Attribution::Ticket, &suggestion);
            }
        } else if kind.is_sale() {
            sale.suggestion = self.find_suggestion(&sale);
            counts = self.attribute(&mut sale);
        }
        self.note_purchase(&sale);
        if let Some(line) = sale.line().filter(|_| kind.is_sale()) {
            self.sales.entry(line.clone()).or_default().push(sale.clone());
            if kind == FeedbackKind::Bought {
                self.adopt(&line, &sale);
            }
        }
        let customer = sale.customer().map(str::to_owned);
        self.events.insert(id, (kind, event.article.to_string(), customer));
        let columns = self.changes.event_counts.entry((day_of(event.at), kind)).or_default();
        *columns.entry("events").or_default() += 1;
        *columns.entry("value").or_default() += event.value.unwrap_or_default();
        let attribution = sale.suggestion.map(|(by, _)| by);
        self.changes.events.push(sale);
        Ok(EventRecorded { recorded: Recorded::Now, attribution, counts })
    }

    /// Notes what a customer has since. A return says nothing of purchases of other orders, so one whose purchase is unknown waits for
    /// it.
    fn note_purchase(&mut self, sale: &Sale) {
        let Some(customer) = sale.customer() else { return };
        let line = sale.line();
        let earlier = line.as_ref().and_then(|line| self.sales.get(line)).map_or(&[][..], |sales| sales);
        let count = |kind| earlier.iter().filter(|sale| sale.kind == kind).count();
        let (bought, returned) = (count(FeedbackKind::Bought), count(FeedbackKind::Returned));
        let more = match sale.kind {
            FeedbackKind::Bought => (1, i64::from(returned > bought)),
            FeedbackKind::Returned if line.is_none() || bought > returned => (0, 1),
            _ => return,
        };
        self.add_purchase(customer, &sale.article, more, sale.at);
    }

    fn add_purchase(&mut self, customer: &str, article: &ArticleId, more: (i64, i64), at: Timestamp) {
        let key = (customer.to_owned(), article.to_string());
        let purchase = self.changes.purchases.entry(key).or_insert((0, 0, i64::MIN));
        *purchase = (purchase.0 + more.0, purchase.1 + more.1, purchase.2.max(at.millis()));
    }

    /// The suggestion of a sale without a ticket.
    fn find_suggestion(&self, sale: &Sale) -> Option<(Attribution, Hash)> {
        if sale.kind == FeedbackKind::Bought {
            return self.find_shown_last(sale);
        }
        let purchases =
            self.sales.get(&sale.line()?)?.iter().filter(|sale| sale.kind == FeedbackKind::Bought);
        let suggestions = purchases.filter_map(|sale| Some((sale.revenue.is_none(), sale.suggestion?)));
        suggestions.min_by_key(|(is_repeat, (by, _))| (*is_repeat, *by)).map(|(_, suggestion)| suggestion)
    }

    /// The suggestion that someone was shown last within the window before a purchase.
    fn find_shown_last(&self, sale: &Sale) -> Option<(Attribution, Hash)> {
        let Sale { who, article, at, .. } = sale;
        let shown = self.shown.get(&(who.clone()?, article.clone()))?.iter();
        let in_time = shown.filter(|(shown_at, _)| shown_at <= at && *at <= *shown_at + self.window);
        in_time.max().map(|(_, id)| (Attribution::Window, *id))
    }

    /// Whether a return, or a kept article, is of a purchase that does not count for its suggestion, because another one does.
    fn is_of_repeat(&self, sale: &Sale) -> bool {
        if !matches!(sale.kind, FeedbackKind::Returned | FeedbackKind::Kept) {
            return false;
        }
        let sales = sale.line().and_then(|line| self.sales.get(&line));
        let (Some(sales), Some((_, id))) = (sales, sale.suggestion) else { return false };
        let of_suggestion = |other: &&Sale| {
            other.kind == FeedbackKind::Bought && other.suggestion.is_some_and(|(_, other)| other == id)
        };
        let mut purchases = sales.iter().filter(of_suggestion).peekable();
        purchases.peek().is_some() && purchases.all(|purchase| purchase.revenue.is_none())
    }

    /// Counts a sale without a ticket for its suggestion, and says whether it counts.
    fn attribute(&mut self, sale: &mut Sale) -> bool {
        let Some((by, id)) = sale.suggestion else { return false };
        if self.is_of_repeat(sale) {
            return false;
        }
        let Some(suggestion) = self.suggestions.get(&id) else { return false };
        let counts = match by {
            Attribution::Window => !suggestion.sales.contains_key(&(by, sale.kind)),
            Attribution::Ticket => {
                let feedback = FeedbackEvent { kind: sale.kind, at: sale.at, ..suggestion.shown.clone() };
                let recorded = self.record(key_of_event(&sale.id), &feedback, &SuggestedArticle::default());
                recorded == Ok(Recorded::Now)
            }
        };
        if counts {
            self.count_sale(sale, by, &id);
        }
        counts
    }

    /// Notes what a sale adds to the counts of its suggestion, besides the outcome by its ticket. A return takes back at most what
    /// its purchase added.
    fn count_sale(&mut self, sale: &mut Sale, by: Attribution, id: &Hash) {
        let suggestion = self.suggestions.get_mut(id).expect("it was found before");
        let paid_back = |paid: i64, value: Option<i64>| value.map_or(paid, |value| value.min(paid));
        let value = sale.value.unwrap_or_default();
        let (window_column, revenue) = match sale.kind {
            FeedbackKind::Bought => ("window_bought", value),
            FeedbackKind::Returned => {
                let bought = suggestion.sales.get(&(by, FeedbackKind::Bought));
                let paid = bought.and_then(|bought| bought.revenue).unwrap_or_default();
                ("window_returned", -paid_back(paid, sale.value))
            }
            _ => ("window_kept", 0),
        };
        let mut added = revenue;
        if sale.kind == FeedbackKind::Bought
            && let Some(returned) = suggestion.sales.get_mut(&(by, FeedbackKind::Returned))
            && returned.revenue == Some(0)
        {
            // It named the ticket, and came first.
            let revenue = -paid_back(value, returned.value);
            returned.revenue = Some(revenue);
            added += revenue;
            self.changes.change(returned.clone());
        }
        sale.revenue = Some(revenue);
        suggestion.sales.insert((by, sale.kind), sale.clone());
        let counts = self.changes.counts.entry(suggestion.counts.clone()).or_default();
        let (revenue_column, other) = match by {
            Attribution::Ticket => ("revenue", Attribution::Window),
            Attribution::Window => ("window_revenue", Attribution::Ticket),
        };
        *counts.entry(revenue_column).or_default() += added;
        let mut more = ArmCounts::default();
        if by == Attribution::Window {
            *counts.entry(window_column).or_default() += 1;
            // By ticket, the outcome itself is counted with the feedback.
            if !suggestion.has(sale.kind) {
                more = ArmCounts::of(sale.kind, 1);
            }
        }
        // An order is paid once, also if it is reported with a ticket and without.
        let is_paid = suggestion.sales.get(&(other, sale.kind)).is_some_and(|sale| sale.revenue != Some(0));
        more.revenue = added - if is_paid { revenue } else { 0 };
        self.count_for_arm(id, more);
        if by == Attribution::Window && sale.kind == FeedbackKind::Returned {
            self.take_back(id);
        }
    }

    /// Returns that came before their purchase belong to its suggestion.
    fn adopt(&mut self, line: &Line, purchase: &Sale) {
        let Some(suggestion) = purchase.suggestion else { return };
        for place in 0..self.sales.get(line).map_or(0, Vec::len) {
            let mut sale = self.sales[line][place].clone();
            if sale.kind == FeedbackKind::Bought || sale.suggestion.is_some() {
                continue;
            }
            sale.suggestion = Some(suggestion);
            self.attribute(&mut sale);
            self.changes.change(sale.clone());
            self.sales.get_mut(line).expect("it was there")[place] = sale;
        }
    }

    /// Earlier purchases belong to what the events say was shown before them.
    fn attribute_earlier(&mut self) {
        for mut sale in std::mem::take(&mut self.unclear) {
            sale.suggestion = self.find_shown_last(&sale);
            if sale.suggestion.is_none() {
                continue;
            }
            self.attribute(&mut sale);
            self.changes.change(sale.clone());
            if let Some(line) = sale.line() {
                let sales = self.sales.entry(line.clone()).or_default();
                sales.retain(|other| other.id != sale.id);
                sales.push(sale.clone());
                self.adopt(&line, &sale);
            }
        }
    }
}

/// Whether an event repeats a stored one. The stored time is that of the first report, and an erased customer is removed,
/// so neither is compared. Nor is the reason, which is said later.
fn repeats(event: &FeedbackEvent, stored: &FeedbackEvent) -> bool {
    let customer = stored.customer.as_ref().and(event.customer.clone());
    FeedbackEvent { at: stored.at, reason: stored.reason, customer, ..event.clone() } == *stored
}

/// All that is stored of a caller's key.
pub(super) fn hash_key(key: &str) -> Hash {
    Sha256::digest(key).into()
}

/// The key of the feedback that follows from an event.
pub(super) fn key_of_event(id: &EventHash) -> Hash {
    hash_key(&format!("event-{}", hex::encode(id)))
}

/// All that is stored of an event's or a visitor's id.
pub(super) fn hash_event(id: &str) -> EventHash {
    Sha256::digest(id)[..16].try_into().expect("a digest is longer")
}

/// The suggestion that an event is about. Events of one kind about it count once.
pub(super) fn hash_suggestion(event: &FeedbackEvent) -> Hash {
    let FeedbackEvent { completion_id, slot, article, .. } = event;
    // No part contains a line break.
    hash_key(&format!("{completion_id}\n{slot}\n{article}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn sale(id: &str, kind: FeedbackKind, value: i64) -> Event {
        Event {
            id: id.into(),
            kind,
            customer: Some(CustomerId::new("c").unwrap()),
            visitor: None,
            article: ArticleId::new("a").unwrap(),
            order: Some("7".into()),
            value: Some(value),
            at: NOW,
            suggestion: None,
        }
    }

    /// With the ticket of a completion.
    fn suggested(completion: &str, event: Event) -> Event {
        let feedback = FeedbackEvent {
            kind: event.kind,
            completion_id: completion.into(),
            slot: 1,
            article: event.article.clone(),
            rank: 1,
            release: "demo".into(),
            method: "gsu".into(),
            arm: Some("autumn/a".into()),
            customer: event.customer.clone(),
            at: event.at,
            reason: None,
        };
        let rules = CountedRules { held_out: false, rules: vec![[1; 6]] };
        Event { suggestion: Some((feedback, SuggestedArticle { rules, ..Default::default() })), ..event }
    }

    /// Of a customer, with a window of a day.
    fn ledger() -> Ledger {
        Ledger { window: 24 * HOUR, customers: ["c".to_owned()].into(), ..Ledger::default() }
    }

    /// The sums of all counts, of rules' and of the customer in the arm, after batches of events.
    fn record<'e>(batches: impl IntoIterator<Item = &'e [Event]>) -> (Columns, Columns, ArmCounts) {
        let mut ledger = ledger();
        for events in batches {
            let results = ledger.record_events(events);
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        }
        let sums = |all: Vec<Columns>| {
            let mut sums = Columns::new();
            all.into_iter().flatten().for_each(|(column, more)| *sums.entry(column).or_default() += more);
            sums.retain(|_, sum| *sum != 0);
            sums
        };
        let Changes { counts, rules, arms, .. } = ledger.changes;
        let mut arm = ArmCounts::default();
        for more in arms.into_values() {
            arm += more;
        }
        (sums(counts.into_values().collect()), sums(rules.into_values().collect()), arm)
    }

    /// All orders of so many places.
    fn orders(of: usize) -> Vec<Vec<usize>> {
        (0..of).fold(vec![Vec::new()], |orders, last| {
            let with_last = |order: &Vec<usize>, at| [&order[..at], &[last], &order[at..]].concat();
            orders.iter().flat_map(|order| (0..=last).map(move |at| with_last(order, at))).collect()
        })
    }

    /// Returned articles are not accepted, with a ticket or without.
    #[test]
    fn the_order_of_arrival_changes_no_count() {
        let [shown, accepted] = [("1", FeedbackKind::Shown), ("2", FeedbackKind::Accepted)]
            .map(|(id, kind)| suggested("k", sale(id, kind, 0)));
        let (bought, returned) =
            (sale("3", FeedbackKind::Bought, 100), sale("4", FeedbackKind::Returned, 40));
        let events = [shown.clone(), accepted.clone(), suggested("k", bought.clone()), returned.clone()];
        let expected: Columns = [("bought", 1), ("returned", 1), ("revenue", 60), ("shown", 1)].into();
        let of_rule: Columns = [("bought", 1), ("returned", 1), ("shown", 1)].into();
        let of_arm =
            ArmCounts { completions: 1, shown: 1, bought: 1, returned: 1, revenue: 60, accepted: 0, kept: 0 };
        for order in orders(events.len()) {
            let sent: Vec<Event> = order.iter().map(|place| events[*place].clone()).collect();
            let counted = (expected.clone(), of_rule.clone(), of_arm);
            assert_eq!(record([&sent[..]]), counted, "{order:?} together");
            assert_eq!(record(sent.chunks(1)), counted, "{order:?} one by one");
            let again: Vec<Event> = sent.iter().chain(&sent).cloned().collect();
            assert_eq!(record(again.chunks(3)), counted, "{order:?} sent again");
        }
        let (shown, without) = ([shown], [accepted, bought, returned]);
        let expected: Columns =
            [("shown", 1), ("window_bought", 1), ("window_returned", 1), ("window_revenue", 60)].into();
        for order in orders(without.len()) {
            let sent: Vec<Event> = order.iter().map(|place| without[*place].clone()).collect();
            let (counts, _, arm) = record([&shown[..]].into_iter().chain(sent.chunks(1)));
            assert_eq!((counts, arm.accepted, arm.revenue), (expected.clone(), 0, 60), "{order:?}");
        }
    }

    #[test]
    fn a_payment_that_two_reports_name_counts_once_for_the_arm_and_comes_back_once() {
        let events = [
            suggested("k", sale("1", FeedbackKind::Shown, 0)),
            sale("2", FeedbackKind::Bought, 100),
            suggested("k", Event { order: None, ..sale("3", FeedbackKind::Returned, 100) }),
            suggested("k", sale("4", FeedbackKind::Bought, 100)),
        ];
        let (counts, _, arm) = record(events.chunks(1));
        assert_eq!((counts.get("revenue"), arm.revenue), (None, 0), "{counts:?}");
    }

    #[test]
    fn no_return_takes_back_more_than_was_paid() {
        for (paid, back) in [(100, 40), (100, 130), (0, 50)] {
            for ticket in [true, false] {
                let bought = sale("2", FeedbackKind::Bought, paid);
                let events = [
                    suggested("k", sale("1", FeedbackKind::Shown, 0)),
                    if ticket { suggested("k", bought) } else { bought },
                    sale("3", FeedbackKind::Returned, back),
                    sale("4", FeedbackKind::Returned, back),
                ];
                let (counts, _, arm) = record(events.chunks(1));
                let left = paid - back.min(paid);
                let column = if ticket { "revenue" } else { "window_revenue" };
                assert_eq!(counts.get(column).copied().unwrap_or_default(), left, "{paid} {back} {ticket}");
                assert_eq!((arm.bought, arm.returned, arm.revenue), (1, 1, left));
            }
        }
    }
}
