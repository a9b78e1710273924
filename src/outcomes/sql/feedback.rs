//! What people did with suggestions, which shows which method they accept.

use atelier_core::{
    domain::{ArticleId, CustomerId, Timestamp},
    named,
};
use futures_util::Stream;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{Any, AnyConnection, AssertSqlSafe, Connection, Executor, FromRow, Row, any::AnyRow};
use utoipa::ToSchema;

use super::acceptance::{self, CountedRules, Outcomes, SUMS, SuggestedArticle, Tally, day_of};
use crate::{
    customers::customer_id,
    experiments::ArmCounts,
    platform::db::{
        Actor, Conflict, Entry, Store, StoreError,
        connect::Dialect,
        pages::{self, PART},
        record::Record,
        text::{long_line, short_line},
    },
};

/// The key of the advisory lock of [`Feedback::take_turns`]: "feed" in ASCII.
const LOCK: i64 = 0x6665_6564;

/// The feedback events of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct Feedback<'a> {
    pub(crate) store: &'a Store,
}

/// An event about one suggested article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackEvent {
    pub kind: FeedbackKind,
    pub completion_id: String,
    /// The blank's slot in the outfit.
    pub slot: u32,
    pub article: ArticleId,
    /// The article's rank among the suggestions, from 1.
    pub rank: u32,
    pub release: String,
    pub method: String,
    /// The arm, if an experiment was running.
    pub arm: Option<String>,
    /// None if the suggestion was for an anonymous customer, or the customer was erased.
    pub customer: Option<CustomerId>,
    pub at: Timestamp,
    /// Why it was refused, if a stylist said so.
    pub reason: Option<RefusalReason>,
}

/// Why a suggestion was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    TooDear,
    HasOne,
    Colour,
    Style,
}

/// What became of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    Shown,
    Accepted,
    Rejected,
    Bought,
    /// Came back: it no longer counts as accepted.
    Returned,
    /// Was not sent back in time.
    Kept,
}

/// Whether an event changed the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Now,
    /// The same was said before, under this key or another one. It counts once.
    Before,
}

/// Counts of the events about one method's suggestions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackCounts {
    pub release: String,
    pub method: String,
    pub arm: Option<String>,
    pub outcomes: Outcomes,
}

impl Store {
    pub fn feedback(&self) -> Feedback<'_> {
        Feedback { store: self }
    }
}

