//! Events of customers and visitors in the shop, and the suggestion each belongs to.

use std::time::Duration;

use atelier_core::{
    domain::{ArticleId, CustomerId, Timestamp},
    named,
};
use futures_util::Stream;
use serde::Serialize;
use sqlx::{FromRow, Row, any::AnyRow};
use utoipa::ToSchema;

use super::{
    acceptance::SuggestedArticle,
    feedback::{FeedbackEvent, Recorded, parse_times},
    ledger::take_turns,
};
use crate::{
    outcomes::{FeedbackKind, acceptance::money, ledger::Ledger},
    platform::db::{
        Store, StoreError,
        pages::{self, PART},
        record::Record,
        values,
    },
};

/// Old events that are removed together: a writer in between waits for these at most.
const REMOVED_TOGETHER: u32 = 2000;

crate::platform::db::part! {
    /// The events of a [`Store`].
    Events, events
}

/// Something that a customer or visitor did.
#[derive(Debug, Clone)]
pub struct Event {
    /// The caller's own name for it.
    pub id: String,
    pub kind: FeedbackKind,
    pub customer: Option<CustomerId>,
    /// The visitor's id, if they consented.
    pub visitor: Option<String>,
    pub article: ArticleId,
    pub order: Option<String>,
    /// Thousandths of the shop's currency.
    pub value: Option<i64>,
    pub at: Timestamp,
    /// The suggestion by its ticket.
    pub suggestion: Option<(FeedbackEvent, SuggestedArticle)>,
}

named! {
    "an event belongs to a suggestion by ticket or window"
    /// How an event belongs to a suggestion.
    #[derive(PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Attribution {
        /// It, or its purchase, named the ticket.
        Ticket = "ticket",
        /// The suggestion was shown shortly before.
        Window = "window",
    }
}

/// The result of recording an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecorded {
    pub recorded: Recorded,
    pub attribution: Option<Attribution>,
    /// Whether it is the first of its kind about its suggestion.
    pub counts: bool,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = EventStored)]
pub struct StoredEvent {
    /// Kind of event.
    #[schema(examples("bought"))]
    pub kind: &'static str,
    /// The article, by its id.
    pub article: String,
    /// The order's id.
    pub order: Option<String>,
    /// Amount paid or refunded, in the shop's currency.
    pub value: Option<f64>,
    /// When it happened.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    pub time: String,
    /// How it belongs to a suggestion: `ticket` or `window`; null if it does not.
    #[schema(value_type = Option<String>)]
    pub attribution: Option<Attribution>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    pub customer: CustomerId,
    pub article: ArticleId,
    pub order: Option<String>,
    pub at: Timestamp,
    pub returned: bool,
}

/// How often a customer bought an article.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Purchase {
    /// The article, by its id.
    pub article: String,
    /// How often it was bought.
    pub bought: u64,
    /// How often it was returned.
    pub returned: u64,
    /// The latest of these events.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    pub time: String,
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
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.store.write().await?;
        take_turns(self.store, &mut transaction, None).await?;
        let mut ledger = Ledger::read(self.store, &mut transaction, &[], events, window).await?;
        let results = ledger.record_events(events);
        ledger.write(self.store, &mut transaction).await?;
        transaction.commit().await?;
        Ok(results)
    }

    /// Events on this day or later, with the sum of their values, by kind.
    pub async fn counts(self, since_day: i64) -> Result<Vec<(FeedbackKind, u64, i64)>, StoreError> {
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            "select kind, cast(sum(events) as bigint), cast(sum(value) as bigint) from event_counts where day >= $1
             group by kind",
        )
        .bind(since_day)
        .fetch_all(self.store.readers()?)
        .await?;
        let found = |kind: FeedbackKind| {
            let (_, events, value) = rows.iter().find(|(found, ..)| found == kind.as_str())?;
            Some((kind, events.unsigned_abs(), *value))
        };
        Ok(FeedbackKind::ALL.into_iter().filter_map(found).collect())
    }

    /// The events of a customer in the order of arrival, read in parts as needed.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<StoredEvent, StoreError>> + Send + use<> {
        const SQL: &str = "select * from events where customer_id = $1 and seq > $2 order by seq limit $3";
        pages::for_customer(self.store, customer, SQL, |row| row.try_get("seq"))
    }

    /// A customer's purchases, by the ids of articles, read in parts as needed.
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

    /// The articles that a customer bought and did not send back, up to `n`, with the time; the latest first.
    pub async fn latest_purchases(
        self,
        customer: &CustomerId,
        n: u32,
    ) -> Result<Vec<(ArticleId, Timestamp)>, StoreError> {
        let sql = "select article_id, at from purchases where customer_id = $1 and bought > returned
             order by at desc, article_id limit $2";
        let rows = sqlx::query_as_with(sql, values![customer.as_str(), i64::from(n)]);
        parse_times("purchases", rows.fetch_all(self.store.readers()?).await?)
    }

    /// How many articles customers bought, each time they did.
    pub async fn count_bought(self) -> Result<u64, StoreError> {
        self.store
            .count("select count(*) from events where kind = 'bought' and customer_id is not null")
            .await
    }

    /// Customers' purchases, in the order of arrival, read in parts as needed. A return is of its order, or of all
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
            kind: row.parse("kind", |kind: String| kind.parse().map(FeedbackKind::shop_word))?,
            article: row.get("article_id")?,
            order: row.get("order_id")?,
            value: row.get::<Option<i64>>("value")?.map(money),
            time: row.time("at")?.to_string(),
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
            article: row.get("article_id")?,
            bought: count("bought")?,
            returned: count("returned")?,
            time: row.time("at")?.to_string(),
        })
    }
}
