//! Contents of a new [`Ledger`], read with one statement for each look-up, and its changes, written together.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use atelier_core::domain::{ArticleId, CustomerId, Timestamp};
use sqlx::{
    Any, AnyConnection, Arguments, AssertSqlSafe, FromRow, Row, any::AnyArguments, any::AnyRow, query::Query,
};

use super::{
    acceptance::day_of,
    arms,
    events::{Attribution, Event},
    feedback::FeedbackEvent,
};
use crate::{
    completion::tickets::CountedRules,
    outcomes::{
        FeedbackKind,
        ledger::{
            Changes, Columns, CountsRow, EventHash, Hash, Ledger, NewFeedback, Sale, Suggestion, Who,
            hash_event, hash_key, hash_suggestion, key_of_event,
        },
    },
    platform::db::{
        Conflict, Store, StoreError,
        connect::Dialect,
        pages::{Id, in_transaction},
        record::Record,
        upsert::{self, placeholders},
    },
};

/// The key of the advisory lock of [`take_turns`]: "feed" in ASCII.
const LOCK: i64 = 0x6665_6564;
/// The first half of that of one completion.
const OF_COMPLETION: i32 = 0x6665_6564;
/// Events whose customers, visitors and articles one statement asks for.
const TOGETHER: usize = 500;

/// Waits for other transactions that count suggestions: what one of them reads must stay until it has written. A report about the
/// completion `alone` waits for batches and for that completion's others only.
pub(super) async fn take_turns(
    store: &Store,
    transaction: &mut AnyConnection,
    alone: Option<&str>,
) -> Result<(), StoreError> {
    if store.dialect == Dialect::Sqlite {
        return Ok(());
    }
    let lock = match alone {
        None => sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK),
        Some(completion) => {
            sqlx::query("select pg_advisory_xact_lock_shared($1)")
                .bind(LOCK)
                .execute(&mut *transaction)
                .await?;
            // The text may be one that the database cannot take.
            let hash = *hash_key(completion).first_chunk().expect("a digest is longer");
            let sql = "select pg_advisory_xact_lock($1, $2)";
            sqlx::query(sql).bind(OF_COMPLETION).bind(i32::from_be_bytes(hash))
        }
    };
    lock.execute(transaction).await?;
    Ok(())
}

/// Stored feedback, without what is no part of an outcome: another version may know other reasons.
const STORED: &str = "select key_hash, suggestion, kind, completion_id, slot, article_id, rank, release, method, arm, customer_id, at,
    cast(null as text) as reason, shown_day, counts_id, rules from feedback_events where";

/// Stored feedback, and what it counts for.
struct StoredFeedback {
    key: Hash,
    /// None in a repeat.
    suggestion: Option<Hash>,
    event: FeedbackEvent,
    /// The day on which the suggestion was shown, and the row of `feedback_counts`, if it counts.
    day: Option<i64>,
    counts: Option<i64>,
    rules: CountedRules,
}

fn digest<const N: usize>(bytes: Vec<u8>) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| format!("not {N} bytes"))
}

impl FromRow<'_, AnyRow> for StoredFeedback {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let event = FeedbackEvent::from_row(row)?;
        let row = Record::new(row, "feedback_events", &event.completion_id);
        Ok(Self {
            key: row.parse("key_hash", digest)?,
            suggestion: row.parse_optional("suggestion", digest)?,
            day: row.get("shown_day")?,
            counts: row.get("counts_id")?,
            rules: CountedRules::from_bytes(&row.get::<Option<Vec<u8>>>("rules")?.unwrap_or_default()),
            event,
        })
    }
}

impl FromRow<'_, AnyRow> for Sale {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let row = Record::new(row, "events", &"of a sale");
        let by: Option<Attribution> = row.parse_optional("attribution", |by: String| by.parse())?;
        let who = match row.get("customer_id")? {
            Some(customer) => Some(Who::Customer(customer)),
            None => row.get::<Option<_>>("visitor_hash")?.map(Who::Visitor),
        };
        Ok(Self {
            id: row.parse("id_hash", digest)?,
            kind: row.parse("kind", |kind: String| kind.parse())?,
            who,
            article: row.parse("article_id", |id: String| ArticleId::new(id))?,
            order: row.get("order_id")?,
            value: row.get("value")?,
            at: row.time("at")?,
            suggestion: by.zip(row.parse_optional("suggestion", digest)?),
            revenue: row.get("revenue")?,
        })
    }
}

