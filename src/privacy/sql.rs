//! Everything that the database keeps of a customer, which exports give and erasures delete.
//!
//! A table with data of customers belongs into [`PersonalData`] and [`Customers::delete`]. `tests/it/customers/sql/erasing.rs`
//! compares both with the database's schema.

use atelier_core::domain::{CustomerId, Timestamp};
use futures_util::StreamExt;
use sqlx::Row;

use super::PersonalData;
use crate::{
    customers::Customers,
    outfits::{SavedOutfit, select},
    platform::db::{StoreError, pages, values},
};

impl Customers<'_> {
    /// Everything stored about the customer; `None` if there is no such customer.
    pub async fn personal_data(self, id: &CustomerId) -> Result<Option<PersonalData>, StoreError> {
        let store = self.store;
        let sql = "select created_at, updated_at from visible_customers where id = $1";
        let times: Option<(i64, i64)> =
            sqlx::query_as_with(sql, values![id.as_str()]).fetch_optional(store.readers()?).await?;
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
