//! Every route, taken from the service itself: a new route is tested without a change here.

use std::collections::BTreeSet;

use atelier::config::Limits;
use reqwest::Method;
use serde_json::{Map, Value};

use super::Service;
use crate::harness::{Answer, TestDatabase, apply, contract, on_sqlite};

/// An operation of the document.
struct Operation {
    method: Method,
    path: String,
    about: Value,
}

impl Operation {
    /// The media type of its body, if it has one.
    fn body(&self) -> Option<&str> {
        let content = self.about["requestBody"]["content"].as_object()?;
        content.keys().next().map(String::as_str)
    }

    /// Whether the body is a file of any type.
    fn is_file(&self) -> bool {
        self.body() == Some("application/octet-stream")
    }

    fn is_json(&self) -> bool {
        self.body() == Some("application/json")
    }

    fn parameters(&self, place: &str) -> impl Iterator<Item = &Value> {
        let all = self.about["parameters"].as_array().into_iter().flatten();
        all.filter(move |parameter| parameter["in"] == place)
    }

    fn has_path_parameter(&self) -> bool {
        self.path.contains('{')
    }

    /// Its path with this value for each parameter.
    fn with(&self, text: &str) -> String {
        let parts = self.path.split('/').map(|part| if part.starts_with('{') { text } else { part });
        parts.collect::<Vec<_>>().join("/")
    }
}

async fn document(service: &Service) -> (Value, Vec<Operation>) {
    let document = service.json("/openapi.json").await;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, about) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            operations.push(Operation { method, path: path.clone(), about: about.clone() });
        }
    }
    assert!(operations.len() >= 20, "the document is complete");
    (document, operations)
}

/// With a release, so that routes that need one are reached, and with small limits, so that large bodies are sent
/// quickly.
async fn start(db: &TestDatabase) -> Service {
    Service::demo_with(
        db,
        Limits { body_bytes: 1 << 16, bulk_bytes: 1 << 16, release_bytes: 1 << 16, ..Limits::default() },
    )
    .await
}

async fn send(service: &Service, method: &Method, path: &str, body: Option<(&str, Vec<u8>)>) -> Answer {
    let mut request = service.call(method.clone(), path);
    if let Some((content_type, body)) = body {
        request = request.body(content_type, body).header("x-content-sha256", "0".repeat(64));
    }
    request.await
}

/// The answer is a complete problem (RFC 9457), with a status that the document lists for the operation.
async fn problem(operation: &Operation, answer: Answer, statuses: &[u16], case: &str) -> Value {
    let case = format!("{} {}: {case}", operation.method, operation.path);
    let status = answer.status();
    let content_type = answer.header("content-type").to_owned();
    let id = answer.header("x-request-id").to_owned();
    let text = answer.text();
    assert!(statuses.contains(&status), "{case}: {status} instead of {statuses:?}: {text}");
    assert_eq!(content_type, "application/problem+json", "{case}: {text}");
    let problem: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(problem["status"], status, "{case}");
    assert_eq!(problem["request_id"], id, "{case}");
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

/// Only the router's Debug output shows all its paths.
#[apply(on_sqlite)]
async fn the_openapi_document_lists_exactly_the_routes(db: TestDatabase) {
    let service = start(&db).await;
    let (_, operations) = document(&service).await;
    let shown = format!("{:?}", atelier::app::app(service.state.clone()));
    let (_, paths) = shown.split_once("paths: {").expect("axum still shows a router's paths");
    let (paths, _) = paths.split_once('}').map_or((paths, ""), |_| split_map(paths));
    let routed: BTreeSet<&str> =
        paths.split('"').skip(1).step_by(2).filter(|path| path.starts_with('/')).collect();
    let described: BTreeSet<&str> = operations.iter().map(|operation| operation.path.as_str()).collect();
    let (versioned, others): (BTreeSet<_>, BTreeSet<_>) =
        routed.into_iter().filter(|path| !is_page(path)).partition(|path| path.starts_with("/v1/"));
    assert_eq!(others, described);
    assert_eq!(versioned.into_iter().map(|path| &path[3..]).collect::<BTreeSet<_>>(), described);

    // Each path takes exactly the documented methods.
    for path in described {
        let mut methods: BTreeSet<&str> =
            operations.iter().filter(|of| of.path == path).map(|of| of.method.as_str()).collect();
        if ["/articles/bulk", "/customers/bulk"].contains(&path) {
            // Also the path of an item called `bulk`.
            methods.extend(["GET", "PUT", "PATCH", "DELETE"]);
        }
        if methods.contains("GET") {
            methods.insert("HEAD");
        }
        let one = operations.iter().find(|of| of.path == path).unwrap();
        let answer = send(&service, &Method::TRACE, &one.with("x"), None).await;
        let allow = answer.header("allow").to_owned();
        assert_eq!(allow.split(',').map(str::trim).collect::<BTreeSet<_>>(), methods, "{path}");
        problem(one, answer, &[405], "TRACE").await;
    }
}

/// Pages, which are not in the document.
fn is_page(path: &str) -> bool {
    const PAGES: [&str; 15] = [
        "",
        "access",
        "evaluation",
        "merchandising",
        "operations",
        "password",
        "personas",
        "pictures",
        "shared",
        "side-by-side",
        "sign-in",
        "sign-out",
        "static",
        "studio",
        "widget",
    ];
    let first = path.trim_start_matches('/').split(['/', '.']).next().unwrap_or_default();
    PAGES.contains(&first)
}

/// Up to the brace that ends the map: parameters have braces, too, inside quotes.
fn split_map(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (place, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '}' if !quoted => return text.split_at(place),
            _ => {}
        }
    }
    (text, "")
}