impl Ledger {
    /// Reads what feedback with these keys, and events, may belong to.
    pub(super) async fn read(
        store: &Store,
        connection: &mut AnyConnection,
        feedback: &[(Hash, &FeedbackEvent)],
        events: &[Event],
        window: Duration,
    ) -> Result<Self, StoreError> {
        let dialect = store.dialect;
        let mut ledger = Self { window, ..Self::default() };
        let of_events = events.iter().filter_map(|event| event.customer.as_ref());
        let customers = feedback.iter().filter_map(|(_, event)| event.customer.as_ref()).chain(of_events);
        let customers = distinct(customers.map(CustomerId::as_str));
        // They stay until the events that refer to them are committed.
        let lock = if dialect == Dialect::Postgres { " for key share" } else { "" };
        let select = "select id from visible_customers where id in";
        let found: Vec<(String,)> = in_transaction(connection, dialect, select, &customers, lock).await?;
        ledger.customers = found.into_iter().map(|(id,)| id).collect();
        let new = ledger.read_events(connection, dialect, events).await?;
        let named = new.iter().filter_map(|event| event.suggestion.as_ref().map(|(feedback, _)| feedback));
        let named: Vec<&FeedbackEvent> = feedback.iter().map(|(_, event)| *event).chain(named).collect();
        // A return may come with the ticket of its purchase, which may come later.
        let may_count = |event: &&&Event| {
            event.suggestion.is_some() || matches!(event.kind, FeedbackKind::Returned | FeedbackKind::Kept)
        };
        let keys = new.iter().filter(may_count).map(|event| key_of_event(&hash_event(&event.id)));
        let waiting = ledger.sales.values().flatten().filter(|sale| sale.suggestion.is_none());
        let keys = keys.chain(waiting.map(|sale| key_of_event(&sale.id)));
        let keys: Vec<Hash> = feedback.iter().map(|(key, _)| *key).chain(keys).collect();
        ledger.read_feedback(connection, dialect, &keys, &named).await?;
        Ok(ledger)
    }

