//! Every route, taken from the service itself: a new route is tested without a change here.

use std::{collections::BTreeSet, fmt};

use atelier::config::Limits;
use reqwest::{Body, Method};
use serde_json::{Value, json};

use crate::{
    harness::{Answer, Call, Service, TestDatabase, apply, contract, on_sqlite},
    people::attempts,
};

const JSON: &str = "application/json";

/// An operation of the document.
pub struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    pub about: Value,
}

impl Operation {
    /// The scopes that a key needs one of. None of an operation that is open to everyone.
    pub fn scopes(&self) -> Vec<&str> {
        let security = self.about["security"].as_array().into_iter().flatten();
        security.filter_map(|one| one["bearer"][0].as_str()).collect()
    }

    /// A request to it about something that is not there.
    pub fn call(&self, service: &Service) -> Call {
        service.call(self.method.clone(), self.with("1"))
    }

    /// The media type of its body, if it has one.
    fn body(&self) -> Option<&str> {
        let content = self.about["requestBody"]["content"].as_object()?;
        content.keys().next().map(String::as_str)
    }

    /// Whether the body is a file of any type.
    fn is_file(&self) -> bool {
        self.body() == Some("application/octet-stream")
    }

    fn query(&self) -> impl Iterator<Item = &Value> {
        let all = self.about["parameters"].as_array().into_iter().flatten();
        all.filter(|parameter| parameter["in"] == "query")
    }

    /// Its path with this value for each parameter.
    pub fn with(&self, text: &str) -> String {
        let parts = self.path.split('/').map(|part| if part.starts_with('{') { text } else { part });
        parts.collect::<Vec<_>>().join("/")
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

pub async fn read_document(service: &Service) -> (Value, Vec<Operation>) {
    let document = service.json("/openapi.json").await;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, about) in item.as_object().unwrap() {
            let id = about["operationId"].as_str().unwrap().to_owned();
            let method = method.to_ascii_uppercase().parse().unwrap();
            operations.push(Operation { id, method, path: path.clone(), about: about.clone() });
        }
    }
    (document, operations)
}

/// With a release, so that routes that need one are reached, and with small limits, so that large bodies are sent
/// quickly.
async fn start(db: &TestDatabase) -> Service {
    let limits =
        Limits { body_bytes: 1 << 16, bulk_bytes: 1 << 16, release_bytes: 1 << 16, ..Limits::default() };
    Service::demo_with(db, limits).await
}

/// Sends a body of that type to the operation.
fn send(service: &Service, operation: &Operation, content_type: &str, body: impl Into<Body>) -> Call {
    operation.call(service).body(content_type, body).header("x-content-sha256", "0".repeat(64))
}

/// The answer is a complete problem (RFC 9457), with a status that the document lists for the operation.
fn assert_problem(operation: &Operation, answer: &Answer, statuses: &[u16], case: &str) -> Value {
    let case = format!("{operation}: {case}");
    let status = answer.status;
    assert!(statuses.contains(&status), "{case}: {status} instead of {statuses:?}: {}", answer.text());
    assert_eq!(answer.header("content-type"), "application/problem+json", "{case}");
    let problem = answer.json();
    assert_eq!(problem["status"], status, "{case}");
    assert_eq!(problem["request_id"], answer.header("x-request-id"), "{case}");
    let code = problem["code"].as_str().unwrap();
    assert_eq!(problem["type"], format!("/docs/problems#{code}"), "{case}");
    let kind = atelier::platform::http::KINDS
        .iter()
        .find(|kind| kind.code() == code)
        .expect("the code is in the table");
    assert_eq!((problem["title"].as_str(), kind.status()), (Some(kind.title()), status), "{case}");
    assert!(!problem["detail"].as_str().unwrap().is_empty(), "{case}");
    for finding in problem["errors"].as_array().into_iter().flatten() {
        let places = ["pointer", "parameter", "line"].iter().filter(|name| !finding[**name].is_null());
        assert!(places.count() == 1 && finding["detail"].is_string(), "{case}: {finding}");
    }
    if status != 405 {
        let listed = &operation.about["responses"][status.to_string()];
        let schema = &listed["content"]["application/problem+json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/Problem", "{case}: {status} is not in the document");
    }
    problem
}