impl Feedback<'_> {
    /// Records the event under the caller's idempotency key. Recording it again changes nothing, including its time.
    ///
    /// Under another key, an event of the same kind about the same suggestion is stored and not counted again: a
    /// suggestion may be accepted, rejected and accepted again, and a purchase may be reported by two programs. What is
    /// accepted, rejected or bought was shown, and is recorded as shown too.
    ///
    /// # Errors
    /// If the key was used for another event, there is no such customer (`Conflict`), or the database fails.
    pub async fn record(
        self,
        key: &str,
        event: &FeedbackEvent,
        article: &SuggestedArticle,
    ) -> Result<Recorded, StoreError> {
        let mut transaction = self.store.write().await?;
        if event.arm.is_some() {
            // A completion counts once, however many of its suggestions are reported at the same time.
            self.take_turns(&mut transaction).await?;
        }
        let (recorded, tally) = self.record_in(&mut transaction, key, event, article).await?;
        tally.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(recorded)
    }

    /// Records events in one transaction, each as [`Feedback::record`] does: one that cannot be recorded leaves the others as
    /// they are.
    ///
    /// # Errors
    /// If the database fails; then none is recorded.
    pub async fn record_all(
        self,
        events: &[(String, FeedbackEvent, SuggestedArticle)],
    ) -> Result<Vec<Result<Recorded, StoreError>>, StoreError> {
        let mut transaction = self.store.write().await?;
        self.take_turns(&mut transaction).await?;
        let (mut results, mut tally) = (Vec::with_capacity(events.len()), Tally::default());
        for (key, event, article) in events {
            let mut part = transaction.begin().await?;
            results.push(match self.record_in(&mut part, key, event, article).await {
                Ok((recorded, more)) => {
                    part.commit().await?;
                    tally.extend(more);
                    Ok(recorded)
                }
                Err(
                    error @ (StoreError::Conflict(_) | StoreError::Unfit { .. } | StoreError::Damaged { .. }),
                ) => {
                    part.rollback().await?;
                    Err(error)
                }
                Err(error) => return Err(error),
            });
        }
        tally.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(results)
    }

    /// Waits for other transactions that count several suggestions: Postgres locks the counts until the end of each, so they
    /// could wait for each other.
    pub(crate) async fn take_turns(self, transaction: &mut AnyConnection) -> Result<(), StoreError> {
        if self.store.dialect == Dialect::Postgres {
            sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK).execute(transaction).await?;
        }
        Ok(())
    }

    pub(crate) async fn record_in(
        self,
        transaction: &mut AnyConnection,
        key: &str,
        event: &FeedbackEvent,
        article: &SuggestedArticle,
    ) -> Result<(Recorded, Tally), StoreError> {
        let (key_hash, rules, mut tally) = (hash(key), &article.rules, Tally::default());
        let recorded = insert(transaction, &key_hash, event, Some((&fact(event), rules))).await?;
        let inserted = recorded || insert(transaction, &key_hash, event, None).await?;
        if recorded {
            let mut shown_now = event.kind == FeedbackKind::Shown;
            if shown_now {
                acceptance::count_shown(transaction, &[(key_hash, event, article)]).await?;
            } else {
                let shown = FeedbackEvent { kind: FeedbackKind::Shown, ..event.clone() };
                let shown_fact = fact(&shown);
                // Its fact serves as its key: no caller's key has that digest.
                shown_now = insert(transaction, &shown_fact, &shown, Some((&shown_fact, rules))).await?;
                if shown_now {
                    acceptance::count_shown(transaction, &[(shown_fact, &shown, article)]).await?;
                }
                let is_taken_back = event.kind == FeedbackKind::Returned
                    && acceptance::take_back(
                        transaction,
                        &outcome_fact(event, FeedbackKind::Accepted),
                        &shown_fact,
                    )
                    .await?;
                let is_returned = event.kind == FeedbackKind::Accepted
                    && has_fact(transaction, &outcome_fact(event, FeedbackKind::Returned)).await?;
                if !is_returned {
                    let counted =
                        acceptance::count_outcome(transaction, &key_hash, event.kind, &shown_fact).await?;
                    if let Some((shown_day, rules)) = counted {
                        tally.add(&rules, shown_day, event.kind, 1);
                        if is_taken_back {
                            tally.add(&rules, shown_day, FeedbackKind::Accepted, -1);
                        }
                        if let Some(arm) = event.arm.as_deref() {
                            let mut more = if is_sold_in_window(transaction, &shown_fact, event.kind).await? {
                                ArmCounts::default()
                            } else {
                                ArmCounts::of(event.kind, 1)
                            };
                            more.accepted -= i64::from(is_taken_back);
                            let customer = crate::experiments::shown_to(transaction, &shown_fact).await?;
                            tally.add_to_arm(Some(arm), customer.as_deref(), more);
                        }
                    }
                }
            }
            if shown_now {
                tally.add(rules, day_of(event.at), FeedbackKind::Shown, 1);
                count_for_arm(transaction, &mut tally, event, 1).await?;
            }
        }
        if event.kind == FeedbackKind::Rejected && matches!(self.store.author.actor, Actor::Person(_)) {
            let again = sqlx::query(
                "update feedback_events set withdrawn_at = null, at = $2
                 where key_hash = $1 and withdrawn_at is not null",
            )
            .bind(&key_hash[..])
            .bind(event.at.millis())
            .execute(&mut *transaction)
            .await?;
            if inserted || again.rows_affected() > 0 {
                let entry = Entry::new("feedback.refuse", event.article.as_str(), json!({}));
                let entry = Entry { customer: event.customer.as_ref(), ..entry };
                entry.write(transaction, self.store.author, event.at).await?;
            }
        }
        if !inserted {
            let stored = find_event(&key_hash, &mut *transaction).await?;
            if !stored.is_some_and(|stored| repeats(event, &stored)) {
                return Err(StoreError::Conflict(Conflict::FeedbackDiffers));
            }
        }
        Ok((if recorded { Recorded::Now } else { Recorded::Before }, tally))
    }

    /// Records suggestions of one completion that were shown for the first time, each once for its key, and returns these. One
    /// that was recorded changes nothing.
    ///
    /// # Errors
    /// If there is no such customer (`Conflict`), or the database fails.
    pub async fn record_new(
        self,
        events: &[(String, FeedbackEvent, SuggestedArticle)],
    ) -> Result<Vec<&SuggestedArticle>, StoreError> {
        let mut transaction = self.store.write().await?;
        self.take_turns(&mut transaction).await?;
        let (mut shown, mut tally) = (Vec::new(), Tally::default());
        for (key, event, article) in events {
            let key_hash = hash(key);
            if insert(&mut transaction, &key_hash, event, Some((&fact(event), &article.rules))).await? {
                shown.push((key_hash, event, article));
                tally.add(&article.rules, day_of(event.at), FeedbackKind::Shown, 1);
            }
        }
        acceptance::count_shown(&mut transaction, &shown).await?;
        if let Some((_, event, _)) = shown.first() {
            count_for_arm(&mut transaction, &mut tally, event, shown.len()).await?;
        }
        tally.write(&mut transaction).await?;
        transaction.commit().await?;
        Ok(shown.into_iter().map(|(_, _, article)| article).collect())
    }

    /// The articles that a customer refused, and neither accepted nor bought later, with the time of the refusal; the latest
    /// first.
    pub async fn refused_by(self, customer: &CustomerId) -> Result<Vec<(ArticleId, Timestamp)>, StoreError> {
        let rows = sqlx::query_as(
            "select article_id, max(case when kind = 'rejected' then at end) from feedback_events
             where customer_id = $1 and kind in ('rejected', 'accepted', 'bought') and withdrawn_at is null
             group by article_id
             having max(case when kind = 'rejected' then at end)
                 >= coalesce(max(case when kind <> 'rejected' then at end), 0)
             order by max(at) desc, article_id",
        )
        .bind(customer.as_str())
        .fetch_all(self.store.readers()?)
        .await?;
        parse_times(rows)
    }

    /// The articles that something happened to for a customer, up to `n`, with the time; the latest first. What came back does
    /// not count as bought.
    pub async fn latest(
        self,
        customer: &CustomerId,
        kind: FeedbackKind,
        n: u32,
    ) -> Result<Vec<(ArticleId, Timestamp)>, StoreError> {
        let rows = sqlx::query_as(
            "select article_id, max(at) from (
                select article_id, at from feedback_events
                where customer_id = $1 and kind = $2 and withdrawn_at is null
                union all
                select article_id, at from purchases where customer_id = $1 and $2 = 'bought'
             ) as latest
             where $2 <> 'bought' or not exists (
                select 1 from purchases
                where customer_id = $1 and purchases.article_id = latest.article_id and returned >= bought
             )
             group by article_id order by max(at) desc, article_id limit $3",
        )
        .bind(customer.as_str())
        .bind(kind.as_str())
        .bind(i64::from(n))
        .fetch_all(self.store.readers()?)
        .await?;
        parse_times(rows)
    }

    /// Customers who refused suggestions since their last outfit was saved, with the number of articles; who has waited
    /// longest comes first.
    pub async fn refused_since_last_outfit(self, n: u32) -> Result<Vec<(CustomerId, u64)>, StoreError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "select customer_id, count(distinct article_id) from feedback_events
             where kind = 'rejected' and customer_id is not null and withdrawn_at is null and at > coalesce(
                (select max(created_at) from outfits
                 where outfits.customer_id = feedback_events.customer_id and origin <> 'imported'
                    and deleted_at is null and draft = 0), 0)
             group by customer_id order by max(at), customer_id limit $1",
        )
        .bind(i64::from(n))
        .fetch_all(self.store.readers()?)
        .await?;
        rows.into_iter().map(|(id, count)| Ok((customer_id(id)?, count.unsigned_abs()))).collect()
    }

    /// Takes a refusal back. The event under the key was a mistake, and is deleted. Other refusals of the article by the
    /// customer stay and count, but the article is no longer refused.
    pub async fn withdraw_refusal(
        self,
        key: &str,
        customer: Option<&CustomerId>,
        article: &ArticleId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        /// The completion and its slot; the day and the rules of an event that counts.
        type Deleted = (String, i64, Option<i64>, Option<Vec<u8>>);
        let key_hash = hash(key);
        let mut transaction = self.store.write().await?;
        let deleted: Vec<Deleted> = sqlx::query_as(
            "delete from feedback_events
             where kind = 'rejected' and article_id = $1 and key_hash = $2
             returning completion_id, slot, shown_day, rules",
        )
        .bind(article.as_str())
        .bind(&key_hash[..])
        .fetch_all(&mut *transaction)
        .await?;
        let mut tally = Tally::default();
        for (completion_id, slot, shown_day, rules) in &deleted {
            // A repeat.
            let Some(shown_day) = *shown_day else { continue };
            let shown = fact_of(FeedbackKind::Shown, completion_id, *slot, article);
            acceptance::add(&mut transaction, FeedbackKind::Rejected, &shown, -1).await?;
            let rules = CountedRules::from_bytes(rules.as_deref().unwrap_or_default());
            tally.add(&rules, shown_day, FeedbackKind::Rejected, -1);
        }
        tally.write(&mut transaction).await?;
        let kept = sqlx::query(
            "update feedback_events set withdrawn_at = $3
             where kind = 'rejected' and article_id = $1 and customer_id = $2 and withdrawn_at is null",
        )
        .bind(article.as_str())
        .bind(customer.map(CustomerId::as_str))
        .bind(now.millis())
        .execute(&mut *transaction)
        .await?;
        if !deleted.is_empty() || kept.rows_affected() > 0 {
            let details = json!({"deleted": deleted.len(), "kept": kept.rows_affected()});
            let entry = Entry { customer, ..Entry::new("feedback.withdraw", article.as_str(), details) };
            entry.write(&mut transaction, self.store.author, now).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Keeps why the refusal under the key was made. False if there is none.
    pub async fn give_reason(
        self,
        key: &str,
        reason: RefusalReason,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let key_hash = hash(key);
        sqlx::query("update feedback_events set reason = $2 where key_hash = $1 and kind = 'rejected'")
            .bind(&key_hash[..])
            .bind(reason.as_str())
            .execute(&mut *transaction)
            .await?;
        let Some(event) = find_event(&key_hash, &mut *transaction).await? else { return Ok(false) };
        let entry = Entry::new("feedback.reason", event.article.as_str(), json!({"reason": reason.as_str()}));
        let entry = Entry { customer: event.customer.as_ref(), ..entry };
        self.store.commit(transaction, &entry, now).await?;
        Ok(true)
    }

    /// How often each reason was given for refusing what was shown on this day or later, the most frequent first.
    pub async fn refusal_reasons(self, since_day: i64) -> Result<Vec<(RefusalReason, u64)>, StoreError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "select reason, count(*) from feedback_events where reason is not null and shown_day >= $1
             group by reason order by count(*) desc, reason",
        )
        .bind(since_day)
        .fetch_all(self.store.readers()?)
        .await?;
        let parse = |(reason, count): (String, i64)| match reason.parse() {
            Ok(known) => Ok((known, count.unsigned_abs())),
            Err(detail) => Err(StoreError::Damaged { table: "feedback_events", id: reason, reason: detail }),
        };
        rows.into_iter().map(parse).collect()
    }

    /// The event that was recorded under a key.
    pub async fn by_key(self, key: &str) -> Result<Option<FeedbackEvent>, StoreError> {
        find_event(&hash(key), self.store.readers()?).await
    }

    /// The events about a completion's suggestions, oldest first.
    pub async fn for_completion(self, completion_id: &str) -> Result<Vec<FeedbackEvent>, StoreError> {
        let sql = "select * from feedback_events where completion_id = $1 order by at, slot, rank, kind";
        Ok(sqlx::query_as(sql)
            .bind(check_completion_id(completion_id)?)
            .fetch_all(self.store.readers()?)
            .await?)
    }

    /// The same without what was accepted and came back, also if no return names the completion.
    pub async fn for_training(self, completion_id: &str) -> Result<Vec<FeedbackEvent>, StoreError> {
        let sql = "select * from feedback_events as event where completion_id = $1 and not (kind = 'accepted' and exists (
                select 1 from feedback_events as first
                where first.completion_id = $1 and first.kind = 'accepted' and first.slot = event.slot
                    and first.article_id = event.article_id and first.fact is not null and first.shown_day is null))
             order by at, slot, rank, kind";
        Ok(sqlx::query_as(sql).bind(completion_id).fetch_all(self.store.readers()?).await?)
    }

    /// The events about a customer, oldest first, read in parts as needed.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<FeedbackEvent, StoreError>> + Send + use<> {
        const SQL: &str = "select * from feedback_events where customer_id = $1 and (at, key_hash) > ($2, $3)
             order by at, key_hash limit $4";
        let customer = customer.clone();
        let query = move |(at, key_hash): (i64, Vec<u8>)| {
            sqlx::query(SQL).bind(customer.to_string()).bind(at).bind(key_hash).bind(i64::from(PART))
        };
        let key = |row: &AnyRow| Ok((row.try_get("at")?, row.try_get("key_hash")?));
        let first = (i64::MIN, Vec::new());
        pages::stream(self.store, first, PART, query, key, |row| Ok(FeedbackEvent::from_row(row)?))
    }

    /// The ids of up to `n` completions from which a known customer accepted or bought something, sorted, after the id
    /// `after` (empty for the first ones).
    pub async fn accepted_completions(self, after: &str, n: u32) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "select completion_id from feedback_events
             where completion_id > $1 and customer_id is not null and kind in ('accepted', 'bought')
             group by completion_id order by completion_id limit $2",
        )
        .bind(check_completion_id(after)?)
        .bind(i64::from(n))
        .fetch_all(self.store.readers()?)
        .await?)
    }

    /// Counts of events by release, method and arm, without repeats. Nothing happens to more suggestions than were shown.
    pub async fn counts(self) -> Result<Vec<FeedbackCounts>, StoreError> {
        let sql = format!(
            "select release, method, arm, {SUMS} from feedback_counts
             group by release, method, arm order by release, method, arm"
        );
        Ok(sqlx::query_as(AssertSqlSafe(sql)).fetch_all(self.store.readers()?).await?)
    }
}

