//! Outcomes of suggestions by customer and arm of an experiment.

use serde::Serialize;
use sqlx::{AnyConnection, FromRow, Row, any::AnyRow, query::Query};
use utoipa::ToSchema;

use crate::{
    outcomes::{FeedbackKind, acceptance::write_money},
    platform::db::StoreError,
};

/// Outcomes of suggestions to customers in an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ArmCounts {
    /// Completions of which a suggestion was shown.
    pub completions: i64,
    /// Suggestions that were shown.
    pub shown: i64,
    /// Accepted suggestions, without returned ones.
    pub accepted: i64,
    /// Purchases by ticket, or soon after the suggestion was shown.
    pub bought: i64,
    /// Returned purchases.
    pub returned: i64,
    /// Bought and not returned.
    pub kept: i64,
    /// Payments less refunds, in the shop's currency.
    // In thousandths.
    #[serde(serialize_with = "write_money")]
    #[schema(value_type = f64)]
    pub revenue: i64,
}

impl ArmCounts {
    pub(crate) fn of(kind: FeedbackKind, count: i64) -> Self {
        let mut counts = Self::default();
        match kind {
            FeedbackKind::Shown => counts.shown = count,
            FeedbackKind::Accepted => counts.accepted = count,
            FeedbackKind::Bought => counts.bought = count,
            FeedbackKind::Returned => counts.returned = count,
            FeedbackKind::Kept => counts.kept = count,
            FeedbackKind::Rejected => {}
        }
        counts
    }
}

impl std::ops::AddAssign for ArmCounts {
    fn add_assign(&mut self, other: Self) {
        self.completions += other.completions;
        self.shown += other.shown;
        self.accepted += other.accepted;
        self.bought += other.bought;
        self.returned += other.returned;
        self.kept += other.kept;
        self.revenue += other.revenue;
    }
}

impl FromRow<'_, AnyRow> for ArmCounts {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        Ok(Self {
            completions: row.try_get("completions")?,
            shown: row.try_get("shown")?,
            accepted: row.try_get("accepted")?,
            bought: row.try_get("bought")?,
            returned: row.try_get("returned")?,
            kept: row.try_get("kept")?,
            revenue: row.try_get("revenue")?,
        })
    }
}

/// Adds to a customer's counts. A customer who was erased since has none.
pub(crate) async fn add(
    connection: &mut AnyConnection,
    arm: &str,
    customer: &str,
    more: ArmCounts,
) -> Result<(), StoreError> {
    let ArmCounts { completions, shown, accepted, bought, returned, kept, revenue } = more;
    let insert = sqlx::query(
        "insert into experiment_customers
            (arm, customer_id, completions, shown, accepted, bought, returned, kept, revenue)
         select $1, id, $3, $4, $5, $6, $7, $8, $9 from customers where id = $2
         on conflict (arm, customer_id) do update set
            completions = experiment_customers.completions + excluded.completions,
            shown = experiment_customers.shown + excluded.shown,
            accepted = experiment_customers.accepted + excluded.accepted,
            bought = experiment_customers.bought + excluded.bought,
            returned = experiment_customers.returned + excluded.returned,
            kept = experiment_customers.kept + excluded.kept,
            revenue = experiment_customers.revenue + excluded.revenue",
    )
    .bind(arm)
    .bind(customer);
    let numbers = [completions, shown, accepted, bought, returned, kept, revenue];
    numbers.into_iter().fold(insert, Query::bind).execute(connection).await?;
    Ok(())
}
