//! `/openapi.json`: the parameters, bodies and answers of every route.
//!
//! Handlers describe their parameters, bodies and successful answers, and problems of their own. This module adds the
//! problems that follow from an operation's shape: an operation with a body can fail because the body is malformed.

use axum::{extract::State, response::Response};
use serde_json::{Map, Value, json};
use utoipa::{OpenApi, openapi};
use utoipa_axum::routes;

use super::{
    AppState, KINDS, Kind, Problem, ProblemBody,
    conditions::{ASK_AGAIN, Conditions, Document, ReadHeaders},
    item::reference,
    routes::{Deadline, Guards, Routes},
    schema::{ConditionSchema, names},
};
use crate::config::Limits;

/// The document as text, for programs that make clients of it.
pub(crate) fn simplified(document: &Value) -> Document {
    let mut document = document.clone();
    simplify(&mut document);
    Document::new("application/json", document.to_string())
}

/// Completes the document: adds limits, keys and common problems to the handlers' descriptions. `describe_keys` says what keys each
/// operation takes.
pub(crate) fn finish(
    document: &openapi::OpenApi,
    guards: &Guards,
    limits: Limits,
    describe_keys: impl FnOnce(&mut Value, &Guards),
) -> Value {
    let mut document = serde_json::to_value(document).expect("the document is plain JSON");
    add_limits(&mut document, limits);
    tighten(&mut document);
    // Problems follow from them.
    describe_keys(&mut document, guards);
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let deadline = guards[path][&method.to_ascii_uppercase()].deadline;
            let operation = operation.as_object_mut().expect("an operation is an object");
            add_problems(method, operation, deadline);
        }
    }
    document
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Atelier",
        description = "Personalised outfit completion.\n\nEvery problem is `application/problem+json` (RFC \
                       9457); /docs/problems explains each code. Ids in paths are percent-encoded: a slash \
                       in an id is %2F. Every answer returns X-Request-ID, and a traceparent that was sent. HEAD works \
                       wherever GET does. Bodies may have Content-Encoding: gzip.\n\nEach operation names the scope that its API key must have."
    ),
    servers(
        (url = "/v1", description = "Stable: operations keep their meaning"),
        (url = "/", description = "The same operations without a version"),
    ),
    components(schemas(ProblemBody, ConditionSchema)),
    tags(
        (name = "completion", description = "Which articles belong in an outfit"),
        (name = "releases", description = "Releases, their methods, and routing"),
        (name = "rules", description = "Rules that change what the models suggest"),
        (name = "experiments", description = "Customers who are split between methods, sets of rules or releases"),
        (name = "looks", description = "Outfits that the shop's editors publish, and looks for product pages"),
        (name = "customers", description = "Customers and their features"),
        (name = "articles", description = "The catalogue"),
        (name = "outfits", description = "Stored outfits"),
        (name = "imports", description = "Files that are imported in the background"),
        (name = "feeds", description = "Feeds that the service fetches by itself"),
        (name = "feedback", description = "Outcomes of suggestions"),
        (name = "events", description = "Actions of customers and visitors in the shop"),
        (name = "agents", description = "Tools for language models"),
        (name = "service", description = "Health and measurements, for load balancers and operators"),
        (name = "documents", description = "Documentation"),
    )
)]
struct Atelier;

pub(crate) fn empty_document() -> Routes {
    Routes::with_document(Atelier::openapi())
}

pub(crate) fn router() -> Routes {
    Routes::new().open(routes!(document))
}

/// This document
#[utoipa::path(get, path = "/openapi.json", operation_id = "getOpenApiDocument", tag = "documents",
    params(ReadHeaders),
    responses(
        (status = 200, description = "An OpenAPI 3.1 document", body = Object),
    ),
)]
async fn document(State(state): State<AppState>, conditions: Conditions) -> Result<Response, Problem> {
    state.published().openapi.answer(ASK_AGAIN, &conditions)
}

/// Adds the limits, as `x-limits` and in the schemas.
fn add_limits(document: &mut Value, limits: Limits) {
    document["x-limits"] = serde_json::to_value(limits).expect("numbers are JSON");
    for (list, most) in [
        ("BatchBody/properties/items", limits.batch_items),
        ("Compare/properties/methods", limits.columns),
        ("Compare/properties/customers", limits.columns),
        ("Events", limits.feedback_events),
        ("Feedback", limits.feedback_events),
    ] {
        let list = document.pointer_mut(&format!("/components/schemas/{list}"));
        list.expect("every limited list is in the document")["maxItems"] = most.into();
    }
    for operation in operations(document) {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            // One with a limit of its own is no page's.
            if parameter["in"] == "query"
                && parameter["name"] == "n"
                && parameter["schema"]["maximum"].is_null()
            {
                parameter["schema"]["maximum"] = limits.page.into();
                parameter["schema"]["minimum"] = 1.into();
                parameter["schema"]["default"] = limits.page_default.into();
            }
        }
    }
}