    /// Reads what events may belong to, and returns the new ones.
    async fn read_events<'n>(
        &mut self,
        connection: &mut AnyConnection,
        dialect: Dialect,
        events: &'n [Event],
    ) -> Result<Vec<&'n Event>, StoreError> {
        let hashes: Vec<EventHash> = events.iter().map(|event| hash_event(&event.id)).collect();
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        let select = "select id_hash, kind, article_id, customer_id from events where id_hash in";
        let known: Vec<(Vec<u8>, String, String, Option<String>)> =
            in_transaction(connection, dialect, select, &hashes, "").await?;
        let known = known.into_iter().filter_map(|(id, kind, article, customer)| {
            Some((id.try_into().ok()?, (kind.parse().ok()?, article, customer)))
        });
        self.events = known.collect();
        let is_new = |event: &&Event| !self.events.contains_key(&hash_event(&event.id));
        let new: Vec<&Event> = events.iter().filter(is_new).collect();
        let (suggested, others): (Vec<&Event>, Vec<&Event>) =
            new.iter().partition(|event| event.suggestion.is_some());
        self.read_unclear(connection, &suggested).await?;
        self.read_sales(connection, dialect, &new).await?;
        let purchases: Vec<&Event> =
            others.into_iter().filter(|event| event.kind == FeedbackKind::Bought).collect();
        self.read_shown(connection, &purchases).await?;
        Ok(new)
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
        let mut found: Vec<Sale> = Vec::new();
        for events in events.chunks(TOGETHER) {
            let (first, last) = period(events);
            let last = last + self.window_millis();
            let rest =
                format!(" and kind = 'bought' and attribution is null and at between {first} and {last}");
            for person in ["customer_id", "visitor_hash"] {
                let select = format!("select * from events where {person} in");
                found.extend(read_of(connection, &select, person, events, &rest).await?);
            }
        }
        // The first counts. One may be in several chunks.
        found.sort_by_key(|one| (one.at, one.id));
        found.dedup_by_key(|one| one.id);
        self.unclear = found;
        Ok(())
    }

    /// Reads what is recorded of the orders of these events.
    async fn read_sales(
        &mut self,
        connection: &mut AnyConnection,
        dialect: Dialect,
        events: &[&Event],
    ) -> Result<(), StoreError> {
        let sales = events.iter().filter(|event| event.kind.is_sale());
        let earlier = self.unclear.iter().filter_map(|sale| sale.order.as_deref());
        let orders = distinct(sales.filter_map(|event| event.order.as_deref()).chain(earlier));
        let select = "select * from events where order_id in";
        let rest = " and kind in ('bought', 'returned', 'kept')";
        let rows: Vec<Sale> = in_transaction(connection, dialect, select, &orders, rest).await?;
        for sale in rows {
            if let Some(line) = sale.line() {
                self.sales.entry(line).or_default().push(sale);
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
        // Together, people and articles find more than what each of them bought.
        let bought: HashSet<_> =
            events.iter().filter_map(|event| Some((Who::of(event)?, event.article.clone()))).collect();
        for events in events.chunks(TOGETHER) {
            let (first, last) = period(events);
            let first = first - self.window_millis();
            let [day, last_day] = [first, last].map(|at| day_of(Timestamp::from_millis(at)));
            let rest = format!(" and kind = 'shown' and shown_day between {day} and {last_day}");
            let select =
                "select customer_id, article_id, at, suggestion from feedback_events where customer_id in";
            let to_customers: Vec<(String, String, i64, Vec<u8>)> =
                read_of(connection, select, "customer_id", events, &rest).await?;
            let to_customers = to_customers
                .into_iter()
                .map(|(id, article, at, suggestion)| (Who::Customer(id), article, at, suggestion));
            let rest = format!(
                " and attribution = 'ticket' and suggestion is not null and at between {first} and {last}"
            );
            let select = "select visitor_hash, article_id, at, suggestion from events where visitor_hash in";
            let to_visitors: Vec<(Vec<u8>, String, i64, Vec<u8>)> =
                read_of(connection, select, "visitor_hash", events, &rest).await?;
            let to_visitors = to_visitors
                .into_iter()
                .map(|(hash, article, at, suggestion)| (Who::Visitor(hash), article, at, suggestion));
            for (who, article, at, suggestion) in to_customers.chain(to_visitors) {
                let (Ok(article), Ok(suggestion)) = (ArticleId::new(article), digest(suggestion)) else {
                    continue;
                };
                let of = (who, article);
                if bought.contains(&of) {
                    self.shown.entry(of).or_default().push((Timestamp::from_millis(at), suggestion));
                }
            }
        }
        Ok(())
    }

    /// Reads the feedback with these keys, and the suggestions that all may be about.
    async fn read_feedback(
        &mut self,
        connection: &mut AnyConnection,
        dialect: Dialect,
        keys: &[Hash],
        named: &[&FeedbackEvent],
    ) -> Result<(), StoreError> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let select = format!("{STORED} key_hash in");
        let stored: Vec<StoredFeedback> = in_transaction(connection, dialect, &select, &keys, "").await?;
        self.keys = stored.into_iter().map(|row| (row.key, row.event)).collect();
        let sold = self.sales.values().flatten().filter_map(|sale| sale.suggestion.map(|(_, id)| id));
        let shown = self.shown.values().flatten().map(|(_, id)| *id);
        let ids = distinct(named.iter().map(|event| hash_suggestion(event)).chain(sold).chain(shown));
        let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
        let select = format!("{STORED} suggestion in");
        let rows: Vec<StoredFeedback> = in_transaction(connection, dialect, &select, &ids, "").await?;
        let (shown, outcomes): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.event.kind == FeedbackKind::Shown);
        for StoredFeedback { suggestion, event, day, counts, rules, .. } in shown {
            if let (Some(id), Some(day), Some(counts)) = (suggestion, day, counts) {
                let counts = CountsRow::Stored(counts);
                let feedback = [(FeedbackKind::Shown, true)].into();
                let sales = HashMap::new();
                let suggestion = Suggestion { shown: event, rules, day, counts, feedback, sales };
                self.suggestions.insert(id, suggestion);
            }
        }
        for row in outcomes {
            if let Some(suggestion) = row.suggestion.and_then(|id| self.suggestions.get_mut(&id)) {
                suggestion.feedback.insert(row.event.kind, row.day.is_some());
            }
        }
        let select = "select * from events where suggestion in";
        let rest = " and revenue is not null";
        let counted: Vec<Sale> = in_transaction(connection, dialect, select, &ids, rest).await?;
        for sale in counted {
            if let Some((by, id)) = sale.suggestion
                && let Some(suggestion) = self.suggestions.get_mut(&id)
            {
                suggestion.sales.insert((by, sale.kind), sale);
            }
        }
        let of_experiments = named.iter().filter(|event| event.arm.is_some() && event.customer.is_some());
        let completions = distinct(of_experiments.map(|event| event.completion_id.as_str()));
        let select = "select distinct completion_id, customer_id from feedback_events where completion_id in";
        let rest = " and kind = 'shown' and suggestion is not null and customer_id is not null";
        let found = in_transaction(connection, dialect, select, &completions, rest).await?;
        self.completions = found.into_iter().collect();
        Ok(())
    }

    /// Writes what changed, counts in the order of their keys.
    pub(super) async fn write(self, store: &Store, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self { suggestions, changes, .. } = self;
        let Changes { feedback, taken_back, events, counts, rules, arms, event_counts, purchases } = changes;
        let mut ids = BTreeMap::new();
        for (row, columns) in counts {
            let id = add_to_counts(connection, &row, columns).await?;
            ids.insert(row, id);
        }
        let place = |id: &Hash| {
            let Suggestion { day, counts, .. } = suggestions.get(id)?;
            let stored = if let CountsRow::Stored(id) = counts { Some(*id) } else { None };
            Some((*day, stored.or_else(|| ids.get(counts).copied())?))
        };
        let insert = "insert into feedback_events (key_hash, kind, completion_id, slot, article_id, rank, release, method, arm, customer_id,
            at, suggestion, shown_day, counts_id, rules) values";
        insert_all(connection, store.dialect, (insert, ""), &feedback, |row, values| {
            let NewFeedback { key, event, suggestion, counts } = row;
            let place = suggestion.as_ref().filter(|_| *counts).and_then(place);
            let rules = suggestion.as_ref().and_then(|id| suggestions.get(id)?.rules.to_bytes());
            values.add(&key[..])?;
            values.add(event.kind.as_str())?;
            values.add(event.completion_id.as_str())?;
            values.add(i64::from(event.slot))?;
            values.add(event.article.as_str())?;
            values.add(i64::from(event.rank))?;
            values.add(event.release.as_str())?;
            values.add(event.method.as_str())?;
            values.add(event.arm.as_deref())?;
            values.add(event.customer.as_ref().map(CustomerId::as_str))?;
            values.add(event.at.millis())?;
            values.add(suggestion.as_ref().map(|id| &id[..]))?;
            values.add(place.map(|(day, _)| day))?;
            values.add(place.map(|(_, id)| id))?;
            values.add(rules)
        })
        .await?;
        for id in taken_back {
            let sql =
                "update feedback_events set shown_day = null where suggestion = $1 and kind = 'accepted'";
            sqlx::query(sql).bind(&id[..]).execute(&mut *connection).await?;
        }
        let insert = "insert into events (id_hash, kind, customer_id, visitor_hash, article_id, order_id, value, at, attribution,
            suggestion, shown_day, counts_id, revenue) values";
        let conflict = "on conflict (id_hash) do update set attribution = excluded.attribution, suggestion = excluded.suggestion,
            shown_day = excluded.shown_day, counts_id = excluded.counts_id, revenue = excluded.revenue";
        let place_of = |sale: &Sale| sale.revenue.and(sale.suggestion).and_then(|(_, id)| place(&id));
        insert_all(connection, store.dialect, (insert, conflict), &events, |sale, values| {
            values.add(&sale.id[..])?;
            values.add(sale.kind.as_str())?;
            values.add(sale.customer())?;
            values.add(if let Some(Who::Visitor(hash)) = &sale.who { Some(&hash[..]) } else { None })?;
            values.add(sale.article.as_str())?;
            values.add(sale.order.as_deref())?;
            values.add(sale.value)?;
            values.add(sale.at.millis())?;
            values.add(sale.suggestion.as_ref().map(|(by, _)| by.as_str()))?;
            values.add(sale.suggestion.as_ref().map(|(_, id)| &id[..]))?;
            values.add(place_of(sale).map(|(day, _)| day))?;
            values.add(place_of(sale).map(|(_, id)| id))?;
            values.add(sale.revenue)
        })
        .await?;
        write_purchases(connection, store.dialect, purchases).await?;
        for ((day, kind), columns) in event_counts {
            let sql = adding("event_counts", &["day", "kind"], &columns);
            let insert = sqlx::query(AssertSqlSafe(sql)).bind(day).bind(kind.as_str());
            bind_all(insert, columns).execute(&mut *connection).await?;
        }
        write_rules(connection, rules).await?;
        for ((arm, customer), more) in arms {
            arms::add(connection, &arm, &customer, more).await?;
        }
        Ok(())
    }
}