impl FromRow<'_, AnyRow> for FeedbackCounts {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        Ok(Self {
            release: row.try_get("release")?,
            method: row.try_get("method")?,
            arm: Some(row.try_get("arm")?).filter(|arm: &String| !arm.is_empty()),
            outcomes: Outcomes::from_row(row)?,
        })
    }
}

fn parse_times(rows: Vec<(String, i64)>) -> Result<Vec<(ArticleId, Timestamp)>, StoreError> {
    let parse = |(id, at): (String, i64)| match ArticleId::new(&id) {
        Ok(id) => Ok((id, Timestamp::from_millis(at))),
        Err(error) => Err(StoreError::Damaged { table: "feedback_events", id, reason: error.to_string() }),
    };
    rows.into_iter().map(parse).collect()
}

/// The id of a completion contains the signed suggestions, so it is longer than other texts.
fn check_completion_id(id: &str) -> Result<&str, StoreError> {
    long_line("a completion's id", id)
}

/// All that is stored of a caller's key.
fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Whether the shop's event of this kind counts for the suggestion already, within the window.
async fn is_sold_in_window(
    connection: &mut AnyConnection,
    shown_fact: &[u8; 32],
    kind: FeedbackKind,
) -> Result<bool, StoreError> {
    let sql = "select kind from events
               where shown_fact = $1 and kind = $2 and attribution = 'window' and counts_id is not null";
    let found = sqlx::query(sql).bind(&shown_fact[..]).bind(kind.as_str()).fetch_optional(connection).await?;
    Ok(found.is_some())
}

