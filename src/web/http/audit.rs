//! Changes made over HTTP, as the audit log has them.

use serde_json::Value;

use crate::web::http::AppState;
use crate::{
    domain::CustomerId,
    store::{Actor, StoreError},
};

impl AppState {
    /// Writes down a change that was made: by whom, what, to what, and its details, an object.
    pub(crate) async fn note(
        &self,
        actor: Actor,
        action: &str,
        subject: &str,
        details: Value,
    ) -> Result<(), StoreError> {
        self.append(actor, action, subject, None, details).await
    }

    /// The same for a change that is about a customer: erasing them blanks the entry.
    pub(crate) async fn note_of(
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
