//! Counts of the outcomes of suggestions, by the day on which they were shown. An event and its count are one transaction.

use std::{collections::BTreeMap, fmt::Write};

use atelier_core::domain::{FeatureValue, RuleDigest, Timestamp};
use sqlx::{AnyConnection, AssertSqlSafe, FromRow, Row, any::AnyRow, query::Query};

use super::feedback::{Feedback, FeedbackEvent, FeedbackKind};
use crate::{
    experiments::ArmCounts,
    platform::db::{StoreError, connect::Dialect, json, record::Record, text::short_line},
};

/// What an article was when it was suggested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestedArticle {
    /// None if the catalogue lacks the article.
    pub kind: Option<String>,
    /// Whether the release that suggested it was not trained with it; None if that release is no longer live.
    pub is_new: Option<bool>,
    pub rules: CountedRules,
}

/// The rules that could change a suggestion, if feedback counts for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedRules {
    /// Whether they did not apply.
    pub held_out: bool,
    pub rules: Vec<RuleDigest>,
}

/// Outcomes of suggestions that a rule could change, by the tickets of completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleOutcomes {
    pub shown: u64,
    /// Without what came back.
    pub accepted: u64,
    pub rejected: u64,
    pub bought: u64,
}

impl CountedRules {
    /// As an event has them: a byte for `held_out`, and the rules. None without rules.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let bytes = || [&[u8::from(self.held_out)], self.rules.as_flattened()].concat();
        (!self.rules.is_empty()).then(bytes)
    }

    /// Reads what [`CountedRules::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (held_out, rules) = bytes.split_at_checked(1).unwrap_or_default();
        Self { held_out: held_out == [1], rules: rules.as_chunks().0.to_vec() }
    }
}

/// Outcomes of suggestions, without repeats. Nothing happens to more suggestions than were shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    pub shown: u64,
    /// Without what came back.
    pub accepted: u64,
    pub rejected: u64,
    /// By the tickets of completions.
    pub sold: Sales,
    /// Without a ticket: bought soon after the suggestion was shown.
    pub in_window: Sales,
}

/// What was sold of the suggested articles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sales {
    pub bought: u64,
    pub returned: u64,
    pub kept: u64,
    /// Thousandths of the shop's currency: of what was bought, less that of what came back. May be negative.
    pub revenue: i64,
}

impl std::ops::AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        self.shown += other.shown;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.sold += other.sold;
        self.in_window += other.in_window;
    }
}

impl std::ops::AddAssign for Sales {
    fn add_assign(&mut self, other: Self) {
        self.bought += other.bought;
        self.returned += other.returned;
        self.kept += other.kept;
        self.revenue += other.revenue;
    }
}

/// What suggestions are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedBy {
    /// The number of the day since 1970, in UTC.
    Day,
    Release,
    Method,
    /// Empty without an experiment.
    Arm,
    /// Empty for an article that was not in the catalogue.
    ArticleType,
    /// `1` for articles that the release was not trained with, `0` for others, `-1` if it was no longer live.
    IsNew,
    /// The place in the outfit, from 0.
    Slot,
}

/// The only suggestions that are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedOnly {
    pub release: Option<String>,
    pub method: Option<String>,
    pub arm: Option<String>,
    pub article_type: Option<String>,
    pub slot: Option<u32>,
}

impl CountedOnly {
    /// The condition on `feedback_counts` of a statement whose first parameters are others.
    fn condition(&self, first: usize) -> Result<(String, Vec<&str>), StoreError> {
        let Self { release, method, arm, article_type, slot } = self;
        let texts = [("release", release), ("method", method), ("arm", arm), ("article_type", article_type)];
        let (mut condition, mut values) = (String::new(), Vec::new());
        for (column, text) in texts {
            if let Some(text) = text {
                values.push(short_line("a filter", text)?);
                let number = first + values.len() - 1;
                write!(condition, " and feedback_counts.{column} = ${number}")
                    .expect("a String takes every text");
            }
        }
        if let Some(slot) = slot {
            write!(condition, " and feedback_counts.slot = {slot}").expect("a String takes every text");
        }
        Ok((condition, values))
    }
}

