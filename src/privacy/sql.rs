//! Everything that the database keeps of a customer, which exports give and erasures delete.
//!
//! A table with data of customers belongs here: into [`PERSONAL_TABLES`], [`PersonalData`] and [`Customers::delete_expected`].
//! `tests/it/customers/sql/erasing.rs` compares all three with the database's schema.

use atelier_core::domain::{Customer, CustomerId, Timestamp};
use futures_util::{StreamExt, stream::BoxStream};
use sqlx::Row;

use crate::{
    customers::{CustomerNote, Customers},
    experiments::ArmCustomer,
    outcomes::{FeedbackEvent, Purchase, StoredEvent},
    outfits::{SavedOutfit, select},
    platform::db::{AuditEntry, StoreError, pages},
};

/// The tables with data of customers.
pub const PERSONAL_TABLES: [&str; 8] = [
    "audit_log",
    "customer_notes",
    "customers",
    "events",
    "experiment_customers",
    "feedback_events",
    "outfits",
    "purchases",
];

/// All data about a customer. Rows are read as needed: there may be millions of events.
#[expect(missing_debug_implementations, reason = "streams have none")]
pub struct PersonalData {
    pub customer: Customer,
    pub created_at: Timestamp,
    /// When the profile changed last.
    pub updated_at: Timestamp,
    /// In the order of arrival, with drafts and deleted ones.
    pub outfits: Rows<SavedOutfit>,
    /// Stylists' notes about the customer, oldest first.
    pub notes: Rows<CustomerNote>,
    /// Oldest first.
    pub feedback: Rows<FeedbackEvent>,
    /// In the order of arrival.
    pub events: Rows<StoredEvent>,
    pub purchases: Rows<Purchase>,
    /// The arms of experiments that the customer was in.
    pub arms: Rows<ArmCustomer>,
    /// The audit log's entries about the customer, oldest first.
    pub audit: Rows<AuditEntry>,
}

type Rows<Row> = BoxStream<'static, Result<Row, StoreError>>;

impl Customers<'_> {
    /// Everything stored about the customer; `None` if there is no such customer.
    pub async fn personal_data(self, id: &CustomerId) -> Result<Option<PersonalData>, StoreError> {
        let store = self.store;
        let times: Option<(i64, i64)> =
            sqlx::query_as("select created_at, updated_at from visible_customers where id = $1")
                .bind(id.as_str())
                .fetch_optional(store.readers()?)
                .await?;
        let (Some((created, updated)), Some(customer)) = (times, self.get(id).await?) else {
            return Ok(None);
        };
        let outfits = pages::for_customer::<SavedOutfit>(
            store,
            id,
            select!("where customer_id = $1 and seq > $2 order by seq limit $3"),
            |row| row.try_get("seq"),
        );
        Ok(Some(PersonalData {
            customer,
            created_at: Timestamp::from_millis(created),
            updated_at: Timestamp::from_millis(updated),
            outfits: outfits.boxed(),
            notes: store.notes().for_customer(id).boxed(),
            feedback: store.feedback().for_customer(id).boxed(),
            events: store.events().for_customer(id).boxed(),
            purchases: store.events().purchases(id).boxed(),
            arms: store.experiment_counts().for_customer(id).boxed(),
            audit: store.audit().for_customer(id).boxed(),
        }))
    }
}
