//! What customers and visitors did in the shop, and which suggestion it belongs to.
//!
//! A batch is one transaction. It needs one statement for each look-up, and one that inserts its rows. Only purchases,
//! returns and events with a ticket need statements of their own.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use atelier_core::{
    domain::{ArticleId, CustomerId, Timestamp},
    named,
};
use futures_util::Stream;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use sqlx::{
    Any, AnyConnection, Arguments, AssertSqlSafe, FromRow, Row,
    any::{AnyArguments, AnyRow},
    query::Query,
};
use utoipa::ToSchema;

use super::{
    acceptance::{CountedRules, SuggestedArticle, Tally, day_of, take_back},
    feedback::{FeedbackEvent, FeedbackKind, Recorded, find_shown, has_fact, outcome_fact},
};
use crate::{
    experiments::ArmCounts,
    platform::db::{
        Conflict, Store, StoreError,
        connect::Dialect,
        pages::{self, PART},
        record::Record,
        upsert,
    },
};

/// Events whose customers, visitors and articles one statement asks for.
const TOGETHER: usize = 500;
/// Old events that are removed together: a writer in between waits for these at most.
const REMOVED_TOGETHER: u32 = 2000;

/// The events of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    pub(crate) store: &'a Store,
}

/// What happened to an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    Viewed,
    Added,
    Bought,
    Returned,
    Kept,
    Rejected,
}

named!(
    EventKind,
    "an event is viewed, added, bought, returned, kept or rejected",
    Viewed = "viewed",
    Added = "added",
    Bought = "bought",
    Returned = "returned",
    Kept = "kept",
    Rejected = "rejected",
);

impl Store {
    pub fn events(&self) -> Events<'_> {
        Events { store: self }
    }
}

impl EventKind {
    pub const ALL: [Self; 6] =
        [Self::Viewed, Self::Added, Self::Bought, Self::Returned, Self::Kept, Self::Rejected];

    /// What it says of a suggestion.
    pub fn of_suggestion(self) -> FeedbackKind {
        match self {
            Self::Viewed => FeedbackKind::Shown,
            Self::Added => FeedbackKind::Accepted,
            Self::Bought => FeedbackKind::Bought,
            Self::Returned => FeedbackKind::Returned,
            Self::Kept => FeedbackKind::Kept,
            Self::Rejected => FeedbackKind::Rejected,
        }
    }

    pub fn is_sale(self) -> bool {
        matches!(self, Self::Bought | Self::Returned | Self::Kept)
    }
}

/// Something that a customer or visitor did.
#[derive(Debug, Clone)]
pub struct Event {
    /// The caller's own name for it.
    pub id: String,
    pub kind: EventKind,
    pub customer: Option<CustomerId>,
    /// The visitor's id, if they consented.
    pub visitor: Option<String>,
    pub article: ArticleId,
    pub order: Option<String>,
    /// Thousandths of the shop's currency.
    pub value: Option<i64>,
    pub at: Timestamp,
    /// What its ticket says, if it has one.
    pub suggestion: Option<(FeedbackEvent, SuggestedArticle)>,
}

/// How an event belongs to a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribution {
    /// It, or its purchase, named the ticket.
    Ticket,
    /// The suggestion was shown shortly before.
    Window,
}

named!(
    Attribution,
    "an event belongs to a suggestion by ticket or window",
    Ticket = "ticket",
    Window = "window"
);

/// The result of recording an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecorded {
    pub recorded: Recorded,
    pub attribution: Option<Attribution>,
    /// Whether it is the first of its kind about its suggestion.
    pub counts: bool,
}

/// A stored event, as its customer's export has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub kind: EventKind,
    pub article: ArticleId,
    pub order: Option<String>,
    pub value: Option<i64>,
    pub at: Timestamp,
    pub attribution: Option<Attribution>,
}

/// An article that a customer bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    pub customer: CustomerId,
    pub article: ArticleId,
    pub order: Option<String>,
    pub at: Timestamp,
    /// Whether it came back.
    pub returned: bool,
}

/// How often a customer bought an article, and how often it came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    pub article: ArticleId,
    pub bought: u64,
    pub returned: u64,
    pub at: Timestamp,
}

/// Half of a SHA-256 digest: enough to tell apart more events than there ever are.
type Hash = [u8; 16];

fn hash(text: &str) -> Hash {
    Sha256::digest(text)[..16].try_into().expect("a digest is longer; this is a bug")
}

