//! Entries of the audit log.

use serde_json::Value;

use crate::{
    domain::{CustomerId, Timestamp},
    store::{Actor, Store, StoreError},
};

/// Records that `actor` did `action` to `subject`. The details are a JSON object. Erasing the customer, if one is named,
/// blanks the entry.
pub async fn note(
    store: &Store,
    actor: Actor,
    action: &str,
    subject: &str,
    customer: Option<&CustomerId>,
    details: Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Value::Object(details) = details else { panic!("details are an object; this is a bug") };
    store.audit().append(actor, action, subject, customer, &details, now).await
}
