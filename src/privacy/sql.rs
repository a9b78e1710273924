//! Everything that the database keeps of a customer, which exports give and erasures delete.
//!
//! A table with data of customers belongs here: into [`PERSONAL_TABLES`], [`PersonalData`] and [`Customers::delete_expected`].
//! `tests/it/customers/sql/erasing.rs` compares all three with the database's schema.

use atelier_core::domain::{Customer, CustomerId, Timestamp};
use futures_util::{StreamExt, stream::BoxStream};
use sqlx::Row;
use utoipa::ToSchema;

use super::{AuditBody, NoteBody};
use crate::{
    customers::{CustomerNote, Customers, api::CustomerBody},
    experiments::ArmCustomer,
    outcomes::{FeedbackEvent, Purchase, StoredEvent},
    outfits::{SavedOutfit, api::OutfitBody, select},
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

/// All data about a customer.
// Rows are read as needed: there may be millions of events.
#[derive(ToSchema)]
#[schema(as = CustomerExport)]
#[expect(missing_debug_implementations, reason = "streams have none")]
pub struct PersonalData {
    #[schema(value_type = CustomerBody)]
    pub customer: Customer,
    /// When the customer was stored first.
    #[schema(value_type = String, examples("2026-11-21T14:34:00Z"))]
    pub created_at: Timestamp,
    /// When the profile changed last.
    #[schema(value_type = String, examples("2026-11-21T14:34:00Z"))]
    pub updated_at: Timestamp,
    /// With drafts, and with those that were deleted and can still be brought back.
    #[schema(value_type = Vec<OutfitBody>)]
    pub outfits: Rows<SavedOutfit>,
    /// Stylists' notes about the customer.
    #[schema(value_type = Vec<NoteBody>)]
    pub notes: Rows<CustomerNote>,
    #[schema(value_type = Vec<FeedbackEvent>)]
    pub feedback: Rows<FeedbackEvent>,
    #[schema(value_type = Vec<StoredEvent>)]
    pub events: Rows<StoredEvent>,
    /// What models see beside the profile's own list.
    #[schema(value_type = Vec<Purchase>)]
    pub purchases: Rows<Purchase>,
    /// Outcomes of suggestions in the arms of experiments.
    #[schema(rename = "experiments", value_type = Vec<ArmCustomer>)]
    pub arms: Rows<ArmCustomer>,
    /// The audit log's entries about the customer.
    #[schema(value_type = Vec<AuditBody>)]
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
