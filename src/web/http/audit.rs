//! Writing changes made over HTTP to the audit log.

use serde_json::Value;

use crate::{
    domain::CustomerId,
    store::{Actor, StoreError},
    web::http::AppState,
};

impl AppState {
    /// Records that `actor` did `action` to `subject`. The details are a JSON object.
    pub(crate) async fn note(
        &self,
        actor: Actor,
        action: &str,
        subject: &str,
        details: Value,
    ) -> Result<(), StoreError> {
        self.append(actor, action, subject, None, details).await
    }

    /// Records a change that concerns a customer: erasing the customer blanks the entry.
    pub(crate) async fn note_about(
        &self,
        customer: &CustomerId,
        actor: Actor,
        action: &str,
        subject: &str,
        details: Value,
    ) -> Result<(), StoreError> {
        self.append(actor, action, subject, Some(customer), details).await
    }

    async fn append(
        &self,
        actor: Actor,
        action: &str,
        subject: &str,
        customer: Option<&CustomerId>,
        details: Value,
    ) -> Result<(), StoreError> {
        let Value::Object(details) = details else { panic!("details are an object; this is a bug") };
        let now = self.now();
        self.store.audit().append(actor, action, subject, customer, &details, now).await
    }
}