#[apply(on_sqlite)]
async fn every_route_answers_errors_as_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (_, operations) = document(&service).await;
    for operation in &operations {
        let answer = send(&service, &Method::TRACE, &operation.with("x"), None).await;
        let told = problem(operation, answer, &[405], "a wrong method").await;
        assert_eq!(told["code"], "method-not-allowed");
        let Some(media_type) = operation.body() else { continue };
        let types = ["text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense"];
        let wrong_types = if operation.is_file() { &["multipart/form-data"][..] } else { &types };
        for wrong in wrong_types.iter().copied() {
            let answer =
                send(&service, &operation.method, &operation.with("1"), Some((wrong, b"{}".to_vec()))).await;
            let told = problem(operation, answer, &[415], wrong).await;
            assert!(told["detail"].as_str().unwrap().contains(media_type), "{told}");
        }
        if !operation.is_file() {
            let answer = send(&service, &operation.method, &operation.with("1"), None).await;
            problem(operation, answer, &[415], "no content type").await;
        }
        let long = (media_type, vec![b' '; (1 << 16) + 1]);
        let answer = send(&service, &operation.method, &operation.with("1"), Some(long)).await;
        problem(operation, answer, &[413], "too long").await;
        let long = format!("{{\"id\":\"{}\"}}", "x".repeat(10 << 20)).into_bytes();
        let answer = send(&service, &operation.method, &operation.with("1"), Some((media_type, long))).await;
        problem(operation, answer, &[413], "a text of 10 MB").await;
    }
}

#[apply(contract)]
async fn invalid_bodies_are_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (document, operations) = document(&service).await;
    let mut walked = 0;
    for operation in operations.iter().filter(|operation| operation.is_json()) {
        let post = async |body: &[u8], statuses: &[u16], case: &str| {
            let body = Some(("application/json; charset=utf-8", body.to_vec()));
            let answer = send(&service, &operation.method, &operation.with("1"), body).await;
            problem(operation, answer, statuses, case).await;
        };
        for broken in [
            "",
            "{",
            "{\"a\":}",
            "{\"a\":NaN}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1e999}",
            "{} {}",
            "\u{feff}{}",
        ] {
            post(broken.as_bytes(), &[400], broken).await;
        }
        post(b"{\"a\":\"\xff\"}", &[400], "no UTF-8").await;
        post(b"{\"a\":\"\xed\xa0\x80\"}", &[400], "a surrogate in UTF-8").await;
        post("[".repeat(60_000).as_bytes(), &[400], "deep lists").await;
        post("{\"a\":".repeat(10_000).as_bytes(), &[400], "deep objects").await;
        for wrong in ["null", "true", "7", "\"x\"", "{\"no such field\":1}", "{\"\\u0000\":\"\\u0000\"}"] {
            // A change of an article may have any field, and there is no article.
            let statuses: &[u16] = if operation.method == Method::PATCH { &[404, 422] } else { &[422] };
            post(wrong.as_bytes(), statuses, wrong).await;
        }
        if fields(&document, operation).iter().any(|(_, required)| *required) {
            post(b"{}", &[422], "nothing that is needed").await;
        }
        // Each field in turn with a value of every type, the others as in the example.
        for (name, _) in fields(&document, operation) {
            for wrong in [
                Value::Bool(true),
                1e300.into(),
                "\0".into(),
                "x".repeat(50_000).into(),
                Value::Array(vec![]),
            ] {
                let body = Map::from_iter([(name.clone(), wrong)]);
                let sent = serde_json::to_vec(&body).unwrap();
                let sent = Some(("application/json", sent));
                let answer = send(&service, &operation.method, &operation.with("1"), sent).await;
                // An optional field may accept one of them.
                assert!(answer.status() < 500, "{} {name}", operation.path);
                if answer.is_refused() {
                    problem(operation, answer, &[404, 409, 422], &name).await;
                }
            }
        }
        walked += 1;
    }
    assert!(walked >= 4, "{walked} operations take JSON");
}

