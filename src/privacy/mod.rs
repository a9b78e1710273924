//! Everything that is stored of a customer, for a shop that must give it to them. Erasing it is deleting the customer.

mod sql;

use std::future::ready;

use atelier_core::domain::{Customer, CustomerId, Timestamp};
use axum::{
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{
    Stream, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{ToSchema, openapi};
use utoipa_axum::routes;

use crate::{
    catalogue::resource::Resource,
    customers::{CustomerNote, api::CustomerBody},
    experiments::ArmCustomer,
    outcomes::{FeedbackEvent, Purchase, StoredEvent},
    outfits::{SavedOutfit, api::OutfitBody},
    people::Scope,
    platform::{
        db::{Actor, AuditEntry, StoreError},
        http::{
            AppState, Problem,
            extract::Path,
            routes::Routes,
            schema::{CustomerIdSchema, free_object},
        },
    },
};

pub(crate) fn router() -> Routes {
    Routes::new().streaming(Scope::Catalogue, routes!(export))
}

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
    /// Owned articles, which are not suggested again.
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

/// A stylist's note about a customer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Note)]
struct NoteBody {
    /// When it was written.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// Who wrote it.
    #[schema(examples("Ada"))]
    by: String,
    /// Its text.
    #[schema(examples("Prefers to be called in the evening"))]
    note: String,
}

impl From<CustomerNote> for NoteBody {
    fn from(CustomerNote { author, note, at, .. }: CustomerNote) -> Self {
        Self { at: at.to_string(), by: author, note: note.as_str().to_owned() }
    }
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct AuditBody {
    /// When.
    #[schema(examples("2026-11-21T14:34:00Z"))]
    at: String,
    /// A `person` with an account, a program with a `key`, or the `service` itself.
    #[schema(examples("key"))]
    by: &'static str,
    /// The action.
    #[schema(examples("customer.put"))]
    action: String,
    /// The name or id of what was changed.
    #[schema(examples("c-000010"))]
    subject: String,
    #[schema(schema_with = describe_details, example = json!({"new": true}))]
    details: Map<String, Value>,
}

fn describe_details() -> openapi::Schema {
    free_object("The change, or its size.")
}

impl From<AuditEntry> for AuditBody {
    fn from(AuditEntry { at, actor, action, subject, details, .. }: AuditEntry) -> Self {
        let by = match actor {
            Actor::Person(_) => "person",
            Actor::Key(_) => "key",
            Actor::Service | Actor::Visitor => "service",
        };
        Self { at: at.to_string(), by, action, subject, details }
    }
}

/// Export a customer's data
///
/// Everything stored about a customer, which a shop must give a customer who asks for it: the profile, the outfits,
/// stylists' notes, the feedback (rejections included), the events, what they bought, and the audit log's entries about them.
#[utoipa::path(get, path = "/customers/{id}/export", operation_id = "exportCustomer", tag = "customers",
    params(("id" = CustomerIdSchema, Path, description = "The customer's id", example = "c-000010")),
    responses(
        (status = 200, description = "All data about the customer", body = PersonalData),
    ),
)]
async fn export(State(state): State<AppState>, Path(id): Path<CustomerId>) -> Result<Response, Problem> {
    let data = state.store.customers().personal_data(&id).await?.ok_or_else(|| Customer::unknown(&id))?;
    let [created_at, updated_at] = [data.created_at, data.updated_at].map(|at| json_text(&at.to_string()));
    let customer = json_text(&CustomerBody::from(data.customer));
    let head = format!("{{\"customer\":{customer},\"created_at\":{created_at},\"updated_at\":{updated_at}");
    let text = stream::once(ready(Ok(head)))
        .chain(json_list("outfits", data.outfits.map_ok(OutfitBody::from)))
        .chain(json_list("notes", data.notes.map_ok(NoteBody::from)))
        .chain(json_list("feedback", data.feedback))
        .chain(json_list("events", data.events))
        .chain(json_list("purchases", data.purchases))
        .chain(json_list("experiments", data.arms))
        .chain(json_list("audit", data.audit.map_ok(AuditBody::from)))
        .chain(stream::once(ready(Ok("}".to_owned()))))
        // The answer has already started, so an error can only cut it off and be logged.
        .inspect_err(|error| tracing::error!(%error, "the export of a customer was cut off"));
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(text)).into_response())
}

/// A field with a list, which follows another field of an object.
fn json_list<Row: Serialize>(
    name: &str,
    rows: impl Stream<Item = Result<Row, StoreError>> + Send,
) -> impl Stream<Item = Result<String, StoreError>> + Send {
    let begin = format!(",\"{name}\":[");
    let items = rows.enumerate().map(|(index, row)| {
        let comma = if index == 0 { "" } else { "," };
        row.map(|row| format!("{comma}{}", json_text(&row)))
    });
    stream::once(ready(Ok(begin))).chain(items).chain(stream::once(ready(Ok("]".to_owned()))))
}

fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the bodies of answers are JSON")
}
