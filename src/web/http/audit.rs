//! Writing changes made over HTTP to the audit log.

use serde_json::Value;

use crate::{
    domain::CustomerId,
    service::audit,
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
        audit::note(&self.store, actor, action, subject, None, details, self.now()).await
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
        audit::note(&self.store, actor, action, subject, Some(customer), details, self.now()).await
    }
}