const MILLIS_A_DAY: i64 = 24 * 60 * 60 * 1000;

/// Days since 1970, in UTC.
pub fn day_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(MILLIS_A_DAY)
}

impl Feedback<'_> {
    /// Outcomes of suggestions that were shown on this day or later, in the order of their texts.
    pub async fn acceptance(
        self,
        by: CountedBy,
        since_day: i64,
        only: &CountedOnly,
    ) -> Result<Vec<(String, Outcomes)>, StoreError> {
        let column = match by {
            CountedBy::Day => "shown_day",
            CountedBy::Release => "release",
            CountedBy::Method => "method",
            CountedBy::Arm => "arm",
            CountedBy::ArticleType => "article_type",
            CountedBy::IsNew => "is_new",
            CountedBy::Slot => "slot",
        };
        let (condition, values) = only.condition(2)?;
        let sql = format!(
            "select cast({column} as text) as value, {SUMS} from feedback_counts
             where shown_day >= $1{condition} group by {column} order by {column}"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(since_day);
        let query = values.into_iter().fold(query, Query::bind);
        let rows = query.fetch_all(self.store.readers()?).await?;
        rows.iter().map(|row| Ok((row.try_get("value")?, Outcomes::from_row(row)?))).collect()
    }

    /// Outcomes of suggestions that were shown on this day or later, by each rule that could change them and whether it did not
    /// apply.
    pub async fn rule_outcomes(
        self,
        since_day: i64,
    ) -> Result<Vec<(RuleDigest, bool, RuleOutcomes)>, StoreError> {
        let rows = sqlx::query(
            "select rule, held_out, cast(sum(shown) as bigint) as shown, cast(sum(accepted) as bigint) as accepted,
                cast(sum(rejected) as bigint) as rejected, cast(sum(bought) as bigint) as bought
             from rule_counts where shown_day >= $1 group by rule, held_out",
        )
        .bind(since_day)
        .fetch_all(self.store.readers()?)
        .await?;
        let count = |row: &AnyRow, column| row.try_get(column).map(i64::unsigned_abs);
        let read = |row: &AnyRow| {
            let rule = Record::new(row, "rule_counts", &"of a rule")
                .parse("rule", |rule: Vec<u8>| RuleDigest::try_from(rule).map_err(|_| "not six bytes"))?;
            let outcomes = RuleOutcomes {
                shown: count(row, "shown")?,
                accepted: count(row, "accepted")?,
                rejected: count(row, "rejected")?,
                bought: count(row, "bought")?,
            };
            Ok((rule, row.try_get::<i64, _>("held_out")? == 1, outcomes))
        };
        rows.iter().map(read).collect()
    }

    /// Outcomes of suggestions that were shown to known customers on this day or later, by the present value of a feature. The
    /// database groups them: a row for each customer would take a second where there are 20,000.
    pub async fn acceptance_by_feature(
        self,
        since_day: i64,
        feature: &str,
        only: &CountedOnly,
    ) -> Result<Vec<(Option<FeatureValue>, Outcomes)>, StoreError> {
        let value = match self.store.dialect {
            Dialect::Sqlite => "features -> $2",
            Dialect::Postgres => "cast(features as jsonb) -> $2",
        };
        let (condition, values) = only.condition(3)?;
        // Without filters, an index alone has all that is counted.
        let counts =
            if condition.is_empty() { "" } else { "join feedback_counts on feedback_counts.id = counts_id" };
        let sql = format!(
            "select cast({value} as text) as value, {SUMS}
             from (
                select customer_id,
                    count(case when kind = 'shown' then 1 end) as shown,
                    count(case when kind = 'accepted' then 1 end) as accepted,
                    count(case when kind = 'rejected' then 1 end) as rejected,
                    count(case when kind = 'bought' then 1 end) as bought,
                    count(case when kind = 'returned' then 1 end) as returned,
                    count(case when kind = 'kept' then 1 end) as kept,
                    0 as revenue, 0 as window_bought, 0 as window_returned, 0 as window_kept, 0 as window_revenue
                from feedback_events {counts}
                where customer_id is not null and feedback_events.shown_day >= $1{condition}
                group by customer_id
                union all
                select customer_id, 0, 0, 0, 0, 0, 0,
                    sum(case when attribution = 'ticket' then {REVENUE} else 0 end),
                    count(case when attribution = 'window' and kind = 'bought' then 1 end),
                    count(case when attribution = 'window' and kind = 'returned' then 1 end),
                    count(case when attribution = 'window' and kind = 'kept' then 1 end),
                    sum(case when attribution = 'window' then {REVENUE} else 0 end)
                from events {counts}
                where customer_id is not null and events.shown_day >= $1{condition}
                group by customer_id
             ) as counted join visible_customers on visible_customers.id = customer_id
             group by 1"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(since_day).bind(feature);
        let query = values.into_iter().fold(query, Query::bind);
        let rows = query.fetch_all(self.store.readers()?).await?;
        let read = |row: &AnyRow| {
            let value = Record::new(row, "customers", &"with feedback")
                .parse_optional("value", json::parse_feature)?;
            Ok((value, Outcomes::from_row(row)?))
        };
        rows.iter().map(read).collect()
    }
}

/// The sums of a group of rows, of which [`Outcomes`] are read.
pub(crate) const SUMS: &str = "cast(sum(shown) as bigint) as shown, cast(sum(accepted) as bigint) as accepted, \
     cast(sum(rejected) as bigint) as rejected, cast(sum(bought) as bigint) as bought, \
     cast(sum(returned) as bigint) as returned, cast(sum(kept) as bigint) as kept, \
     cast(sum(revenue) as bigint) as revenue, cast(sum(window_bought) as bigint) as window_bought, \
     cast(sum(window_returned) as bigint) as window_returned, cast(sum(window_kept) as bigint) as window_kept, \
     cast(sum(window_revenue) as bigint) as window_revenue";

/// What an event adds to the revenue.
const REVENUE: &str = "coalesce(events.revenue, 0)";

impl FromRow<'_, AnyRow> for Outcomes {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let count = |column| row.try_get(column).map(i64::unsigned_abs);
        Ok(Self {
            shown: count("shown")?,
            accepted: count("accepted")?,
            rejected: count("rejected")?,
            sold: Sales {
                bought: count("bought")?,
                returned: count("returned")?,
                kept: count("kept")?,
                revenue: row.try_get("revenue")?,
            },
            in_window: Sales {
                bought: count("window_bought")?,
                returned: count("window_returned")?,
                kept: count("window_kept")?,
                revenue: row.try_get("window_revenue")?,
            },
        })
    }
}