impl Events<'_> {
    /// Records events, each once for its id, in one transaction. An event without a ticket belongs to the suggestion of its
    /// article that its customer or visitor was shown last within `window`, also if that is reported later; a return, to the
    /// suggestion of its purchase.
    ///
    /// # Errors
    /// Of an event, if its id was used for another one, or if there is no such customer. Otherwise if the database fails; then
    /// none is recorded.
    pub async fn record(
        self,
        events: &[Event],
        window: Duration,
    ) -> Result<Vec<Result<EventRecorded, StoreError>>, StoreError> {
        let mut transaction = self.store.write().await?;
        self.store.feedback().take_turns(&mut transaction).await?;
        let mut batch = Batch::read(self.store, &mut transaction, events, window).await?;
        let mut results = vec![None; events.len()];
        // What was shown comes before the purchase in the same batch, and that before the return.
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|index| match events[*index].kind {
            EventKind::Bought => 1,
            kind if kind.is_sale() => 2,
            _ => 0,
        });
        let others = order.partition_point(|index| !events[*index].kind.is_sale());
        for part in [&order[..others], &order[others..]] {
            for index in part {
                results[*index] = Some(match batch.add(&mut transaction, &events[*index]).await {
                    Err(error @ (StoreError::Conflict(_) | StoreError::Unfit { .. })) => Err(error),
                    recorded => Ok(recorded?),
                });
            }
            batch.attribute_earlier(&mut transaction).await?;
        }
        batch.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Events on this day or later, with the sum of their values, by kind.
    pub async fn counts(self, since_day: i64) -> Result<Vec<(EventKind, u64, i64)>, StoreError> {
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            "select kind, cast(sum(events) as bigint), cast(sum(value) as bigint) from event_counts where day >= $1
             group by kind",
        )
        .bind(since_day)
        .fetch_all(self.store.readers()?)
        .await?;
        let parse = |(kind, events, value): (String, i64, i64)| match kind.parse::<EventKind>() {
            Ok(kind) => Ok((kind, events.unsigned_abs(), value)),
            Err(reason) => Err(StoreError::Damaged { table: "event_counts", id: kind, reason }),
        };
        let mut counts = rows.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        counts.sort_unstable_by_key(|(kind, ..)| *kind);
        Ok(counts)
    }

    /// The events of a customer in the order of arrival, read in parts as needed.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<StoredEvent, StoreError>> + Send + use<> {
        const SQL: &str = "select * from events where customer_id = $1 and seq > $2 order by seq limit $3";
        pages::for_customer(self.store, customer, SQL, |row| row.try_get("seq"))
    }

    /// What a customer bought, by the ids of articles, read in parts as needed.
    pub fn purchases(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<Purchase, StoreError>> + Send + use<> {
        const SQL: &str =
            "select * from purchases where customer_id = $1 and article_id > $2 order by article_id limit $3";
        let customer = customer.clone();
        let query = move |after: String| {
            sqlx::query(SQL).bind(customer.to_string()).bind(after).bind(i64::from(PART))
        };
        let key = |row: &AnyRow| row.try_get("article_id");
        pages::stream(self.store, String::new(), PART, query, key, |row| Ok(Purchase::from_row(row)?))
    }

    /// How many articles customers bought, each time they did.
    pub async fn count_bought(self) -> Result<u64, StoreError> {
        self.store
            .count("select count(*) from events where kind = 'bought' and customer_id is not null")
            .await
    }

    /// What customers bought, in the order of arrival, read in parts as needed. A return is of its order, or of all
    /// earlier purchases if it or the purchase names none.
    pub fn bought(self) -> impl Stream<Item = Result<Bought, StoreError>> + Send + use<> {
        const SQL: &str = "select seq, customer_id, article_id, order_id, at, cast(case when exists (select 1 from events as back \
             where back.customer_id = events.customer_id and back.article_id = events.article_id \
             and back.kind = 'returned' and (back.order_id = events.order_id \
             or (back.order_id is null or events.order_id is null) and back.at >= events.at)) \
             then 1 else 0 end as bigint) as returned \
             from events where kind = 'bought' and customer_id is not null and seq > $1 order by seq limit $2";
        let query = |after: i64| sqlx::query(SQL).bind(after).bind(i64::from(PART));
        let seq = |row: &AnyRow| row.try_get("seq");
        pages::stream(self.store, 0, PART, query, seq, |row| Ok(Bought::from_row(row)?))
    }

    /// Removes events from before a time, in short transactions. Their counts stay.
    pub async fn remove_before(self, at: Timestamp) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let delete = sqlx::query(
                "delete from events where seq in (select seq from events where at < $1 order by at limit $2)",
            )
            .bind(at.millis())
            .bind(i64::from(REMOVED_TOGETHER));
            let removed = self.store.execute(delete).await?;
            all += removed;
            if removed < u64::from(REMOVED_TOGETHER) {
                return Ok(all);
            }
        }
    }
}

impl FromRow<'_, AnyRow> for StoredEvent {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let seq: i64 = row.try_get("seq")?;
        let row = Record::new(row, "events", &seq);
        Ok(Self {
            kind: row.parse("kind", |kind: String| kind.parse::<EventKind>())?,
            article: row.parse("article_id", |id: String| ArticleId::new(id))?,
            order: row.get("order_id")?,
            value: row.get("value")?,
            at: row.time("at")?,
            attribution: row.parse_optional("attribution", |by: String| by.parse::<Attribution>())?,
        })
    }
}

impl FromRow<'_, AnyRow> for Bought {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let seq: i64 = row.try_get("seq")?;
        let row = Record::new(row, "events", &seq);
        Ok(Self {
            customer: row.parse("customer_id", |id: String| CustomerId::new(id))?,
            article: row.parse("article_id", |id: String| ArticleId::new(id))?,
            order: row.get("order_id")?,
            at: row.time("at")?,
            returned: row.get::<i64>("returned")? > 0,
        })
    }
}

impl FromRow<'_, AnyRow> for Purchase {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id: String = row.try_get("article_id")?;
        let row = Record::new(row, "purchases", &id);
        let count = |column| row.get(column).map(i64::unsigned_abs);
        Ok(Self {
            article: row.parse("article_id", |id: String| ArticleId::new(id))?,
            bought: count("bought")?,
            returned: count("returned")?,
            at: row.time("at")?,
        })
    }
}