/// Only the router's Debug output shows all its paths. Those of pages must be in the tables of `attempts`.
#[apply(on_sqlite)]
async fn every_route_is_in_the_document_or_a_page(service: Service) {
    let (document, operations) = read_document(&service).await;
    let servers = document["servers"].as_array().unwrap().iter().map(|server| &server["url"]);
    assert_eq!(servers.collect::<Vec<_>>(), ["/v1", "/"]);
    let both = |of: &Operation| [of.path.clone(), format!("/v1{}", of.path)];
    let mut missing: BTreeSet<String> = operations.iter().flat_map(both).collect();
    let shown = format!("{:?}", atelier::app::app(service.state.clone()));
    let is_path = |part: &&str| part.starts_with('/') && !part.contains("__private__axum");
    for route in shown.split('"').filter(is_path).collect::<BTreeSet<_>>() {
        let parts = route.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
        let address = parts.collect::<Vec<_>>().join("/");
        let described: Vec<_> = operations.iter().filter(|of| both(of).contains(&route.to_owned())).collect();
        let method = if described.is_empty() { Method::OPTIONS } else { Method::TRACE };
        let answer = service.call(method, &address).await;
        let mut methods: BTreeSet<&str> = answer.header("allow").split(',').map(str::trim).collect();
        let Some(one) = described.first() else {
            methods.remove("HEAD");
            let is_listed = methods.iter().all(|method| attempts::has(method, route));
            assert!(is_listed, "{methods:?} {route} are in no table of tests/it/people/attempts.rs");
            continue;
        };
        // It takes exactly the documented methods.
        let mut expected: BTreeSet<&str> = described.iter().map(|of| of.method.as_str()).collect();
        if ["/articles/bulk", "/customers/bulk"].contains(&&*one.path) {
            // Also the path of an item called `bulk`.
            expected.extend(["GET", "PUT", "PATCH", "DELETE"]);
        }
        expected.extend(expected.contains("GET").then_some("HEAD"));
        assert_eq!(methods, expected, "{route}");
        let told = assert_problem(one, &answer, &[405], "TRACE");
        assert_eq!(told["detail"], format!("{address} does not support TRACE"));
        missing.remove(route);
    }
    assert!(missing.is_empty(), "these are no routes: {missing:?}");
}

#[apply(on_sqlite)]
async fn every_operation_is_described_with_its_limits(service: Service) {
    let (document, operations) = read_document(&service).await;
    assert_eq!(document["openapi"], "3.1.0");
    let items = &document["components"]["schemas"]["BatchBody"]["properties"]["items"];
    assert_eq!((&items["minItems"], &items["maxItems"]), (&json!(1), &json!(256)));
    let put = document["paths"]["/customers/{id}"]["put"]["responses"].as_object().unwrap();
    let statuses = put.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    assert_eq!(statuses, "200 201 400 401 403 408 412 413 415 422 429 500 503 504");
    let activation = &document["paths"]["/releases/{name}/activate"]["post"]["responses"];
    assert!(activation["504"].is_null(), "it takes as long as it takes");
    assert_eq!(document["paths"]["/readyz"]["get"]["security"], Value::Null);
    for operation in operations {
        assert!(
            operation.about["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
            "{operation}"
        );
        assert!(operation.about["tags"].as_array().is_some_and(|tags| tags.len() == 1), "{operation}");
    }
}

#[apply(on_sqlite)]
async fn bodies_of_other_types_and_long_ones_are_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (_, operations) = read_document(&service).await;
    for operation in &operations {
        let Some(media_type) = operation.body() else { continue };
        let types = ["text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense"];
        let wrong_types = if operation.is_file() { &["multipart/form-data"][..] } else { &types };
        for wrong in wrong_types {
            let answer = send(&service, operation, wrong, "{}").await;
            let told = assert_problem(operation, &answer, &[415], wrong);
            assert!(told["detail"].as_str().unwrap().contains(media_type), "{told}");
        }
        if !operation.is_file() {
            assert_problem(operation, &operation.call(&service).await, &[415], "no content type");
        }
        let text = format!("{{\"id\":\"{}\"}}", "x".repeat(10 << 20));
        for (long, case) in [(" ".repeat((1 << 16) + 1), "too long"), (text, "a text of 10 MB")] {
            assert_problem(operation, &send(&service, operation, media_type, long).await, &[413], case);
        }
    }
}

#[apply(contract)]
async fn invalid_bodies_are_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (document, operations) = read_document(&service).await;
    let broken =
        ["", "{", "{\"a\":}", "{\"a\":NaN}", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}", "{} {}", "\u{feff}{}"];
    let mut broken: Vec<(Vec<u8>, &str)> = broken.map(|text| (text.into(), text)).into();
    broken.extend([
        (b"{\"a\":\"\xff\"}".into(), "no UTF-8"),
        (b"{\"a\":\"\xed\xa0\x80\"}".into(), "a surrogate in UTF-8"),
        ("[".repeat(60_000).into(), "deep lists"),
        ("{\"a\":".repeat(10_000).into(), "deep objects"),
    ]);
    for operation in operations.iter().filter(|operation| operation.body() == Some(JSON)) {
        let post = |body: Vec<u8>| send(&service, operation, "application/json; charset=utf-8", body);
        for (body, case) in &broken {
            assert_problem(operation, &post(body.clone()).await, &[400], case);
        }
        // A change of an article may have any field, and there is no article.
        let statuses: &[u16] = if operation.method == Method::PATCH { &[404, 422] } else { &[422] };
        for wrong in ["null", "true", "7", "\"x\"", "{\"no such field\":1}", "{\"\\u0000\":\"\\u0000\"}"] {
            assert_problem(operation, &post(wrong.into()).await, statuses, wrong);
        }
        // Each field in turn with a value of every type. tests/schemathesis.sh sends more.
        for name in fields(&document, &operation.about["requestBody"]["content"][JSON]["schema"]) {
            for wrong in [json!(true), json!(1e300), json!("\0"), json!("x".repeat(50_000)), json!([])] {
                let answer = operation.call(&service).json(json!({&name: wrong})).await;
                // An optional field may accept one of them.
                assert!(answer.status < 500, "{operation} {name}");
                if answer.is_refused() {
                    assert_problem(operation, &answer, &[404, 409, 422], &name);
                }
            }
        }
    }
}