pub(crate) async fn has_fact(connection: &mut AnyConnection, fact: &[u8; 32]) -> Result<bool, StoreError> {
    let found = sqlx::query("select kind from feedback_events where fact = $1").bind(&fact[..]);
    Ok(found.fetch_optional(connection).await?.is_some())
}

/// The event `shown` with this fact.
pub(crate) async fn find_shown(
    connection: &mut AnyConnection,
    fact: &[u8],
) -> Result<Option<FeedbackEvent>, StoreError> {
    let sql = "select * from feedback_events where fact = $1";
    Ok(sqlx::query_as(sql).bind(fact).fetch_optional(connection).await?)
}

/// The fact of another event about the same suggestion.
pub(crate) fn outcome_fact(event: &FeedbackEvent, kind: FeedbackKind) -> [u8; 32] {
    fact_of(kind, &event.completion_id, event.slot.into(), &event.article)
}

/// The digest of what an event says, without the caller's id. Events with the same digest count once.
fn fact(FeedbackEvent { kind, completion_id, slot, article, .. }: &FeedbackEvent) -> [u8; 32] {
    fact_of(*kind, completion_id, (*slot).into(), article)
}

fn fact_of(kind: FeedbackKind, completion_id: &str, slot: i64, article: &ArticleId) -> [u8; 32] {
    // No part contains a line break.
    Sha256::digest(format!("{}\n{completion_id}\n{slot}\n{article}", kind.as_str())).into()
}