/// Counts suggestions that were stored as shown just now, by their articles. Writers of the same rows meet in the same order,
/// and at the end of their transactions.
pub(crate) async fn count_shown(
    connection: &mut AnyConnection,
    shown: &[([u8; 32], &FeedbackEvent, &SuggestedArticle)],
) -> Result<(), StoreError> {
    let mut groups: BTreeMap<(&str, i64, u32), Vec<_>> = BTreeMap::new();
    for (key_hash, event, article) in shown {
        let is_new = article.is_new.map_or(-1, i64::from);
        let kind = article.kind.as_deref().unwrap_or_default();
        groups.entry((kind, is_new, event.slot)).or_default().push((key_hash, event));
    }
    for ((kind, is_new, slot), events) in groups {
        let (_, event) = events[0];
        let id: i64 = sqlx::query_scalar(
            "insert into feedback_counts (shown_day, release, method, arm, article_type, is_new, slot, shown)
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (shown_day, release, method, arm, article_type, is_new, slot)
             do update set shown = feedback_counts.shown + excluded.shown
             returning id",
        )
        .bind(day_of(event.at))
        .bind(event.release.as_str())
        .bind(event.method.as_str())
        .bind(event.arm.as_deref().unwrap_or_default())
        .bind(kind)
        .bind(is_new)
        .bind(i64::from(slot))
        .bind(i64::try_from(events.len()).expect("a page is short; this is a bug"))
        .fetch_one(&mut *connection)
        .await?;
        for (key_hash, event) in events {
            sqlx::query("update feedback_events set counts_id = $2, shown_day = $3 where key_hash = $1")
                .bind(&key_hash[..])
                .bind(id)
                .bind(day_of(event.at))
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// Counts an event that was stored just now, for the first time, about a suggestion that was counted as shown, and returns the day
/// on which it was shown and the rules that could change it.
pub(crate) async fn count_outcome(
    connection: &mut AnyConnection,
    key_hash: &[u8; 32],
    kind: FeedbackKind,
    shown_fact: &[u8; 32],
) -> Result<Option<(i64, CountedRules)>, StoreError> {
    let (shown_day, rules): (Option<i64>, Option<Vec<u8>>) = sqlx::query_as(
        "update feedback_events set (shown_day, counts_id, rules) =
            (select shown_day, counts_id, rules from feedback_events where fact = $2)
         where key_hash = $1 returning shown_day, rules",
    )
    .bind(&key_hash[..])
    .bind(&shown_fact[..])
    .fetch_one(&mut *connection)
    .await?;
    add(connection, kind, shown_fact, 1).await?;
    Ok(shown_day.map(|day| (day, CountedRules::from_bytes(&rules.unwrap_or_default()))))
}

/// What a transaction adds to the counts of rules, and of the customers in an experiment. It is written at its end, in the order of its
/// keys, so that writers of the same rows never wait for each other in a circle.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rules: BTreeMap<(RuleDigest, i64, bool, FeedbackKind), i64>,
    arms: BTreeMap<(String, String), ArmCounts>,
}

impl Tally {
    pub(crate) fn add(&mut self, rules: &CountedRules, shown_day: i64, kind: FeedbackKind, more: i64) {
        for rule in &rules.rules {
            *self.rules.entry((*rule, shown_day, rules.held_out, kind)).or_default() += more;
        }
    }

    /// Counts for a customer in an experiment's arm, if both are known.
    pub(crate) fn add_to_arm(&mut self, arm: Option<&str>, customer: Option<&str>, more: ArmCounts) {
        if let (Some(arm), Some(customer)) = (arm, customer) {
            *self.arms.entry((arm.to_owned(), customer.to_owned())).or_default() += more;
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for (key, more) in other.rules {
            *self.rules.entry(key).or_default() += more;
        }
        for (key, more) in other.arms {
            *self.arms.entry(key).or_default() += more;
        }
    }

    pub(crate) async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        for ((rule, shown_day, held_out, kind), more) in self.rules {
            let column = kind.as_str();
            let sql = format!(
                "insert into rule_counts (rule, shown_day, held_out, {column}) values ($1, $2, $3, $4)
                 on conflict (rule, shown_day, held_out)
                 do update set {column} = rule_counts.{column} + excluded.{column}"
            );
            sqlx::query(AssertSqlSafe(sql))
                .bind(&rule[..])
                .bind(shown_day)
                .bind(i64::from(held_out))
                .bind(more)
                .execute(&mut *connection)
                .await?;
        }
        for ((arm, customer), more) in self.arms {
            crate::experiments::add_outcome(connection, &arm, &customer, more).await?;
        }
        Ok(())
    }
}

/// Takes back that a suggestion was accepted, if that was recorded: the article came back.
pub(crate) async fn take_back(
    connection: &mut AnyConnection,
    accepted_fact: &[u8; 32],
    shown_fact: &[u8; 32],
) -> Result<bool, StoreError> {
    let counted =
        sqlx::query("update feedback_events set shown_day = null where fact = $1 and shown_day is not null")
            .bind(&accepted_fact[..])
            .execute(&mut *connection)
            .await?;
    let is_counted = counted.rows_affected() > 0;
    if is_counted {
        add(connection, FeedbackKind::Accepted, shown_fact, -1).await?;
    }
    Ok(is_counted)
}

/// Adds to the counts of a suggestion's outcome.
pub(crate) async fn add(
    connection: &mut AnyConnection,
    kind: FeedbackKind,
    shown_fact: &[u8; 32],
    more: i64,
) -> Result<(), StoreError> {
    let column = kind.as_str();
    let sql = format!(
        "update feedback_counts set {column} = {column} + $2
         where id = (select counts_id from feedback_events where fact = $1)"
    );
    sqlx::query(AssertSqlSafe(sql)).bind(&shown_fact[..]).bind(more).execute(connection).await?;
    Ok(())
}