/// Adds rules that no attribute of a body's type can say.
fn tighten(document: &mut Value) {
    // A field with a default would be required in types that openapi-typescript makes for requests.
    for body in ["Filters", "Price"] {
        let fields = document["components"]["schemas"][body]["properties"].as_object_mut();
        fields.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut).for_each(|field| {
            field.remove("default");
        });
    }
    for body in ["ArticlePut", "ArticlePatch"] {
        document["components"]["schemas"][body]["propertyNames"] = names();
    }
    // utoipa repeats the item in each page.
    for item in ["Article", "Customer", "Outfit"] {
        document["components"]["schemas"][format!("Page_{item}")]["properties"]["items"]["items"] =
            reference(item);
    }
}

/// Says the same with keywords that openapi-generator ignores. Of a choice between types or objects it makes a class that
/// takes and reads no plain value; of fields that are named with others, a class that loses the others.
fn simplify(document: &mut Value) {
    name_other_types(document);
    let schemas = &mut document["components"]["schemas"];
    for (item, answer) in [("Item", "Completion"), ("FeedbackItem", "Accepted")] {
        let parts = [answer, "Problem"].map(|part| schemas[part]["properties"].as_object().cloned());
        let item = schemas[item].as_object_mut().expect("every item is in the document");
        item.remove("oneOf");
        item.extend(Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), parts.into_iter().flatten().flatten().collect()),
            ("if".to_owned(), json!({"required": ["code"]})),
            ("then".to_owned(), reference("Problem")),
            ("else".to_owned(), reference(answer)),
        ]));
    }
    for body in ["ArticlePut", "ArticlePatch"] {
        let body = schemas[body].as_object_mut().expect("every body is in the document");
        let fields = body.remove("properties");
        let fields = fields.as_ref().and_then(Value::as_object).into_iter().flatten();
        let fields = fields.map(|(name, field)| (format!("^{name}$"), field.clone()));
        body.insert("patternProperties".to_owned(), fields.collect());
    }
}

/// A value of several types becomes one that has none of the others.
fn name_other_types(schema: &mut Value) {
    const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(name_other_types),
        Value::Object(fields) => {
            fields.values_mut().for_each(name_other_types);
            let Some(Value::Array(types)) = fields.get("type") else { return };
            if types.iter().filter(|name| *name != "null").count() < 2 {
                return;
            }
            let whole = types.contains(&json!("integer"));
            let has = |name: &&str| types.contains(&json!(name)) || (whole && *name == "number");
            let others: Vec<&str> = TYPES.into_iter().filter(|name| !has(name)).collect();
            if whole {
                fields.insert("multipleOf".to_owned(), 1.into());
            }
            fields.remove("type");
            fields.insert("not".to_owned(), json!({"type": others}));
        }
        _ => {}
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let items = paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    items.flat_map(Map::values_mut).filter_map(Value::as_object_mut)
}

fn add_problems(method: &str, operation: &mut Map<String, Value>, deadline: Deadline) {
    let has = |place: &str| {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        parameters.into_iter().flatten().any(|parameter| parameter["in"] == place)
    };
    let mut kinds = vec![Kind::Internal, Kind::Unavailable];
    if deadline != Deadline::Unlimited {
        kinds.push(Kind::Deadline);
    }
    if operation.contains_key("security") {
        kinds.extend([Kind::Key, Kind::Scope, Kind::TooFast]);
    }
    if has("path") && ["get", "patch", "delete"].contains(&method) {
        kinds.push(Kind::NotFound);
    }
    if has("path") || has("query") {
        kinds.extend([Kind::Malformed, Kind::Invalid]);
    }
    if has("header") {
        kinds.push(Kind::Invalid);
    }
    let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let mut names = parameters.filter_map(|parameter| parameter["name"].as_str());
    let is_conditional = names.any(|name| name.starts_with("If-"));
    if is_conditional {
        kinds.push(Kind::PreconditionFailed);
    }
    if operation.contains_key("requestBody") {
        kinds.extend([
            Kind::Malformed,
            Kind::TooSlow,
            Kind::TooLarge,
            Kind::UnsupportedMediaType,
            Kind::Invalid,
        ]);
    }
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    let responses = responses.expect("every operation has responses");
    if is_conditional && method == "get" {
        responses.insert("304".to_owned(), json!({"description": "The caller has this version"}));
    }
    for kind in kinds {
        responses.entry(kind.status().to_string()).or_insert_with(|| response(kind));
    }
    // Handlers describe a problem only by its status and text; its body is added here.
    for (status, described) in responses {
        if let Some(kind) = KINDS.iter().find(|kind| kind.status().to_string() == *status) {
            described["content"] = response(*kind)["content"].take();
        }
    }
}

fn response(kind: Kind) -> Value {
    json!({
        "description": kind.title(),
        "content": {"application/problem+json": {"schema": reference("Problem")}},
    })
}