/// Counts suggestions of a completion that were stored as shown just now, if they are an experiment's.
async fn count_for_arm(
    connection: &mut AnyConnection,
    tally: &mut Tally,
    event: &FeedbackEvent,
    stored_now: usize,
) -> Result<(), StoreError> {
    if let (Some(arm), Some(customer)) = (&event.arm, &event.customer) {
        let is_first = crate::experiments::is_first(connection, event, stored_now).await?;
        let shown = i64::try_from(stored_now).expect("a page is short; this is a bug");
        let more = ArmCounts { completions: is_first.into(), shown, ..ArmCounts::default() };
        tally.add_to_arm(Some(arm), Some(customer.as_str()), more);
    }
    Ok(())
}

/// Without a fact the event is stored as a repeat, which counts for no rules. False if the key has an event already, or another event has the fact.
async fn insert(
    connection: &mut AnyConnection,
    key_hash: &[u8; 32],
    event: &FeedbackEvent,
    first: Option<(&[u8; 32], &CountedRules)>,
) -> Result<bool, StoreError> {
    let arm = event.arm.as_deref().map(|arm| short_line("an arm", arm)).transpose()?;
    let inserted = sqlx::query(
        "insert into feedback_events
            (key_hash, kind, completion_id, slot, article_id, rank, release, method, arm, customer_id, at, fact,
            rules)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict do nothing",
    )
    .bind(&key_hash[..])
    .bind(event.kind.as_str())
    .bind(check_completion_id(&event.completion_id)?)
    .bind(i64::from(event.slot))
    .bind(event.article.as_str())
    .bind(i64::from(event.rank))
    .bind(short_line("a release", &event.release)?)
    .bind(short_line("a method", &event.method)?)
    .bind(arm)
    .bind(event.customer.as_ref().map(CustomerId::as_str))
    .bind(event.at.millis())
    .bind(first.map(|(fact, _)| &fact[..]))
    .bind(first.and_then(|(_, rules)| rules.to_bytes()))
    .execute(connection)
    .await
    .map_err(StoreError::for_missing_reference(StoreError::Conflict(Conflict::UnknownCustomer)))?;
    Ok(inserted.rows_affected() > 0)
}

