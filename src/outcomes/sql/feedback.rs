//! People's feedback on suggestions, which shows which method they accept.

use std::time::Duration;

use atelier_core::{
    domain::{ArticleId, CustomerId, Timestamp},
    named,
    util::json_fields::write_text,
};
use futures_util::Stream;
use serde::Serialize;
use serde_json::json;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Executor, FromRow, Row, any::AnyRow};
use utoipa::ToSchema;

use super::{
    acceptance::{Outcomes, SUMS, SuggestedArticle},
    ledger::{add_to_counts, take_turns, write_rules},
};
use crate::{
    completion::tickets::CountedRules,
    customers::customer_id,
    outcomes::{
        FeedbackKind, Source,
        acceptance::OutcomesBody,
        ledger::{Columns, CountsRow, Hash, Ledger, hash_key},
    },
    platform::db::{
        Actor, Entry, Store, StoreError,
        pages::{self, PART},
        record::Record,
        text::{long_line, short_line},
    },
};

crate::platform::db::part! {
    /// The feedback events of a [`Store`].
    Feedback, feedback
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FeedbackStored)]
pub struct FeedbackEvent {
    /// Kind of event.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String, examples("bought"))]
    pub kind: FeedbackKind,
    /// The completion that suggested.
    pub completion_id: String,
    /// The slot of the blank, from 0.
    pub slot: u32,
    /// The article, by its id.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String)]
    pub article: ArticleId,
    /// The suggestion's rank, from 1.
    pub rank: u32,
    /// The release that suggested.
    pub release: String,
    /// The method that suggested.
    pub method: String,
    /// The experiment's arm that suggested, if any.
    pub arm: Option<String>,
    // None if the suggestion was for an anonymous customer, or the customer was erased.
    #[serde(skip)]
    pub customer: Option<CustomerId>,
    /// When it was reported.
    #[serde(serialize_with = "write_text")]
    #[schema(value_type = String, examples("2026-11-21T14:34:00Z"))]
    pub at: Timestamp,
    /// Why a stylist refused it: `too-dear`, `has-one`, `colour` or `style`.
    #[schema(value_type = Option<String>, examples("too-dear"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<RefusalReason>,
}

named! {
    "a refusal's reason is too-dear, has-one, colour or style"
    /// Why a suggestion was refused.
    #[derive(Hash, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum RefusalReason {
        TooDear = "too-dear",
        HasOne = "has-one",
        Colour = "colour",
        Style = "style",
    }
}

/// Whether an event changed the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Now,
    /// The same was said before, under this key or another one. It counts once.
    Before,
}

