//! Outcomes of suggestions by customer and arm of an experiment.

use sqlx::{AnyConnection, FromRow, Row, any::AnyRow, query::Query};

use crate::{outcomes::FeedbackKind, platform::db::StoreError};

/// Outcomes of the suggestions to one customer or many, or what a transaction adds to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArmCounts {
    /// Completions of which a suggestion was shown.
    pub completions: i64,
    pub shown: i64,
    /// Without what came back.
    pub accepted: i64,
    /// By ticket, or soon after the suggestion was shown.
    pub bought: i64,
    pub returned: i64,
    pub kept: i64,
    /// Thousandths of the shop's currency, less what came back.
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
