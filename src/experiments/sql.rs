//! Outcomes of suggestions by customer and arm of an experiment. Figures need each customer's sums: one customer's suggestions
//! are not independent of each other.

use atelier_core::domain::CustomerId;
use futures_util::Stream;
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, Row, any::AnyRow};
use utoipa::ToSchema;

use crate::{
    outcomes::ArmCounts,
    platform::db::{
        Store, StoreError,
        pages::{self, PART},
    },
};

crate::platform::db::part! {
    /// The counts of experiments of a [`Store`].
    ExperimentCounts, experiment_counts
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

/// A customer's part in an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CustomerArm)]
pub struct ArmCustomer {
    // Identifies the customer in files, instead of the id.
    #[serde(skip)]
    pub number: i64,
    /// The experiment and its arm.
    #[schema(examples("autumn/new"))]
    pub arm: String,
    #[serde(flatten)]
    pub counts: ArmCounts,
}

impl ExperimentCounts<'_> {
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

    pub fn customers(self, arm: &str) -> impl Stream<Item = Result<ArmCustomer, StoreError>> + Send + use<> {
        const SQL: &str =
            "select * from experiment_customers where arm = $1 and seq > $2 order by seq limit $3";
        let arm = arm.to_owned();
        let query = move |after: i64| sqlx::query(SQL).bind(arm.clone()).bind(after).bind(i64::from(PART));
        let seq = |row: &AnyRow| row.try_get("seq");
        pages::stream(self.store, 0, PART, query, seq, |row| Ok(ArmCustomer::from_row(row)?))
    }

    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<ArmCustomer, StoreError>> + Send + use<> {
        const SQL: &str =
            "select * from experiment_customers where customer_id = $1 and seq > $2 order by seq limit $3";
        pages::for_customer(self.store, customer, SQL, |row| row.try_get("seq"))
    }
}

impl FromRow<'_, AnyRow> for ArmCustomer {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let (number, arm) = (row.try_get("seq")?, row.try_get("arm")?);
        Ok(Self { number, arm, counts: ArmCounts::from_row(row)? })
    }
}
