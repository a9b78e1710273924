//! Everything that the database keeps of a customer, which exports give and erasures delete.
//!
//! A table with data of customers belongs here: into [`PERSONAL_TABLES`], [`PersonalData`] and [`Customers::erase`].
//! `tests/it/store/erasing.rs` compares all three with the database's schema.

use std::time::Duration;

use atelier_core::domain::{Customer, CustomerId, Timestamp};
use futures_util::{StreamExt, stream::BoxStream};
use serde_json::json;
use tokio::time::timeout;

use super::{
    AuditEntry, ChangeError, CustomerNote, Customers, Entry, Expected, FeedbackEvent, SavedOutfit,
    StoreError, audit, connect::Dialect, pages, revisions, saved_outfits::select,
};

/// The tables with data of customers.
pub const PERSONAL_TABLES: [&str; 5] =
    ["audit_log", "customer_notes", "customers", "feedback_events", "outfits"];

/// How long an erasure waits for the log to be emptied; [`super::Store::complete_erasures`] tries again.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// The audit log's entries about the customer, oldest first.
    pub audit: Rows<AuditEntry>,
}

type Rows<Row> = BoxStream<'static, Result<Row, StoreError>>;

impl Customers<'_> {
    /// Everything stored about the customer; `None` if there is no such customer.
    pub async fn personal_data(self, id: &CustomerId) -> Result<Option<PersonalData>, StoreError> {
        let store = self.store;
        let times: Option<(i64, i64)> =
            sqlx::query_as("select created_at, updated_at from customers where id = $1")
                .bind(id.as_str())
                .fetch_optional(&store.readers)
                .await?;
        let (Some((created, updated)), Some(customer)) = (times, self.get(id).await?) else {
            return Ok(None);
        };
        let outfits = pages::for_customer(
            store,
            id,
            select!("where customer_id = $1 and seq > $2 order by seq limit $3"),
            |outfit: &SavedOutfit| outfit.seq,
        );
        Ok(Some(PersonalData {
            customer,
            created_at: Timestamp::from_millis(created),
            updated_at: Timestamp::from_millis(updated),
            outfits: outfits.boxed(),
            notes: store.notes().for_customer(id).boxed(),
            feedback: store.feedback().for_customer(id).boxed(),
            audit: store.audit().for_customer(id).boxed(),
        }))
    }

    /// Erases the customer: deletes the profile, outfits and notes, removes the customer from feedback, and blanks the audit
    /// log's entries about them. If there is no such customer it still blanks the entries, and returns false.
    ///
    /// On `SQLite` it then empties the log, unless another program reads the database; the rest of the files follows in
    /// [`super::Store::complete_erasures`].
    pub async fn erase(self, id: &CustomerId, now: Timestamp) -> Result<bool, StoreError> {
        match self.erase_expected(id, &Expected::default(), now).await {
            Ok(erased) => Ok(erased),
            Err(ChangeError::Store(error)) => Err(error),
            Err(error) => unreachable!("every row is expected, but {error}; this is a bug"),
        }
    }

    /// Like [`Customers::erase`], if the customer is as expected.
    pub async fn erase_expected(
        self,
        id: &CustomerId,
        expected: &Expected,
        now: Timestamp,
    ) -> Result<bool, ChangeError> {
        let mut transaction = self.store.write().await?;
        if !expected.is_anything()
            && let Some(stored) = self.lock(&mut transaction, id).await?
        {
            expected.check(Some(&stored.version))?;
        }
        // The foreign keys of outfits, notes and feedback events do the rest.
        let erased = sqlx::query("delete from customers where id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
        let blanked = audit::erase_customer(&mut transaction, id).await?;
        let found = erased.rows_affected() > 0;
        if found {
            // The log must not say which customer was erased.
            let entry = Entry::new("customer.erase", audit::ERASED, json!({}));
            entry.write(&mut transaction, self.store.author, now).await?;
        }
        if found || blanked > 0 {
            revisions::increment(&mut transaction, revisions::ERASURES).await?;
        }
        transaction.commit().await?;
        if found && self.store.dialect == Dialect::Sqlite {
            // The customer is erased; a failure here is tried again in the background.
            let _ = timeout(PATIENCE, self.store.empty_log()).await;
        }
        Ok(found)
    }
}
