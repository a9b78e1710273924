//! Stylists' notes about customers.

use std::time::Duration;

use atelier_core::domain::{CustomerId, Timestamp};
use futures_util::Stream;
use serde_json::json;
use sqlx::{FromRow, Row, any::AnyRow};

use super::customers::{self, customer_id};
use crate::{
    people::PersonId,
    platform::db::{Entry, Note, Store, StoreError, pages, record::Record, values},
};

/// How far apart the two requests of a double click are at most.
const TWICE: Duration = Duration::from_mins(1);

crate::platform::db::part! {
    Notes, notes
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerNote {
    pub id: i64,
    /// The name of the person who wrote it.
    pub author: String,
    pub note: Note,
    pub at: Timestamp,
}

impl Notes<'_> {
    /// Adds a note. The same note from the same person within a minute is a double click, and adds nothing.
    pub async fn add(
        self,
        customer: &CustomerId,
        note: &Note,
        person: PersonId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = self.store.write().await?;
        // Two notes about one customer wait for each other.
        customers::check_known(&mut transaction, customer, self.store.dialect.for_update()).await?;
        let sql = "select id from customer_notes
             where customer_id = $1 and person_id = $2 and note = $3 and at > $4 limit 1";
        let since = (now - TWICE).millis();
        let twin: Option<i64> =
            sqlx::query_scalar_with(sql, values![customer.as_str(), person.0, note.as_str(), since])
                .fetch_optional(&mut *transaction)
                .await?;
        if twin.is_some() {
            return Ok(());
        }
        let sql = "insert into customer_notes (customer_id, person_id, note, at) values ($1, $2, $3, $4) returning id";
        let new = values![customer.as_str(), person.0, note.as_str(), now.millis()];
        let id: i64 = sqlx::query_scalar_with(sql, new).fetch_one(&mut *transaction).await?;
        let entry = Entry::new("customer.note", customer.as_str(), json!({"note": id})).about(customer);
        self.store.commit(transaction, &entry, now).await
    }

    /// Deletes a note for good. False if there is none.
    pub async fn delete(self, id: i64, now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.store.write().await?;
        let sql = "delete from customer_notes where id = $1 returning customer_id";
        let customer: Option<String> =
            sqlx::query_scalar_with(sql, values![id]).fetch_optional(&mut *transaction).await?;
        let Some(customer) = customer else { return Ok(false) };
        let customer = customer_id(customer)?;
        let details = json!({"note": id, "deleted": true});
        let entry = Entry::new("customer.note", customer.as_str(), details).about(&customer);
        self.store.commit(transaction, &entry, now).await?;
        Ok(true)
    }

    /// The customer's notes, oldest first, read in parts as needed.
    pub fn for_customer(
        self,
        customer: &CustomerId,
    ) -> impl Stream<Item = Result<CustomerNote, StoreError>> + Send + use<> {
        let sql = "select customer_notes.id, people.name as author, note, at
             from customer_notes join people on people.id = person_id
             where customer_id = $1 and customer_notes.id > $2 order by customer_notes.id limit $3";
        pages::for_customer(self.store, customer, sql, |row| row.try_get("id"))
    }
}

impl FromRow<'_, AnyRow> for CustomerNote {
    fn from_row(row: &AnyRow) -> sqlx::Result<Self> {
        let id = row.try_get("id")?;
        let row = Record::new(row, "customer_notes", &id);
        Ok(Self { id, author: row.get("author")?, note: row.parse("note", Note::new)?, at: row.time("at")? })
    }
}