/// The person in an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Customer(String),
    Visitor(Vec<u8>),
}

impl Who {
    fn of(event: &Event) -> Option<Self> {
        match (&event.customer, &event.visitor) {
            (Some(customer), _) => Some(Self::Customer(customer.to_string())),
            (None, Some(visitor)) => Some(Self::Visitor(hash(visitor).to_vec())),
            (None, None) => None,
        }
    }
}

/// When a suggestion was shown, and its fact.
type Shown = (i64, Vec<u8>);

/// A suggestion that an event belongs to: the fact of its event `shown`.
#[derive(Debug, Clone)]
struct Suggestion {
    by: Attribution,
    fact: Vec<u8>,
}

/// A sale, of an earlier batch or this one.
#[derive(Debug, Clone)]
struct Sale {
    id_hash: Vec<u8>,
    kind: EventKind,
    value: Option<i64>,
    at: Timestamp,
    suggestion: Option<Suggestion>,
    is_counted: bool,
}

/// Of an event `shown`: the day, the row of `feedback_counts`, the arm, the customer, and the rules.
type CountedShown = (Option<i64>, Option<i64>, Option<String>, Option<String>, Option<Vec<u8>>);

/// A sale as it is stored.
#[derive(Debug)]
struct StoredSale {
    who: Who,
    order: Option<String>,
    article: String,
    sale: Sale,
}

/// Of which [`StoredSale`] is read.
const SELECT_SALES: &str = "select customer_id, visitor_hash, order_id, article_id, id_hash, kind, value, at, attribution, shown_fact,
    counts_id from events";

impl FromRow<'_, AnyRow> for StoredSale {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id_hash: Vec<u8> = row.try_get("id_hash")?;
        let row = Record::new(row, "events", &"of a sale");
        let by: Option<Attribution> = row.parse_optional("attribution", |by: String| by.parse())?;
        let (customer, fact): (Option<String>, Option<Vec<u8>>) =
            (row.get("customer_id")?, row.get("shown_fact")?);
        let counts_id: Option<i64> = row.get("counts_id")?;
        let who = match customer {
            Some(customer) => Who::Customer(customer),
            // Others are not asked for.
            None => Who::Visitor(row.get("visitor_hash")?),
        };
        Ok(Self {
            who,
            order: row.get("order_id")?,
            article: row.get("article_id")?,
            sale: Sale {
                id_hash,
                kind: row.parse("kind", |kind: String| kind.parse())?,
                value: row.get("value")?,
                at: row.time("at")?,
                suggestion: by.zip(fact).map(|(by, fact)| Suggestion { by, fact }),
                is_counted: counts_id.is_some(),
            },
        })
    }
}

/// Whose order, the order, and the article.
type Line = (Who, String, String);

/// That a sale is counted for its suggestion.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// The day on which the suggestion was shown.
    shown_day: i64,
    /// The row of `feedback_counts`.
    id: i64,
    revenue: i64,
}

/// A sale that is counted for a suggestion, which has one of each kind.
#[derive(Debug)]
struct Counting {
    id_hash: Vec<u8>,
    value: Option<i64>,
    revenue: i64,
}

/// The same as it is stored, after the suggestion's fact, the attribution and the kind.
type CountingRow = (Vec<u8>, String, String, Vec<u8>, Option<i64>, i64);

/// The rest of what purchases change in a row of `feedback_counts`.
#[derive(Debug, Default)]
struct Added {
    revenue: i64,
    window: [i64; 3],
    window_revenue: i64,
}

/// An event as it is written.
struct NewRow<'e> {
    id_hash: Hash,
    event: &'e Event,
    order: Option<&'e str>,
    suggestion: Option<Suggestion>,
    counted: Option<Counted>,
}

/// A batch, with what is known of its events and what they change.
struct Batch<'e> {
    store: &'e Store,
    window: Duration,
    /// The kinds and articles of events that are recorded, by their ids. Their times may be those of arrival.
    known: HashMap<Hash, (EventKind, String, Option<String>)>,
    customers: HashSet<String>,
    /// The suggestions of an article that were shown to someone.
    shown: HashMap<(Who, String), Vec<Shown>>,
    /// Earlier purchases that belong to no suggestion, of articles whose suggestions this batch is about.
    unclear: Vec<StoredSale>,
    sales: HashMap<Line, Vec<Sale>>,
    /// The sales that are counted, by the suggestion's fact.
    counted: HashMap<(Vec<u8>, Attribution, EventKind), Counting>,
    rows: Vec<NewRow<'e>>,
    tally: Tally,
    counts: BTreeMap<(i64, &'static str), (i64, i64)>,
    purchases: BTreeMap<(&'e str, &'e str), (i64, i64, i64)>,
    added: BTreeMap<i64, Added>,
}