/// The fields of an operation's body, and whether each is required.
fn fields(document: &Value, operation: &Operation) -> Vec<(String, bool)> {
    fn collect(document: &Value, schema: &Value) -> Vec<(String, bool)> {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return collect(document, &document["components"]["schemas"][name]);
        }
        let parts = ["allOf", "oneOf", "anyOf"].iter().filter_map(|name| schema[*name].as_array()).flatten();
        let mut found: Vec<_> = parts.flat_map(|part| collect(document, part)).collect();
        let own = ["properties", "patternProperties"].map(|name| schema[name].as_object());
        let own = own.into_iter().flatten().flatten();
        let required = |name: &String| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name.as_str()))
        };
        let names = own.map(|(name, _)| name.trim_matches(['^', '$']).to_owned());
        found.extend(names.map(|name| (name.clone(), required(&name))));
        found
    }
    collect(document, &operation.about["requestBody"]["content"]["application/json"]["schema"])
}

#[apply(contract)]
async fn invalid_paths_and_queries_are_problems(db: TestDatabase) {
    let service = start(&db).await;
    let (_, operations) = document(&service).await;
    for operation in &operations {
        let body = operation.body().map(|media_type| (media_type, b"{}".to_vec()));
        if operation.has_path_parameter() {
            let long = "x".repeat(5000);
            for (id, statuses) in [
                ("%00", &[404, 422][..]),
                ("a%00b", &[404, 422]),
                ("%ff", &[400]),
                ("%ed%a0%80", &[400]),
                (&long, &[404, 422]),
                ("%20", &[404, 422]),
                ("..%2F..%2Fetc%2Fpasswd", &[404, 422]),
                ("999999999999999999999999", &[404, 422]),
            ] {
                // A feed may have any number as its name.
                if !(operation.path == "/feeds/{name}" && id.starts_with('9')) {
                    let answer = send(&service, &operation.method, &operation.with(id), body.clone()).await;
                    problem(operation, answer, statuses, id).await;
                }
            }
            if operation.method == Method::GET || operation.method == Method::DELETE {
                let answer = send(&service, &operation.method, &operation.with("424242"), None).await;
                problem(operation, answer, &[404], "an unknown id").await;
            }
        }
        for parameter in operation.parameters("query") {
            let name = parameter["name"].as_str().unwrap();
            let types = parameter["schema"]["type"].to_string();
            let wrong: &[&str] = if types.contains("integer") {
                &["x", "-1", "0", "1.5", "99999999999", "%00", ""]
            } else if types.contains("boolean") {
                &["x", "%00", "2"]
            } else if name == "cursor" {
                &["%00", ""]
            } else {
                &[]
            };
            let least = &parameter["schema"]["minimum"];
            for value in wrong.iter().filter(|value| **value != "0" || *least != 0) {
                let path = format!("{}?{name}={value}", operation.with("1"));
                let answer = send(&service, &operation.method, &path, body.clone()).await;
                let told = problem(operation, answer, &[422], &path).await;
                assert_eq!(told["errors"][0]["parameter"], name, "{told}");
            }
            let path = format!("{}?no_such_parameter=1", operation.with("1"));
            let answer = send(&service, &operation.method, &path, body.clone()).await;
            problem(operation, answer, &[422], &path).await;
        }
    }
}

#[apply(on_sqlite)]
async fn the_docs_page_shows_every_operation(db: TestDatabase) {
    let service = start(&db).await;
    let (document, operations) = document(&service).await;
    let page = service.page("/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let html = page.text();
    for operation in &operations {
        let shown = format!("<code>{} {}</code>", operation.method, operation.path);
        assert_eq!(html.matches(&shown).count(), 1, "{shown}");
        let (_, rest) = html.split_once(&shown).unwrap();
        let (section, _) = rest.split_once("</section>").unwrap();
        let security = operation.about["security"].as_array().into_iter().flatten();
        let scopes = security.filter_map(|one| one["bearer"][0].as_str());
        let scopes: Vec<String> = scopes.map(|scope| format!("<code>{scope}</code>")).collect();
        let named = format!("Scope of its key: {}.", scopes.join(" or "));
        assert!(section.contains(&named) != scopes.is_empty(), "{shown}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("<section id=\"schema-{name}\">")), "{name}");
    }
    assert!(html.contains("<dt><code>bulk_bytes</code></dt><dd>65536</dd>"), "limits are published");
    assert_eq!(document["x-limits"]["bulk_bytes"], 65536);
    for link in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(html.contains(&format!("id=\"{link}\"")), "the link to {link} works");
    }
    let elsewhere = ["src=\"http", "src=\"//", "href=\"http", "href=\"//"];
    assert!(elsewhere.iter().all(|far| !html.contains(far)), "the page loads nothing from other hosts");
}

#[apply(on_sqlite)]
async fn trace_ids_are_propagated(db: TestDatabase) {
    let service = start(&db).await;
    let send = |value: &str| service.get("/livez").header("traceparent", value);
    let sound = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(send(sound).await.header("traceparent"), sound);
    assert_eq!(send("nonsense").await.header("traceparent"), "");
}