/// The feedback on one method's suggestions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FeedbackCount)]
pub struct FeedbackCounts {
    /// The release that suggested.
    #[schema(examples("demo"))]
    pub release: String,
    /// The method that suggested.
    #[schema(examples("gsu"))]
    pub method: String,
    /// The experiment's arm; null if no experiment chose the method.
    pub arm: Option<String>,
    /// `pages` for what pages report without a customer, `shop` for the rest.
    pub source: Source,
    #[serde(flatten)]
    #[schema(value_type = OutcomesBody)]
    pub outcomes: Outcomes,
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
        let events = [(key.to_owned(), event.clone(), article.clone())];
        self.record_all(&events).await?.pop().expect("an event has a result")
    }

    /// Records events in one transaction, each as [`Feedback::record`] does: one that cannot be recorded leaves the others as
    /// they are.
    pub async fn record_all(
        self,
        events: &[(String, FeedbackEvent, SuggestedArticle)],
    ) -> Result<Vec<Result<Recorded, StoreError>>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.store.write().await?;
        let alone = if let [(_, event, _)] = events { Some(&*event.completion_id) } else { None };
        take_turns(self.store, &mut transaction, alone).await?;
        let keyed: Vec<_> = events.iter().map(|(key, event, _)| (hash_key(key), event)).collect();
        let mut ledger = Ledger::read(self.store, &mut transaction, &keyed, &[], Duration::ZERO).await?;
        let mut results = Vec::with_capacity(events.len());
        let mut refused = Vec::new();
        for ((key, event), (.., article)) in keyed.iter().zip(events) {
            let is_stored = ledger.keys.contains_key(key);
            let result = ledger.record_feedback(*key, event, article);
            if event.kind == FeedbackKind::Rejected && result.is_ok() {
                refused.push((*key, *event, is_stored));
            }
            results.push(result);
        }
        ledger.write(self.store, &mut transaction).await?;
        if matches!(self.store.author.actor, Actor::Person(_)) {
            for (key, event, is_stored) in refused {
                self.refuse(&mut transaction, &key, event, is_stored).await?;
            }
        }
        transaction.commit().await?;
        Ok(results)
    }

    /// Audits that a stylist refused an article, also again after taking it back.
    async fn refuse(
        self,
        transaction: &mut AnyConnection,
        key: &Hash,
        event: &FeedbackEvent,
        is_stored: bool,
    ) -> Result<(), StoreError> {
        let again = sqlx::query(
            "update feedback_events set withdrawn_at = null, at = $2
             where key_hash = $1 and withdrawn_at is not null",
        )
        .bind(&key[..])
        .bind(event.at.millis())
        .execute(&mut *transaction)
        .await?;
        if !is_stored || again.rows_affected() > 0 {
            let entry = Entry::new("feedback.refuse", event.article.as_str(), json!({}));
            let entry = Entry { customer: event.customer.as_ref(), ..entry };
            entry.write(transaction, self.store.author, event.at).await?;
        }
        Ok(())
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
        parse_times("feedback_events", rows)
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
        /// The day, the row of `feedback_counts` and the rules of an event that counts.
        type Deleted = (Option<i64>, Option<i64>, Option<Vec<u8>>);
        let key_hash = hash_key(key);
        let mut transaction = self.store.write().await?;
        let deleted: Vec<Deleted> = sqlx::query_as(
            "delete from feedback_events
             where kind = 'rejected' and article_id = $1 and key_hash = $2
             returning shown_day, counts_id, rules",
        )
        .bind(article.as_str())
        .bind(&key_hash[..])
        .fetch_all(&mut *transaction)
        .await?;
        for (day, counts, rules) in &deleted {
            // Without them it was a repeat.
            let (Some(day), Some(counts)) = (*day, *counts) else { continue };
            let less = || Columns::from([(FeedbackKind::Rejected.as_str(), -1)]);
            add_to_counts(&mut transaction, &CountsRow::Stored(counts), less()).await?;
            let CountedRules { held_out, rules } =
                CountedRules::from_bytes(rules.as_deref().unwrap_or_default());
            let rules = rules.into_iter().map(|rule| ((rule, day, held_out), less()));
            write_rules(&mut transaction, rules).await?;
        }
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
        let key_hash = hash_key(key);
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

    pub async fn by_key(self, key: &str) -> Result<Option<FeedbackEvent>, StoreError> {
        find_event(&hash_key(key), self.store.readers()?).await
    }

    /// The events about a completion's suggestions, oldest first, without what was accepted and came back, also if no return names
    /// the completion.
    pub async fn for_training(self, completion_id: &str) -> Result<Vec<FeedbackEvent>, StoreError> {
        let sql = "select * from feedback_events as event where completion_id = $1 and not (kind = 'accepted' and exists (
                select 1 from feedback_events as first
                where first.completion_id = $1 and first.kind = 'accepted' and first.slot = event.slot
                    and first.article_id = event.article_id and first.suggestion is not null and first.shown_day is null))
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

    /// Counts of events by release, method, arm and source, without repeats. Nothing happens to more suggestions than were shown.
    pub async fn counts(self) -> Result<Vec<FeedbackCounts>, StoreError> {
        let sql = format!(
            "select release, method, arm, source, {SUMS} from feedback_counts
             group by release, method, arm, source order by release, method, arm, source desc"
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
            source: Record::new(row, "feedback_counts", &"of a method")
                .parse("source", |source: String| source.parse())?,
            outcomes: Outcomes::from_row(row)?,
        })
    }
}

pub(super) fn parse_times(
    table: &'static str,
    rows: Vec<(String, i64)>,
) -> Result<Vec<(ArticleId, Timestamp)>, StoreError> {
    let parse = |(id, at): (String, i64)| match ArticleId::new(&id) {
        Ok(id) => Ok((id, Timestamp::from_millis(at))),
        Err(error) => Err(StoreError::Damaged { table, id, reason: error.to_string() }),
    };
    rows.into_iter().map(parse).collect()
}

/// The id of a completion contains the signed suggestions, so it is longer than other texts.
fn check_completion_id(id: &str) -> Result<&str, StoreError> {
    long_line("a completion's id", id)
}

/// The texts of an event that the database could not store.
pub(crate) fn check_texts(event: &FeedbackEvent) -> Result<(), StoreError> {
    let FeedbackEvent { completion_id, release, method, arm, .. } = event;
    check_completion_id(completion_id)?;
    for (what, text) in [("a release", Some(release)), ("a method", Some(method)), ("an arm", arm.as_ref())] {
        text.map(|text| short_line(what, text)).transpose()?;
    }
    Ok(())
}

async fn find_event(
    key_hash: &Hash,
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

impl RefusalReason {
    /// For a stylist.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::TooDear => "Too expensive",
            Self::HasOne => "Has one",
            Self::Colour => "Colour",
            Self::Style => "Not their style",
        }
    }
}