impl<'e> Batch<'e> {
    async fn read(
        store: &'e Store,
        connection: &mut AnyConnection,
        events: &[Event],
        window: Duration,
    ) -> Result<Self, StoreError> {
        let dialect = store.dialect;
        let hashes: Vec<Hash> = events.iter().map(|event| hash(&event.id)).collect();
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        let known: Vec<(Vec<u8>, String, String, Option<String>)> = pages::in_transaction(
            connection,
            dialect,
            "select id_hash, kind, article_id, customer_id from events where id_hash in",
            &hashes,
            "",
        )
        .await?;
        let known = known
            .into_iter()
            .filter_map(|(id, kind, article, customer)| {
                Some((id.try_into().ok()?, (kind.parse().ok()?, article, customer)))
            })
            .collect();
        let customers = distinct(events.iter().filter_map(|event| event.customer.as_ref()));
        let customers: Vec<&str> = customers.into_iter().map(CustomerId::as_str).collect();
        // They stay until the events that refer to them are committed.
        let lock = if dialect == Dialect::Postgres { " for key share" } else { "" };
        let found: Vec<(String,)> = pages::in_transaction(
            connection,
            dialect,
            "select id from visible_customers where id in",
            &customers,
            lock,
        )
        .await?;
        let customers = found.into_iter().map(|(id,)| id).collect();
        let mut batch = Self {
            store,
            window,
            known,
            customers,
            shown: HashMap::new(),
            unclear: Vec::new(),
            sales: HashMap::new(),
            counted: HashMap::new(),
            rows: Vec::with_capacity(events.len()),
            tally: Tally::default(),
            counts: BTreeMap::new(),
            purchases: BTreeMap::new(),
            added: BTreeMap::new(),
        };
        let new: Vec<&Event> =
            events.iter().filter(|event| !batch.known.contains_key(&hash(&event.id))).collect();
        let suggested: Vec<&Event> = new.iter().copied().filter(|event| event.suggestion.is_some()).collect();
        batch.read_unclear(connection, &suggested).await?;
        batch.read_sales(connection, &new).await?;
        let unclear: Vec<&Event> = new
            .into_iter()
            .filter(|event| event.kind == EventKind::Bought && event.suggestion.is_none())
            .collect();
        batch.read_shown(connection, &unclear).await?;
        batch.read_counted(connection, &suggested).await?;
        Ok(batch)
    }