/// Whether an event repeats a stored one. The stored time is that of the first report, and an erased customer is removed,
/// so neither is compared. Nor is the reason, which is said later.
fn repeats(event: &FeedbackEvent, stored: &FeedbackEvent) -> bool {
    let customer = stored.customer.as_ref().and(event.customer.clone());
    FeedbackEvent { at: stored.at, reason: stored.reason, customer, ..event.clone() } == *stored
}

async fn find_event(
    key_hash: &[u8; 32],
    executor: impl Executor<'_, Database = Any>,
) -> Result<Option<FeedbackEvent>, StoreError> {
    let sql = "select * from feedback_events where key_hash = $1";
    Ok(sqlx::query_as(sql).bind(&key_hash[..]).fetch_optional(executor).await?)
}

impl FromRow<'_, AnyRow> for FeedbackEvent {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let completion_id: String = row.try_get("completion_id")?;
        let id = format!("of completion {completion_id}");
        let row = Record::new(row, "feedback_events", &id);
        Ok(Self {
            kind: row.parse("kind", str::parse)?,
            slot: row.parse("slot", |slot: i64| u32::try_from(slot))?,
            article: row.parse("article_id", |id: String| ArticleId::new(id))?,
            rank: row.parse("rank", |rank: i64| u32::try_from(rank))?,
            release: row.get("release")?,
            method: row.get("method")?,
            arm: row.get("arm")?,
            customer: row.parse_optional("customer_id", |id: String| CustomerId::new(id))?,
            at: row.time("at")?,
            reason: row.parse_optional("reason", str::parse)?,
            completion_id,
        })
    }
}

named!(
    FeedbackKind,
    "feedback is shown, accepted, rejected, bought, returned or kept",
    Shown = "shown",
    Accepted = "accepted",
    Rejected = "rejected",
    Bought = "bought",
    Returned = "returned",
    Kept = "kept",
);

impl RefusalReason {
    pub const ALL: [Self; 4] = [Self::TooDear, Self::HasOne, Self::Colour, Self::Style];
}

named!(
    RefusalReason,
    "a refusal's reason is too-dear, has-one, colour or style",
    TooDear = "too-dear",
    HasOne = "has-one",
    Colour = "colour",
    Style = "style",
);
