//! Outcomes of suggestions by customer and arm of an experiment. Figures need each customer's sums: one customer's suggestions
//! are not independent of each other.

use atelier_core::domain::CustomerId;
use futures_util::Stream;
use sqlx::{AnyConnection, AssertSqlSafe, FromRow, Row, any::AnyRow, query::Query};

use crate::{
    outcomes::FeedbackKind,
    platform::db::{
        Store, StoreError,
        pages::{self, PART},
    },
};

/// The counts of experiments of a [`Store`].
#[derive(Debug, Clone, Copy)]
pub struct ExperimentCounts<'a> {
    store: &'a Store,
}

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

/// Sums over the customers of an arm who were shown a completion: what figures are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ArmSums {
    pub customers: i64,
    pub counts: ArmCounts,
    /// Of the squares of each customer's completions.
    pub completions_squared: f64,
    /// For accepted, bought, kept and revenue: the sum of the squares, and of the products with completions.
    pub products: [(f64, f64); 4],
}

/// A customer in an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmCustomer {
    /// Identifies the customer in files, instead of the id.
    pub number: i64,
    pub arm: String,
    pub counts: ArmCounts,
}

impl Store {
    pub fn experiment_counts(&self) -> ExperimentCounts<'_> {
        ExperimentCounts { store: self }
    }
}

impl ExperimentCounts<'_> {
    /// The sums of an arm.
    pub async fn sums(self, arm: &str) -> Result<ArmSums, StoreError> {
        const PRODUCTS: [&str; 4] = ["accepted", "bought", "kept", "revenue"];
        let counts = ["completions", "shown", "accepted", "bought", "returned", "kept", "revenue"]
            .map(|column| format!("coalesce(cast(sum({column}) as bigint), 0) as {column}"));
        let product = |one, other, name: &str| {
            format!("coalesce(sum(cast({one} as double precision) * {other}), 0.0e0) as {name}")
        };
        let products = PRODUCTS.map(|column| {
            let [square, joint] = [product(column, column, "s_"), product(column, "completions", "j_")];
            format!("{square}{column}, {joint}{column}")
        });
        let sql = format!(
            "select count(*) as customers, {}, {}, {} from experiment_customers where arm = $1 and completions > 0",
            counts.join(", "),
            product("completions", "completions", "squared"),
            products.join(", ")
        );
        let row = sqlx::query(AssertSqlSafe(sql)).bind(arm).fetch_one(self.store.readers()?).await?;
        let mut found = [(0.0, 0.0); 4];
        for (column, (square, joint)) in PRODUCTS.iter().zip(&mut found) {
            *square = row.try_get(&*format!("s_{column}"))?;
            *joint = row.try_get(&*format!("j_{column}"))?;
        }
        Ok(ArmSums {
            customers: row.try_get("customers")?,
            counts: ArmCounts::from_row(&row)?,
            completions_squared: row.try_get("squared")?,
            products: found,
        })
    }

    /// The customers of an arm, read in parts as needed.
    pub fn customers(self, arm: &str) -> impl Stream<Item = Result<ArmCustomer, StoreError>> + Send + use<> {
        const SQL: &str =
            "select * from experiment_customers where arm = $1 and seq > $2 order by seq limit $3";
        let arm = arm.to_owned();
        let query = move |after: i64| sqlx::query(SQL).bind(arm.clone()).bind(after).bind(i64::from(PART));
        pages::stream(
            self.store,
            0,
            PART,
            query,
            |row| row.try_get("seq"),
            |row| Ok(ArmCustomer::from_row(row)?),
        )
    }

    /// The arms that a customer is in.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<ArmCustomer, StoreError>> + Send + use<> {
        const SQL: &str =
            "select * from experiment_customers where customer_id = $1 and seq > $2 order by seq limit $3";
        pages::for_customer(self.store, customer, SQL, |row| row.try_get("seq"))
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

impl FromRow<'_, AnyRow> for ArmCustomer {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let (number, arm) = (row.try_get("seq")?, row.try_get("arm")?);
        Ok(Self { number, arm, counts: ArmCounts::from_row(row)? })
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