    fn window_millis(&self) -> i64 {
        i64::try_from(self.window.as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// Reads the purchases that belong to no suggestion and may follow what these events say was shown.
    async fn read_unclear(
        &mut self,
        connection: &mut AnyConnection,
        events: &[&Event],
    ) -> Result<(), StoreError> {
        for events in events.chunks(TOGETHER) {
            let times = || events.iter().map(|event| event.at.millis());
            let (Some(first), Some(last)) = (times().min(), times().max()) else { continue };
            let last = last + self.window_millis();
            let (customers, visitors, articles) = people(events);
            let visitors: Vec<&[u8]> = visitors.iter().map(|hash| &hash[..]).collect();
            let rest =
                format!(" and kind = 'bought' and attribution is null and at between {first} and {last}");
            let select = format!("{SELECT_SALES} where customer_id in");
            self.unclear.extend(read_of(connection, &select, &customers, &articles, &rest).await?);
            let select = format!("{SELECT_SALES} where visitor_hash in");
            self.unclear.extend(read_of(connection, &select, &visitors, &articles, &rest).await?);
        }
        // The first counts. One may be in several chunks.
        self.unclear.sort_by(|a, b| (a.sale.at, &a.sale.id_hash).cmp(&(b.sale.at, &b.sale.id_hash)));
        self.unclear.dedup_by(|a, b| a.sale.id_hash == b.sale.id_hash);
        Ok(())
    }

    /// Reads what is recorded of the orders of these events.
    async fn read_sales(
        &mut self,
        connection: &mut AnyConnection,
        events: &[&Event],
    ) -> Result<(), StoreError> {
        let orders = events.iter().filter(|event| event.kind.is_sale()).filter_map(|event| order(event));
        let earlier: Vec<String> = self.unclear.iter().filter_map(|one| one.order.clone()).collect();
        let rows: Vec<StoredSale> = pages::in_transaction(
            connection,
            self.store.dialect,
            &format!("{SELECT_SALES} where order_id in"),
            &distinct(orders.chain(earlier.iter().map(String::as_str))),
            " and kind in ('bought', 'returned', 'kept')",
        )
        .await?;
        for StoredSale { who, order, article, sale } in rows {
            if let Some(order) = order {
                self.sales.entry((who, order, article)).or_default().push(sale);
            }
        }
        Ok(())
    }

    /// Reads what was shown to the customers and visitors of these purchases.
    async fn read_shown(
        &mut self,
        connection: &mut AnyConnection,
        events: &[&Event],
    ) -> Result<(), StoreError> {
        for events in events.chunks(TOGETHER) {
            let times = || events.iter().map(|event| event.at.millis());
            let (Some(first), Some(last)) = (times().min(), times().max()) else { continue };
            let first = first - self.window_millis();
            let (customers, visitors, articles) = people(events);
            let visitors: Vec<&[u8]> = visitors.iter().map(|hash| &hash[..]).collect();
            let [day, last_day] = [first, last].map(|at| day_of(Timestamp::from_millis(at)));
            let rest = format!(" and kind = 'shown' and shown_day between {day} and {last_day}");
            let select = "select customer_id, article_id, at, fact from feedback_events where customer_id in";
            let to_customers: Vec<(String, String, i64, Vec<u8>)> =
                read_of(connection, select, &customers, &articles, &rest).await?;
            let rest = format!(
                " and attribution = 'ticket' and shown_fact is not null and at between {first} and {last}"
            );
            let select = "select visitor_hash, article_id, at, shown_fact from events where visitor_hash in";
            let to_visitors: Vec<(Vec<u8>, String, i64, Vec<u8>)> =
                read_of(connection, select, &visitors, &articles, &rest).await?;
            let to_customers = to_customers
                .into_iter()
                .map(|(id, article, at, fact)| (Who::Customer(id), article, at, fact));
            let to_visitors = to_visitors
                .into_iter()
                .map(|(hash, article, at, fact)| (Who::Visitor(hash), article, at, fact));
            for (who, article, at, fact) in to_customers.chain(to_visitors) {
                self.shown.entry((who, article)).or_default().push((at, fact));
            }
        }
        Ok(())
    }

    /// Reads which sales are counted, of what was shown, of orders and of these events' tickets.
    async fn read_counted(
        &mut self,
        connection: &mut AnyConnection,
        events: &[&Event],
    ) -> Result<(), StoreError> {
        let sold = self.sales.values().flatten().filter_map(|sale| sale.suggestion.as_ref());
        let sold = sold.map(|suggestion| &suggestion.fact[..]);
        let shown = self.shown.values().flatten().map(|(_, fact)| &fact[..]);
        let named: Vec<[u8; 32]> = events
            .iter()
            .filter_map(|event| event.suggestion.as_ref())
            .map(|(feedback, _)| outcome_fact(feedback, FeedbackKind::Shown))
            .collect();
        let facts = distinct(shown.chain(sold).chain(named.iter().map(|fact| &fact[..])));
        let select =
            "select shown_fact, attribution, kind, id_hash, value, revenue from events where shown_fact in";
        let counted: Vec<CountingRow> = pages::in_transaction(
            connection,
            self.store.dialect,
            select,
            &facts,
            " and counts_id is not null",
        )
        .await?;
        for (fact, by, kind, id_hash, value, revenue) in counted {
            if let (Ok(by), Ok(kind)) = (by.parse(), kind.parse()) {
                self.counted.insert((fact, by, kind), Counting { id_hash, value, revenue });
            }
        }
        Ok(())
    }

    async fn add(
        &mut self,
        connection: &mut AnyConnection,
        event: &'e Event,
    ) -> Result<EventRecorded, StoreError> {
        let id_hash = hash(&event.id);
        if let Some((kind, article, customer)) = self.known.get(&id_hash) {
            // A customer who was erased is none.
            let is_theirs = customer
                .as_deref()
                .is_none_or(|customer| event.customer.as_ref().is_some_and(|own| own.as_str() == customer));
            return if (*kind, &**article) == (event.kind, event.article.as_str()) && is_theirs {
                Ok(EventRecorded { recorded: Recorded::Before, attribution: None, counts: false })
            } else {
                Err(StoreError::Conflict(Conflict::EventDiffers))
            };
        }
        if event.customer.as_ref().is_some_and(|customer| !self.customers.contains(customer.as_str())) {
            return Err(StoreError::Conflict(Conflict::UnknownCustomer));
        }
        let order = order(event);
        let line =
            order.zip(Who::of(event)).map(|(order, who)| (who, order.to_owned(), event.article.to_string()));
        let mut sale = Sale {
            id_hash: id_hash.to_vec(),
            kind: event.kind,
            value: event.value,
            at: event.at,
            suggestion: None,
            is_counted: false,
        };
        let (mut counts, mut counted) = (false, None);
        if let Some((feedback, article)) = &event.suggestion {
            let feedback =
                FeedbackEvent { kind: event.kind.of_suggestion(), at: event.at, ..feedback.clone() };
            let fact = outcome_fact(&feedback, FeedbackKind::Shown).to_vec();
            if let Some(who) = Who::of(event) {
                let shown = self.shown.entry((who, event.article.to_string())).or_default();
                shown.push((event.at.millis(), fact.clone()));
            }
            sale.suggestion = Some(Suggestion { by: Attribution::Ticket, fact });
            if !self.is_of_repeat(line.as_ref(), &sale) {
                let recorded = self.record_feedback(connection, &id_hash, &feedback, article).await?;
                counts = recorded == Recorded::Now;
            }
            if counts && event.kind.is_sale() {
                counted = self.count_sale(connection, &sale).await?;
            }
        } else if event.kind.is_sale() {
            sale.suggestion = self.find_suggestion(event, line.as_ref());
            (counts, counted) = self.count(connection, line.as_ref(), &sale).await?;
        }
        sale.is_counted = counted.is_some();
        self.note_purchase(event, line.as_ref());
        if let Some(line) = line.filter(|_| event.kind.is_sale()) {
            self.sales.entry(line.clone()).or_default().push(sale.clone());
            if event.kind == EventKind::Bought {
                self.adopt(connection, &line, &sale).await?;
            }
        }
        let customer = event.customer.as_ref().map(ToString::to_string);
        self.known.insert(id_hash, (event.kind, event.article.to_string(), customer));
        let (events, value) = self.counts.entry((day_of(event.at), event.kind.as_str())).or_default();
        *events += 1;
        *value += event.value.unwrap_or_default();
        let attribution = sale.suggestion.as_ref().map(|suggestion| suggestion.by);
        self.rows.push(NewRow { id_hash, event, order, suggestion: sale.suggestion, counted });
        Ok(EventRecorded { recorded: Recorded::Now, attribution, counts })
    }

    /// Notes what a customer has since. A return says nothing of purchases of other orders, so one whose purchase is unknown waits for
    /// it.
    fn note_purchase(&mut self, event: &'e Event, line: Option<&Line>) {
        let Some(customer) = &event.customer else { return };
        let earlier = line.and_then(|line| self.sales.get(line)).map_or(&[][..], |sales| sales);
        let count = |kind| earlier.iter().filter(|sale| sale.kind == kind).count();
        let (bought, returned) = (count(EventKind::Bought), count(EventKind::Returned));
        let more = match event.kind {
            EventKind::Bought => (1, i64::from(returned > bought)),
            EventKind::Returned if line.is_none() || bought > returned => (0, 1),
            _ => return,
        };
        let key = (customer.as_str(), event.article.as_str());
        let (bought, returned, at) = self.purchases.entry(key).or_insert((0, 0, i64::MIN));
        *bought += more.0;
        *returned += more.1;
        *at = event.at.millis().max(*at);
    }

    /// The suggestion of a sale without a ticket.
    fn find_suggestion(&self, event: &Event, line: Option<&Line>) -> Option<Suggestion> {
        if event.kind != EventKind::Bought {
            let purchases = self.sales.get(line?)?.iter().filter(|sale| sale.kind == EventKind::Bought);
            let suggestions =
                purchases.filter_map(|sale| Some((!sale.is_counted, sale.suggestion.as_ref()?)));
            let first = suggestions.min_by_key(|(is_repeat, suggestion)| (*is_repeat, suggestion.by));
            return first.map(|(_, suggestion)| suggestion.clone());
        }
        self.find_shown_last(&Who::of(event)?, event.article.as_str(), event.at)
    }

    /// The suggestion that someone was shown last within the window before a purchase.
    fn find_shown_last(&self, who: &Who, article: &str, at: Timestamp) -> Option<Suggestion> {
        let last = at.millis();
        let shown = self.shown.get(&(who.clone(), article.to_owned()))?;
        let in_time = shown.iter().filter(|(at, _)| (last - self.window_millis()..=last).contains(at));
        let (_, fact) = in_time.max()?;
        Some(Suggestion { by: Attribution::Window, fact: fact.clone() })
    }

    /// Whether a return, or a kept article, is of a purchase that does not count for its suggestion, because another one does.
    fn is_of_repeat(&self, line: Option<&Line>, sale: &Sale) -> bool {
        if !matches!(sale.kind, EventKind::Returned | EventKind::Kept) {
            return false;
        }
        let (Some(sales), Some(suggestion)) = (line.and_then(|line| self.sales.get(line)), &sale.suggestion)
        else {
            return false;
        };
        let of_suggestion = |other: &&Sale| {
            let fact = other.suggestion.as_ref().map(|other| &other.fact);
            other.kind == EventKind::Bought && fact == Some(&suggestion.fact)
        };
        let mut purchases = sales.iter().filter(of_suggestion).peekable();
        purchases.peek().is_some() && purchases.all(|purchase| !purchase.is_counted)
    }

    /// Counts a sale without a ticket for its suggestion, and says whether it counts.
    async fn count(
        &mut self,
        connection: &mut AnyConnection,
        line: Option<&Line>,
        sale: &Sale,
    ) -> Result<(bool, Option<Counted>), StoreError> {
        let Some(Suggestion { by, fact }) = &sale.suggestion else { return Ok((false, None)) };
        if self.is_of_repeat(line, sale) {
            return Ok((false, None));
        }
        let counts = match by {
            Attribution::Window => !self.counted.contains_key(&(fact.clone(), *by, sale.kind)),
            Attribution::Ticket => {
                let Some(shown) = find_shown(connection, fact).await? else { return Ok((false, None)) };
                let feedback = FeedbackEvent { kind: sale.kind.of_suggestion(), at: sale.at, ..shown };
                let article = SuggestedArticle::default();
                self.record_feedback(connection, &sale.id_hash, &feedback, &article).await? == Recorded::Now
            }
        };
        let counted = if counts { self.count_sale(connection, sale).await? } else { None };
        Ok((counts, counted))
    }

    async fn record_feedback(
        &mut self,
        connection: &mut AnyConnection,
        id_hash: &[u8],
        feedback: &FeedbackEvent,
        article: &SuggestedArticle,
    ) -> Result<Recorded, StoreError> {
        let key = format!("event-{}", hex::encode(id_hash));
        let (recorded, tally) = self.store.feedback().record_in(connection, &key, feedback, article).await?;
        self.tally.extend(tally);
        Ok(recorded)
    }

    /// Notes what a sale adds to the counts of its suggestion, besides the outcome by its ticket. A return takes back at most
    /// what its purchase added.
    async fn count_sale(
        &mut self,
        connection: &mut AnyConnection,
        sale: &Sale,
    ) -> Result<Option<Counted>, StoreError> {
        let Some(Suggestion { by, fact }) = &sale.suggestion else { return Ok(None) };
        let row: Option<CountedShown> = sqlx::query_as(
            "select shown_day, counts_id, arm, customer_id, rules from feedback_events where fact = $1",
        )
        .bind(&fact[..])
        .fetch_optional(&mut *connection)
        .await?;
        let Some((Some(shown_day), Some(id), arm, customer, rules)) = row else { return Ok(None) };
        let key = |kind| (fact.clone(), *by, kind);
        let paid_back = |paid: i64, value: Option<i64>| value.map_or(paid, |value| value.min(paid));
        let value = sale.value.unwrap_or_default();
        let (place, revenue) = match sale.kind {
            EventKind::Bought => (0, value),
            EventKind::Returned => {
                let paid = self.counted.get(&key(EventKind::Bought)).map_or(0, |bought| bought.revenue);
                (1, -paid_back(paid, sale.value))
            }
            _ => (2, 0),
        };
        let mut added = revenue;
        if sale.kind == EventKind::Bought
            && let Some(returned) = self.counted.get_mut(&key(EventKind::Returned))
            && returned.revenue == 0
        {
            // It named the ticket, and came first.
            returned.revenue = -paid_back(value, returned.value);
            added += returned.revenue;
            sqlx::query("update events set revenue = $2 where id_hash = $1")
                .bind(&returned.id_hash[..])
                .bind(returned.revenue)
                .execute(&mut *connection)
                .await?;
        }
        let (id_hash, value) = (sale.id_hash.clone(), sale.value);
        self.counted.insert(key(sale.kind), Counting { id_hash, value, revenue });
        let counts = self.added.entry(id).or_default();
        match by {
            Attribution::Ticket => counts.revenue += added,
            Attribution::Window => {
                counts.window[place] += 1;
                counts.window_revenue += added;
            }
        }
        let mut more = ArmCounts::default();
        if *by == Attribution::Window
            && let Some(shown) = find_shown(&mut *connection, fact).await?
        {
            // By ticket, the outcome itself is counted with the feedback.
            if !has_fact(&mut *connection, &outcome_fact(&shown, sale.kind.of_suggestion())).await? {
                more = ArmCounts::of(sale.kind.of_suggestion(), 1);
            }
            let accepted = outcome_fact(&shown, FeedbackKind::Accepted);
            if sale.kind == EventKind::Returned
                && take_back(&mut *connection, &accepted, &outcome_fact(&shown, FeedbackKind::Shown)).await?
            {
                more.accepted -= 1;
                let rules = CountedRules::from_bytes(&rules.unwrap_or_default());
                self.tally.add(&rules, shown_day, FeedbackKind::Accepted, -1);
            }
        }
        // An order is paid once, also if it is reported with a ticket and without.
        let other = match by {
            Attribution::Ticket => Attribution::Window,
            Attribution::Window => Attribution::Ticket,
        };
        let is_paid =
            self.counted.get(&(fact.clone(), other, sale.kind)).is_some_and(|sale| sale.revenue != 0);
        more.revenue = if is_paid { 0 } else { added };
        self.tally.add_to_arm(arm.as_deref(), customer.as_deref(), more);
        Ok(Some(Counted { shown_day, id, revenue }))
    }

    /// Returns that came before their purchase belong to its suggestion.
    async fn adopt(
        &mut self,
        connection: &mut AnyConnection,
        line: &Line,
        purchase: &Sale,
    ) -> Result<(), StoreError> {
        let Some(suggestion) = &purchase.suggestion else { return Ok(()) };
        for place in 0..self.sales.get(line).map_or(0, Vec::len) {
            let mut sale = self.sales[line][place].clone();
            if sale.kind == EventKind::Bought || sale.suggestion.is_some() {
                continue;
            }
            sale.suggestion = Some(suggestion.clone());
            let (_, counted) = self.count(connection, Some(line), &sale).await?;
            sale.is_counted = counted.is_some();
            attribute(connection, &sale, counted).await?;
            self.sales.get_mut(line).expect("it was there; this is a bug")[place] = sale;
        }
        Ok(())
    }

    /// Earlier purchases belong to what this batch says was shown before them.
    async fn attribute_earlier(&mut self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        for StoredSale { who, order, article, mut sale } in std::mem::take(&mut self.unclear) {
            sale.suggestion = self.find_shown_last(&who, &article, sale.at);
            if sale.suggestion.is_none() {
                continue;
            }
            let line = order.map(|order| (who, order, article));
            let (_, counted) = self.count(connection, line.as_ref(), &sale).await?;
            sale.is_counted = counted.is_some();
            attribute(connection, &sale, counted).await?;
            if let Some(line) = line {
                let sales = self.sales.entry(line.clone()).or_default();
                sales.retain(|other| other.id_hash != sale.id_hash);
                sales.push(sale.clone());
                self.adopt(connection, &line, &sale).await?;
            }
        }
        Ok(())
    }

    async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let dialect = self.store.dialect;
        for rows in self.rows.chunks(upsert::ROWS) {
            const INSERT: &str = "insert into events (id_hash, kind, customer_id, visitor_hash, article_id, order_id, value, at,
                attribution, shown_fact, shown_day, counts_id, revenue) values";
            let mut values = AnyArguments::default();
            for row in rows {
                row.bind(&mut values).map_err(|error| StoreError::Other(error.to_string()))?;
            }
            write(connection, dialect, INSERT, rows.len(), 13, "", values).await?;
        }
        let purchases: Vec<_> = self.purchases.into_iter().collect();
        for rows in purchases.chunks(upsert::ROWS) {
            let mut values = AnyArguments::default();
            for ((customer, article), (bought, returned, at)) in rows {
                let mut bind = || {
                    values.add(*customer)?;
                    values.add(*article)?;
                    [bought, returned, at].into_iter().try_for_each(|number| values.add(*number))
                };
                bind().map_err(|error: sqlx::error::BoxDynError| StoreError::Other(error.to_string()))?;
            }
            let conflict = "on conflict (customer_id, article_id) do update set bought = purchases.bought + excluded.bought,
                returned = purchases.returned + excluded.returned,
                at = case when excluded.at > purchases.at then excluded.at else purchases.at end";
            let insert = "insert into purchases (customer_id, article_id, bought, returned, at) values";
            write(connection, dialect, insert, rows.len(), 5, conflict, values).await?;
        }
        for ((day, kind), (events, value)) in self.counts {
            sqlx::query(
                "insert into event_counts (day, kind, events, value) values ($1, $2, $3, $4)
                 on conflict (day, kind) do update set events = event_counts.events + excluded.events,
                    value = event_counts.value + excluded.value",
            )
            .bind(day)
            .bind(kind)
            .bind(events)
            .bind(value)
            .execute(&mut *connection)
            .await?;
        }
        for (id, Added { revenue, window: [bought, returned, kept], window_revenue }) in self.added {
            let update: Query<'_, Any, AnyArguments> = sqlx::query(
                "update feedback_counts set revenue = revenue + $2, window_bought = window_bought + $3,
                    window_returned = window_returned + $4, window_kept = window_kept + $5,
                    window_revenue = window_revenue + $6
                 where id = $1",
            );
            let numbers = [id, revenue, bought, returned, kept, window_revenue];
            numbers.into_iter().fold(update, Query::bind).execute(&mut *connection).await?;
        }
        self.tally.write(connection).await
    }
}

