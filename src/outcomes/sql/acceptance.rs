//! Counts of the outcomes of suggestions, by the day on which they were shown. An event and its count are one transaction.

use std::{
    fmt::Write,
    ops::{Add as _, AddAssign},
};

use atelier_core::{
    domain::{FeatureValue, RuleDigest, Timestamp},
    named,
};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, Row, any::AnyRow, query::Query};
use utoipa::ToSchema;

use super::feedback::Feedback;
use crate::{
    completion::tickets::CountedRules,
    outcomes::{
        Source,
        acceptance::{OutcomesBody, write_money},
    },
    platform::db::{StoreError, connect::Dialect, json, record::Record, text::short_line},
};

/// An article as it was suggested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestedArticle {
    /// None if the catalogue lacks the article.
    pub kind: Option<String>,
    /// Whether the release that suggested it was not trained with it; None if that release is no longer live.
    pub is_new: Option<bool>,
    pub rules: CountedRules,
    pub source: Source,
}

/// Outcomes of suggestions, without repeats. Nothing happens to more suggestions than were shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(into = "OutcomesBody")]
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

/// Outcomes of suggestions that a rule could change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuleOutcomes {
    /// Suggestions that were shown.
    pub shown: u64,
    /// Accepted suggestions, without returned ones.
    pub accepted: u64,
    /// Suggestions that were rejected.
    pub rejected: u64,
    /// By feedback on the completion.
    pub bought: u64,
}

/// Sales of suggested articles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sales {
    /// Purchases of suggested articles.
    pub bought: u64,
    /// Purchases that were returned.
    pub returned: u64,
    /// Purchases that were not returned.
    pub kept: u64,
    /// Payments less refunds, in the shop's currency, as far as events say it.
    // In thousandths; may be negative.
    #[serde(serialize_with = "write_money")]
    #[schema(value_type = f64)]
    pub revenue: i64,
}

impl Outcomes {
    /// Each figure made of both figures.
    pub(crate) fn with(self, other: Self, count: fn(u64, u64) -> u64, sum: fn(i64, i64) -> i64) -> Self {
        let sales = |one: Sales, other: Sales| Sales {
            bought: count(one.bought, other.bought),
            returned: count(one.returned, other.returned),
            kept: count(one.kept, other.kept),
            revenue: sum(one.revenue, other.revenue),
        };
        Self {
            shown: count(self.shown, other.shown),
            accepted: count(self.accepted, other.accepted),
            rejected: count(self.rejected, other.rejected),
            sold: sales(self.sold, other.sold),
            in_window: sales(self.in_window, other.in_window),
        }
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, u64::add, i64::add);
    }
}

named! {
    "suggestions are counted by day, method, release, arm, type, slot, articles or source"
    pub enum CountedBy {
        /// The number of the day since 1970, in UTC.
        Day = "day",
        Method = "method",
        Release = "release",
        /// Empty without an experiment.
        Arm = "arm",
        /// Empty for an article that was not in the catalogue.
        ArticleType = "type",
        /// The place in the outfit, from 0.
        Slot = "slot",
        /// `1` for articles that the release was not trained with, `0` for others, `-1` if it was no longer live.
        IsNew = "articles",
        Source = "source",
    }
}

impl CountedBy {
    /// In `feedback_counts`.
    fn column(self) -> &'static str {
        match self {
            Self::Day => "shown_day",
            Self::ArticleType => "article_type",
            Self::IsNew => "is_new",
            other => other.as_str(),
        }
    }

    /// For people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Arm => "experiment arm",
            Self::ArticleType => "type of article",
            Self::Slot => "place in the outfit",
            Self::IsNew => "known and new articles",
            Self::Source => "who reported it",
            other => other.as_str(),
        }
    }
}

/// The only suggestions that are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedOnly {
    pub release: Option<String>,
    pub method: Option<String>,
    pub arm: Option<String>,
    pub article_type: Option<String>,
    pub slot: Option<u32>,
    pub source: Option<Source>,
}

impl CountedOnly {
    /// The condition on `feedback_counts` of a statement whose first parameters are others.
    fn condition(&self, first: usize) -> Result<(String, Vec<&str>), StoreError> {
        let Self { release, method, arm, article_type, slot, source } = self;
        let texts = [("release", release), ("method", method), ("arm", arm), ("article_type", article_type)];
        let texts = texts.into_iter().filter_map(|(column, text)| Some((column, text.as_deref()?)));
        let source = source.map(|source| ("source", source.as_str()));
        let (mut condition, mut values) = (String::new(), Vec::new());
        for (column, text) in texts.chain(source) {
            values.push(short_line("a filter", text)?);
            let number = first + values.len() - 1;
            write!(condition, " and feedback_counts.{column} = ${number}")
                .expect("a String takes every text");
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
        let column = by.column();
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

/// An event's part of the revenue.
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