/// The fields of a body.
fn fields(document: &Value, schema: &Value) -> Vec<String> {
    if let Some(path) = schema["$ref"].as_str() {
        return fields(document, document.pointer(path.trim_start_matches('#')).unwrap());
    }
    let parts = ["allOf", "oneOf", "anyOf"].iter().filter_map(|name| schema[*name].as_array()).flatten();
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    own.chain(parts.flat_map(|part| fields(document, part))).collect()
}

#[apply(contract)]
async fn invalid_paths_and_queries_are_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (_, operations) = read_document(&service).await;
    let mut ids: Vec<String> =
        ["%00", "a%00b", "%20", "..%2F..%2Fetc%2Fpasswd", "%ff", "%ed%a0%80"].map(Into::into).into();
    ids.extend(["x".repeat(5000), "9".repeat(24)]);
    for operation in &operations {
        let ask = |path: &str| {
            let call = service.call(operation.method.clone(), path);
            let Some(media_type) = operation.body() else { return call };
            call.body(media_type, "{}").header("x-content-sha256", "0".repeat(64))
        };
        // A feed that is sent may have any name.
        let is_sent = operation.id == "sendFeed";
        let is_name = |id: &str| id.starts_with('9') || id.starts_with("..");
        let ids = ids.iter().filter(|id| operation.path.contains('{') && !(is_sent && is_name(id)));
        for id in ids {
            let statuses: &[u16] = if ["%ff", "%ed%a0%80"].contains(&&**id) { &[400] } else { &[404, 422] };
            assert_problem(operation, &ask(&operation.with(id)).await, statuses, id);
        }
        if operation.path.contains('{') && [Method::GET, Method::DELETE].contains(&operation.method) {
            assert_problem(operation, &ask(&operation.with("424242")).await, &[404], "an unknown id");
        }
        for parameter in operation.query() {
            let name = parameter["name"].as_str().unwrap();
            let types = parameter["schema"]["type"].to_string();
            let wrong: &[&str] = if types.contains("integer") {
                &["x", "-1", "0", "1.5", "99999999999", "%00", ""]
            } else if types.contains("boolean") {
                &["x", "%00", "2"]
            } else if name == "cursor" {
                &["%00", "", "xyz", "2", "c-000010"]
            } else {
                &[]
            };
            let least = &parameter["schema"]["minimum"];
            for value in wrong.iter().filter(|value| **value != "0" || *least != 0) {
                let path = format!("{}?{name}={value}", operation.with("1"));
                let told = assert_problem(operation, &ask(&path).await, &[422], &path);
                assert_eq!(told["errors"][0]["parameter"], name, "{told}");
            }
        }
        if operation.query().next().is_some() {
            let path = format!("{}?no_such_parameter=1", operation.with("1"));
            assert_problem(operation, &ask(&path).await, &[422], &path);
        }
    }
}

#[apply(on_sqlite)]
async fn the_docs_page_shows_every_operation(db: TestDatabase) {
    let service = start(&db).await;
    let (document, operations) = read_document(&service).await;
    let page = service.page("/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let html = page.text();
    for operation in &operations {
        let shown = format!("<code>{operation}</code>");
        assert_eq!(html.matches(&shown).count(), 1, "{shown}");
        let (_, rest) = html.split_once(&shown).unwrap();
        let (section, _) = rest.split_once("</section>").unwrap();
        let scopes: Vec<_> = operation.scopes().iter().map(|scope| format!("<code>{scope}</code>")).collect();
        let named = format!("Scope of its key: {}.", scopes.join(" or "));
        assert!(section.contains(&named) != scopes.is_empty(), "{shown}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("<section id=\"schema-{name}\">")), "{name}");
    }
    let text = html.replace("&#34;", "\"");
    assert!(text.contains(r#""state": "off""#), "the example of PATCH /rules/{{name}}");
    assert!(html.contains("<dt><code>bulk_bytes</code></dt><dd>65536</dd>"), "limits are published");
    assert_eq!(document["x-limits"]["bulk_bytes"], 65536);
    for link in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(html.contains(&format!("id=\"{link}\"")), "the link to {link} works");
    }
    let elsewhere = ["src=\"http", "src=\"//", "href=\"http", "href=\"//"];
    assert!(elsewhere.iter().all(|far| !html.contains(far)), "the page loads nothing from other hosts");
}