impl NewRow<'_> {
    fn bind(&self, values: &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> {
        let event = self.event;
        values.add(&self.id_hash[..])?;
        values.add(event.kind.as_str())?;
        values.add(event.customer.as_ref().map(CustomerId::as_str))?;
        values.add(event.visitor.as_deref().map(|visitor| hash(visitor).to_vec()))?;
        values.add(event.article.as_str())?;
        values.add(self.order)?;
        values.add(event.value)?;
        values.add(event.at.millis())?;
        values.add(self.suggestion.as_ref().map(|suggestion| suggestion.by.as_str()))?;
        values.add(self.suggestion.as_ref().map(|suggestion| &suggestion.fact[..]))?;
        values.add(self.counted.map(|counted| counted.shown_day))?;
        values.add(self.counted.map(|counted| counted.id))?;
        values.add(self.counted.map(|counted| counted.revenue))
    }
}

/// Stores how a sale that was recorded before belongs to a suggestion.
async fn attribute(
    connection: &mut AnyConnection,
    sale: &Sale,
    counted: Option<Counted>,
) -> Result<(), StoreError> {
    let suggestion = sale.suggestion.as_ref();
    sqlx::query(
        "update events set attribution = $2, shown_fact = $3, shown_day = $4, counts_id = $5, revenue = $6
         where id_hash = $1",
    )
    .bind(&sale.id_hash[..])
    .bind(suggestion.map(|suggestion| suggestion.by.as_str()))
    .bind(suggestion.map(|suggestion| &suggestion.fact[..]))
    .bind(counted.map(|counted| counted.shown_day))
    .bind(counted.map(|counted| counted.id))
    .bind(counted.map(|counted| counted.revenue))
    .execute(connection)
    .await?;
    Ok(())
}