/// Customers' purchases and returns: of each customer and article how often, and when last.
async fn write_purchases(
    connection: &mut AnyConnection,
    dialect: Dialect,
    purchases: BTreeMap<(String, String), (i64, i64, i64)>,
) -> Result<(), StoreError> {
    let purchases: Vec<_> = purchases.into_iter().collect();
    let insert = "insert into purchases (customer_id, article_id, bought, returned, at) values";
    let conflict =
        "on conflict (customer_id, article_id) do update set bought = purchases.bought + excluded.bought,
        returned = purchases.returned + excluded.returned,
        at = case when excluded.at > purchases.at then excluded.at else purchases.at end";
    insert_all(connection, dialect, (insert, conflict), &purchases, |(of, counts), values| {
        let ((customer, article), (bought, returned, at)) = (of, counts);
        [customer, article].into_iter().try_for_each(|id| values.add(id.as_str()))?;
        [bought, returned, at].into_iter().try_for_each(|number| values.add(*number))
    })
    .await
}

/// Adds to the counts of rules: of each, by the day on which suggestions were shown, and whether the rules did not apply.
pub(super) async fn write_rules(
    connection: &mut AnyConnection,
    rules: impl IntoIterator<Item = (([u8; 6], i64, bool), Columns)>,
) -> Result<(), StoreError> {
    for ((rule, day, held_out), columns) in rules {
        let sql = adding("rule_counts", &["rule", "shown_day", "held_out"], &columns);
        let insert = sqlx::query(AssertSqlSafe(sql)).bind(rule.to_vec()).bind(day).bind(i64::from(held_out));
        bind_all(insert, columns).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Adds to a row of `feedback_counts`, and returns its id.
pub(super) async fn add_to_counts(
    connection: &mut AnyConnection,
    row: &CountsRow,
    columns: Columns,
) -> Result<i64, StoreError> {
    const KEY: [&str; 8] =
        ["shown_day", "release", "method", "arm", "article_type", "is_new", "slot", "source"];
    match row {
        CountsRow::Stored(id) => {
            let set =
                columns.keys().enumerate().map(|(n, column)| format!("{column} = {column} + ${}", n + 2));
            let set = set.collect::<Vec<_>>().join(", ");
            let sql = format!("update feedback_counts set {set} where id = $1");
            bind_all(sqlx::query(AssertSqlSafe(sql)).bind(*id), columns).execute(connection).await?;
            Ok(*id)
        }
        CountsRow::With { day, release, method, arm, article_type, is_new, slot, source } => {
            let sql = format!("{} returning id", adding("feedback_counts", &KEY, &columns));
            let insert = sqlx::query(AssertSqlSafe(sql)).bind(*day);
            let insert = [release, method, arm, article_type]
                .into_iter()
                .fold(insert, |insert, text| insert.bind(text.clone()));
            let insert = insert.bind(*is_new).bind(i64::from(*slot)).bind(source.as_str());
            let insert = bind_all(insert, columns);
            Ok(insert.fetch_one(connection).await?.try_get("id")?)
        }
    }
}

/// Inserts a row of counts, or adds to the one with its key.
fn adding(table: &str, key: &[&str], columns: &Columns) -> String {
    let names: Vec<&str> = key.iter().copied().chain(columns.keys().copied()).collect();
    let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    let more = columns.keys().map(|column| format!("{column} = {table}.{column} + excluded.{column}"));
    format!(
        "insert into {table} ({}) values ({}) on conflict ({}) do update set {}",
        names.join(", "),
        values.join(", "),
        key.join(", "),
        more.collect::<Vec<_>>().join(", ")
    )
}

fn bind_all(query: Query<'_, Any, AnyArguments>, columns: Columns) -> Query<'_, Any, AnyArguments> {
    columns.into_values().fold(query, Query::bind)
}

/// The first and the last time of events.
fn period(events: &[&Event]) -> (i64, i64) {
    let times = || events.iter().map(|event| event.at.millis());
    (times().min().unwrap_or_default(), times().max().unwrap_or_default())
}

/// The rows of the people and articles of events. `select` ends in `in`.
async fn read_of<Row>(
    connection: &mut AnyConnection,
    select: &str,
    person: &str,
    events: &[&Event],
    rest: &str,
) -> Result<Vec<Row>, StoreError>
where
    Row: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
{
    let articles = distinct(events.iter().map(|event| event.article.as_str()));
    if person == "customer_id" {
        let customers = events.iter().filter_map(|event| event.customer.as_ref());
        let customers = distinct(customers.map(CustomerId::as_str));
        return read_of_ids(connection, select, &customers, &articles, rest).await;
    }
    let visitors = distinct(events.iter().filter_map(|event| event.visitor.as_deref()).map(hash_event));
    let visitors: Vec<&[u8]> = visitors.iter().map(|hash| &hash[..]).collect();
    read_of_ids(connection, select, &visitors, &articles, rest).await
}

async fn read_of_ids<'q, Row, I: Id<'q>>(
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
    let query = people.iter().fold(sqlx::query_as(AssertSqlSafe(sql)), |query, id| query.bind(*id));
    let query = articles.iter().fold(query, |query, article| query.bind(*article));
    // Most batches have another number of people and articles.
    Ok(query.persistent(false).fetch_all(connection).await?)
}

fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Inserts rows, with an insert that ends in `values` and what is done about conflicts.
async fn insert_all<'r, R: Sync>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    (insert, conflict): (&str, &str),
    rows: &'r [R],
    bind: impl Fn(&'r R, &mut AnyArguments) -> Result<(), sqlx::error::BoxDynError> + Send,
) -> Result<(), StoreError> {
    for rows in rows.chunks(upsert::ROWS) {
        let mut values = AnyArguments::default();
        for row in rows {
            bind(row, &mut values).map_err(|error| StoreError::Other(error.to_string()))?;
        }
        let sql =
            format!("{insert} {} {conflict}", placeholders(dialect, rows.len(), values.len() / rows.len()));
        sqlx::query_with(AssertSqlSafe(sql), values)
            // Callers send batches of one size, mostly; other sizes would displace prepared statements.
            .persistent(matches!(rows.len(), 1 | 100 | upsert::ROWS))
            .execute(&mut *connection)
            .await
            .map_err(StoreError::for_missing_reference(StoreError::Conflict(Conflict::UnknownCustomer)))?;
    }
    Ok(())
}
