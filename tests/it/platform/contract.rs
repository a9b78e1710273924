//! The `OpenAPI` document as a contract: examples that work. And HTTP as all routes speak it.

use std::{collections::BTreeSet, io::Read};

use atelier::people::Scope;
use atelier_core::domain::Role;
use flate2::read::GzDecoder;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{Answer, Call, Demo, FRIEND, Guarded, Html, Service, apply, contract, on_sqlite, until},
    platform::routes::{Operation, read_document},
};

/// The example of a parameter, or of what a body holds.
fn example<'a>(document: &'a Value, place: &'a Value) -> &'a Value {
    let mut schema = &place["schema"];
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        schema = &document["components"]["schemas"][name];
    }
    let examples = [&place["example"], &schema["example"], &schema["examples"][0]];
    examples.into_iter().find(|example| !example.is_null()).unwrap_or(&Value::Null)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The request of an operation with all examples of its parameters.
fn request(service: &Service, document: &Value, operation: &Operation) -> Call {
    let (mut path, mut query, mut headers) = (operation.path.clone(), Vec::new(), Vec::new());
    for parameter in operation.about["parameters"].as_array().into_iter().flatten() {
        let (name, example) = (parameter["name"].as_str().unwrap(), example(document, parameter));
        match parameter["in"].as_str().unwrap() {
            "path" => {
                assert!(!example.is_null(), "{path} has no example of {name}");
                path = path.replace(&format!("{{{name}}}"), &as_text(example));
            }
            "query" => match example {
                Value::Array(several) => query.extend(several.iter().map(|one| (name, as_text(one)))),
                Value::Null => {}
                one => query.push((name, as_text(one))),
            },
            _ => headers.extend((!example.is_null()).then(|| (name, as_text(example)))),
        }
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let request = service.call(operation.method.clone(), format!("/v1{path}?{query}"));
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// By itself, or by its type.
#[apply(on_sqlite)]
async fn every_parameter_and_field_is_described(service: Service) {
    fn is_described(schemas: &Value, shape: &Value) -> bool {
        let name = shape["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/"));
        let parts =
            ["oneOf", "anyOf", "allOf"].iter().flat_map(|key| shape[*key].as_array().into_iter().flatten());
        let mut parts = parts.chain(shape.get("items")).chain(name.map(|name| &schemas[name]));
        shape["description"].is_string() || parts.any(|part| is_described(schemas, part))
    }
    fn find_undescribed(schemas: &Value, place: &str, value: &Value, found: &mut Vec<String>) {
        for (name, field) in value["properties"].as_object().into_iter().flatten() {
            found.extend((!is_described(schemas, field)).then(|| format!("{place}.{name}")));
        }
        for parameter in value["parameters"].as_array().into_iter().flatten() {
            let is_missing = !parameter["description"].is_string();
            found.extend(is_missing.then(|| format!("{place}: {}", parameter["name"])));
        }
        for (name, part) in value.as_object().into_iter().flatten() {
            find_undescribed(schemas, &format!("{place}.{name}"), part, found);
        }
        for part in value.as_array().into_iter().flatten() {
            find_undescribed(schemas, place, part, found);
        }
    }
    let document = service.json("/openapi.json").await;
    let mut found = Vec::new();
    find_undescribed(&document["components"]["schemas"], "", &document, &mut found);
    assert!(found.is_empty(), "these have no description:\n{}", found.join("\n"));
}

/// The operations that add to the audit log when they are sent their examples.
const CHANGES: &str = "activateRelease deleteArticle deleteFeed deleteLook deleteOutfit deleteRule eraseCustomer importArticles \
                       importCustomers importOutfits patchArticle patchCustomer patchExperiment patchFeed patchLook patchRule putArticle \
                       putCustomer putExperiment putFeed putLook putRule saveOutfit setHoldout setRouting";

#[apply(contract)]
async fn every_example_is_accepted_by_the_demo(Demo(service): Demo) {
    let (document, mut all) = read_document(&service).await;
    // Read first, delete last.
    let order = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    all.sort_by_key(|of| order.iter().position(|method| *method == of.method.as_str()));
    let (mut completion_id, mut changes) = (Value::Null, BTreeSet::new());
    // What the others read is there.
    service.put("/feeds/shop", json!({"url": "https://shop.invalid/feed.xml"})).await;
    service.put("/rules/new-season", json!({"effect": "exclude", "articles": {"new": true}})).await;
    let arms = json!([{"name": "a", "share": 1}, {"name": "b", "share": 1}]);
    service.put("/experiments/autumn", json!({"arms": arms})).await;
    service.put("/looks/autumn-office", json!({"articles": ["a-00134", "a-01243"]})).await;
    service.post("/feeds/shop/fetch", "application/json", "").is(202).await;
    until!(service.json("/imports/1").await["ended_at"].is_string());
    let mut entries = service.log(10_000).await.len();
    for operation in &all {
        let content = operation.about["requestBody"]["content"].as_object();
        let mut requests = Vec::new();
        for (media_type, body) in content.into_iter().flatten() {
            let mut body = example(&document, body).clone();
            if operation.path == "/releases" {
                // An archive is no text.
                continue;
            }
            assert!(!body.is_null(), "{operation} has no example of {media_type}");
            if operation.path == "/feedback" {
                // The only thing that no document can know.
                body[0]["completion_id"] = completion_id.clone();
            }
            requests.push(request(&service, &document, operation).body(media_type, as_text(&body)));
        }
        if content.is_none() {
            requests.push(request(&service, &document, operation));
        }
        for request in requests {
            let answer = request.await;
            // An import that has failed, an outfit that was imported, an experiment that has begun.
            let may_be_refused = match &*operation.id {
                "cancelImport" | "undoImport" | "patchOutfit" => 409,
                "deleteExperiment" => 422,
                _ => 200,
            };
            let is_fine = answer.is_ok() || answer.status == may_be_refused;
            assert!(is_fine, "{operation}: {} {}", answer.status, answer.text());
            if operation.path == "/complete" {
                completion_id = answer.json()["completion_id"].take();
            }
            if operation.path == "/complete/batch" {
                assert!(!answer.text().contains("\"status\""), "no item is a problem: {}", answer.text());
            }
        }
        // What a feed brings is written in the background.
        let is_ended = |import: &Value| import["ended_at"].is_string();
        until!(service.json("/imports").await["imports"].as_array().unwrap().iter().all(is_ended));
        let before = std::mem::replace(&mut entries, service.log(10_000).await.len());
        if entries > before && !["fetchFeed", "sendFeed"].contains(&&*operation.id) {
            changes.insert(&*operation.id);
        }
    }
    assert_eq!(changes.into_iter().collect::<Vec<_>>().join(" "), CHANGES);
    let measured = service.get("/metrics").await.text();
    assert!(
        measured.contains("route=\"/articles/{id}\"") && !measured.contains("/v1"),
        "one name for a route"
    );
}

#[apply(on_sqlite)]
async fn documents_and_pictures_are_kept_until_they_change(service: Service) {
    let mut tags = BTreeSet::new();
    let paths = "/v1/openapi.json /docs /docs/problems /docs/api.md /llms.txt /pictures/coat.svg?colour=red \
                 /pictures/coat.svg?colour=blue /static/atelier.css";
    for path in paths.split_whitespace() {
        let first = service.get(path).await;
        let tag = first.header("etag");
        assert!(!first.body.is_empty() && tags.insert(tag.to_owned()), "{path}: {tag}");
        let second = service.get(path).header("if-none-match", tag).is(304).await;
        assert!(second.body.is_empty() && second.header("etag") == tag, "{path}");
        let varies = |answer: &Answer| answer.headers("vary").into_iter().map(str::to_owned).collect();
        let [before, after]: [BTreeSet<String>; 2] = [&first, &second].map(varies);
        assert_eq!(before, after, "{path}");
        assert!(!second.header("cache-control").contains("no-store"), "{path}");
        service.get(path).header("if-none-match", "\"other\"").is(200).await;
    }
}

#[apply(on_sqlite)]
async fn options_are_the_methods_of_a_path(Guarded(service): Guarded) {
    for (path, methods) in
        [("/v1/customers/c-1", "GET,HEAD,DELETE,PUT,PATCH"), ("/complete", "POST"), ("/studio", "GET,HEAD")]
    {
        let answer = service.call(Method::OPTIONS, path).await;
        assert_eq!((answer.status(), answer.header("allow")), (204, methods), "{path}");
    }
    let whole = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let whole = service.exchange(whole).await;
    assert!(whole.starts_with("HTTP/1.1 204 "), "{whole}");
    assert!(whole.contains("\r\nallow: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"), "{whole}");
    service.call(Method::OPTIONS, "/v1/nothing").is(404).await;
}

/// What a browser asks before it sends a page's request with a key.
pub fn preflight(service: &Service, path: &str, origin: &str) -> Call {
    let ask = service.call(Method::OPTIONS, path).header("origin", origin);
    ask.header("access-control-request-method", "GET")
        .header("access-control-request-headers", "authorization")
}

/// As a browser does it: it asks first, then sends the request.
#[apply(on_sqlite)]
async fn pages_of_named_sites_may_call_with_a_key(service: Service) {
    let get = |origin: &str| service.get("/v1/customers?n=1").header("origin", origin);
    let ask = |origin: &str| preflight(&service, "/v1/customers?n=1", origin);
    let asked = ask(FRIEND).is(204).await;
    let allows = |answer: &Answer, what: &str| answer.header(&format!("access-control-{what}")).to_owned();
    assert_eq!(allows(&asked, "allow-origin"), FRIEND);
    assert_eq!(allows(&asked, "allow-methods"), "GET, HEAD, POST, PUT, PATCH, DELETE");
    assert!(allows(&asked, "allow-headers").contains("authorization"));
    assert_eq!(allows(&asked, "allow-credentials"), "", "no session");

    let key = service.issue(&[Scope::Catalogue]).await;
    let answer = get(FRIEND).key(&key).is(200).await;
    assert_eq!((allows(&answer, "allow-origin").as_str(), answer.header("vary")), (FRIEND, "origin"));
    assert!(allows(&answer, "expose-headers").contains("etag"));
    let refused = get(FRIEND).is(401).await;
    assert_eq!(allows(&refused, "allow-origin"), FRIEND);

    for other in ["https://shop.example.org", "http://shop.example", "null"] {
        for call in [ask(other), get(other)] {
            let answer = call.key(&key).await;
            let mut names = answer.headers.keys().map(axum::http::HeaderName::as_str);
            assert!(names.all(|name| !name.starts_with("access-control")), "{other}");
            assert_eq!(answer.header("vary"), "origin", "a cache keeps it apart from the answer to {FRIEND}");
        }
    }
    assert_eq!(service.get("/v1/customers?n=1").await.header("vary"), "origin");
}

#[apply(on_sqlite)]
async fn answers_are_compressed_for_callers_that_accept_it(Demo(service): Demo) {
    let fetch = async |request: Call, accepted: &str| {
        let answer = request.header("accept-encoding", accepted).await;
        let encoding = answer.header("content-encoding").to_owned();
        assert!(answer.is_ok(), "{}", answer.status());
        let varies = answer.headers("vary").contains(&"accept-encoding");
        assert!(encoding.is_empty() || varies);
        let (sent, mut read) = (answer.body, Vec::new());
        match encoding.as_str() {
            "gzip" => GzDecoder::new(&*sent).read_to_end(&mut read).unwrap(),
            _ => Read::read_to_end(&mut sent.as_slice(), &mut read).unwrap(),
        };
        (encoding, sent.len(), read)
    };
    for path in ["/openapi.json", "/docs/api.md", "/articles?n=100", "/sign-in", "/static/atelier.css"] {
        let (encoding, length, plain) = fetch(service.get(path), "identity").await;
        assert!(encoding.is_empty() && length > 1024, "{path}: {encoding} {length}");
        let (encoding, length, read) = fetch(service.get(path), "gzip, br").await;
        assert_eq!((encoding.as_str(), &read), ("gzip", &plain), "{path}");
        assert!(length < plain.len() * 2 / 3, "{path}: {length} of {}", plain.len());
    }
    let question = json!({"outfit": ["a-00134", null, "a-00568"], "k": 50});
    assert_eq!(fetch(service.send("/complete", question), "gzip").await.0, "gzip");
    // A stream, which is read past its end.
    let (encoding, _, export) = fetch(service.get("/customers/c-014871/export"), "gzip").await;
    assert!(encoding == "gzip" && serde_json::from_slice::<Value>(&export).is_ok());

    // What a caller sends back in If-Match stands for the very bytes.
    service.put("/articles/a-note", json!({"type": "coat", "note": "x".repeat(5000)})).await;
    assert_eq!(fetch(service.get("/articles/a-note"), "gzip, br").await.0, "");
    // What is stored is not answered 406.
    for (accepted, sent) in [
        ("identity;q=0", ""),
        ("*;q=0", ""),
        ("gzip;q=0", ""),
        ("identity;q=0.001", ""),
        ("gzip, Identity ; Q=0.000,*;q=0.", "gzip"),
    ] {
        let change = service.put("/articles/a-note", json!({"type": "coat"}));
        assert_eq!(fetch(change, accepted).await.0, "", "{accepted}");
        assert_eq!(fetch(service.get("/llms.txt"), accepted).await.0, sent, "{accepted}");
    }

    // The token of a form is another text each time, and stays good.
    let stylist = service.signed_in(Role::Stylist).await;
    let token = async || stylist.page("/password").await.between("name=\"csrf\" value=\"", "\"");
    let tokens = [token().await, token().await];
    assert_ne!(tokens[0], tokens[1]);
    stylist.post_bare("/sign-out", &[("csrf", &tokens[0])]).is(303).await;
}