/// The customers, visitors and articles of events.
fn people<'e>(events: &[&'e Event]) -> (Vec<&'e str>, Vec<Hash>, Vec<&'e str>) {
    let customers = distinct(events.iter().filter_map(|event| event.customer.as_ref()));
    let visitors = distinct(events.iter().filter_map(|event| event.visitor.as_deref()));
    (
        customers.into_iter().map(CustomerId::as_str).collect(),
        visitors.into_iter().map(hash).collect(),
        distinct(events.iter().map(|event| event.article.as_str())),
    )
}

/// The rows of these people and articles. `select` ends in `in`.
async fn read_of<'q, Row, I: pages::Id<'q>>(
    connection: &mut AnyConnection,
    select: &str,
    people: &[I],
    articles: &[&'q str],
    rest: &str,
) -> Result<Vec<Row>, StoreError>
where
    Row: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
{
    if people.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = |first: usize, count: usize| {
        (first..first + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
    };
    let (of_people, of_articles) = (numbers(1, people.len()), numbers(1 + people.len(), articles.len()));
    let sql = format!("{select} ({of_people}) and article_id in ({of_articles}){rest}");
    let mut query = sqlx::query_as(AssertSqlSafe(sql));
    for id in people {
        query = query.bind(*id);
    }
    for article in articles {
        query = query.bind(*article);
    }
    // Most batches have another number of people and articles.
    Ok(query.persistent(false).fetch_all(connection).await?)
}

/// Without a customer or a visitor who consented, an order must not be kept.
fn order(event: &Event) -> Option<&str> {
    let is_someone = event.customer.is_some() || event.visitor.is_some();
    event.order.as_deref().filter(|_| is_someone)
}

fn distinct<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

async fn write(
    connection: &mut AnyConnection,
    dialect: Dialect,
    insert: &str,
    rows: usize,
    columns: usize,
    conflict: &str,
    values: AnyArguments,
) -> Result<(), StoreError> {
    let sql = format!("{insert} {} {conflict}", upsert::placeholders(dialect, rows, columns));
    sqlx::query_with(AssertSqlSafe(sql), values)
        // Callers send batches of one size, mostly; other sizes would displace prepared statements.
        .persistent(matches!(rows, 1 | 100 | upsert::ROWS))
        .execute(connection)
        .await
        .map_err(StoreError::for_missing_reference(StoreError::Conflict(Conflict::UnknownCustomer)))?;
    Ok(())
}
