//! The `OpenAPI` document as a contract: names that stay, examples that work, one prefix that stays. And HTTP as all routes
//! speak it.

use std::{collections::BTreeSet, io::Read, time::SystemTime};

use atelier::{
    people::{Opens, Scope},
    platform::db::Name,
};
use atelier_core::domain::Role;
use flate2::read::GzDecoder;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Demo, FRIEND, Guarded, Service, until};
use crate::harness::{Answer, Call, TestDatabase, apply, contract, on_sqlite};

/// Clients are generated with these names: add to them, and keep those that are there.
const IDS: [&str; 77] = [
    "activateRelease",
    "answerAgent",
    "cancelImport",
    "compareSuggestions",
    "completeLook",
    "completeOutfit",
    "completeOutfits",
    "deleteArticle",
    "deleteExperiment",
    "deleteFeed",
    "deleteLook",
    "deleteOutfit",
    "deleteRule",
    "eraseCustomer",
    "exportAcceptedOutfits",
    "exportCustomer",
    "fetchFeed",
    "findSimilarArticles",
    "getAcceptance",
    "getArticle",
    "getCoverage",
    "getCustomer",
    "getDocsPage",
    "getDocument",
    "getEventCounts",
    "getExperiment",
    "getExperimentCustomers",
    "getExperimentFigures",
    "getFeed",
    "getFeedbackCounts",
    "getHoldout",
    "getImport",
    "getLiveness",
    "getLook",
    "getMetrics",
    "getOpenApiDocument",
    "getOutfit",
    "getProblemsPage",
    "getReadiness",
    "getRouting",
    "getRule",
    "getRuleEffect",
    "importArticles",
    "importCustomers",
    "importEvents",
    "importOutfits",
    "listArticles",
    "listCustomerOutfits",
    "listCustomers",
    "listDocuments",
    "listExperiments",
    "listFeeds",
    "listImports",
    "listLooks",
    "listMethods",
    "listReleases",
    "listRules",
    "patchArticle",
    "patchCustomer",
    "patchExperiment",
    "patchLook",
    "patchOutfit",
    "patchRule",
    "putArticle",
    "putCustomer",
    "putExperiment",
    "putFeed",
    "putLook",
    "putRule",
    "recordEvents",
    "reportFeedback",
    "saveOutfit",
    "scoreOutfit",
    "sendFeed",
    "sendRelease",
    "setHoldout",
    "setRouting",
];

struct Operation<'a> {
    method: Method,
    path: &'a str,
    about: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, about)| {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            Operation { method, path, about }
        })
    });
    all.collect()
}

#[apply(on_sqlite)]
async fn operations_keep_their_unique_ids(db: TestDatabase) {
    let document = Service::start(&db).await.json("/openapi.json").await;
    let mut ids: Vec<_> =
        operations(&document).iter().map(|of| of.about["operationId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, IDS, "each once");
}

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
fn request(service: &Service, prefix: &str, document: &Value, operation: &Operation<'_>) -> Call {
    let (mut path, mut query, mut headers) = (operation.path.to_owned(), Vec::new(), Vec::new());
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
    let url = format!("{}{prefix}{path}", service.url);
    let mut url = reqwest::Url::parse(&url).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    let request = Call(service.http.request(operation.method.clone(), url));
    headers.into_iter().fold(request, |request, (name, value)| request.header(&name, value))
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
    fn find_undescribed(schemas: &Value, place: &str, shape: &Value, found: &mut Vec<String>) {
        for (name, field) in shape["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            if !is_described(schemas, field) {
                found.push(place.clone());
            }
            find_undescribed(schemas, &place, field, found);
        }
        for key in ["oneOf", "anyOf", "allOf"] {
            for part in shape[key].as_array().into_iter().flatten() {
                find_undescribed(schemas, place, part, found);
            }
        }
        if let Some(items) = shape.get("items") {
            find_undescribed(schemas, place, items, found);
        }
    }
    let document = service.json("/openapi.json").await;
    let (mut found, mut parameters) = (Vec::new(), 0);
    let schemas = &document["components"]["schemas"];
    for (name, shape) in schemas.as_object().unwrap() {
        find_undescribed(schemas, name, shape, &mut found);
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                parameters += 1;
                if !parameter["description"].is_string() {
                    found.push(format!("{method} {path}: {}", parameter["name"]));
                }
            }
        }
    }
    assert!(parameters > 50, "{parameters}");
    assert!(found.is_empty(), "these have no description:\n{}", found.join("\n"));
}

#[apply(contract)]
async fn every_example_is_accepted_by_the_demo(Demo(service): Demo) {
    let document = service.json("/openapi.json").await;
    let prefix = document["servers"][0]["url"].as_str().unwrap();
    let mut all = operations(&document);
    // Read first, delete last.
    let order = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    all.sort_by_key(|of| order.iter().position(|method| *method == of.method.as_str()));
    let (mut completion_id, mut bodies) = (Value::Null, 0);
    // What the others read is there.
    service.put("/feeds/shop", &json!({"url": "https://shop.invalid/feed.xml"})).await;
    service.put("/rules/new-season", &json!({"effect": "exclude", "articles": {"new": true}})).await;
    service
        .put("/experiments/autumn", &json!({"arms": [{"name": "a", "share": 1}, {"name": "b", "share": 1}]}))
        .await;
    service.put("/looks/autumn-office", &json!({"articles": ["a-00134", "a-01243"]})).await;
    service.post("/feeds/shop/fetch", "application/json", "").is(202).await;
    until!(service.json("/imports/1").await["ended_at"].is_string());
    for operation in &all {
        let case = format!("{} {}", operation.method, operation.path);
        let content = operation.about["requestBody"]["content"].as_object();
        let mut requests = Vec::new();
        for (media_type, body) in content.into_iter().flatten() {
            let mut body = example(&document, body).clone();
            if operation.path == "/releases" {
                // An archive is no text.
                continue;
            }
            assert!(!body.is_null(), "{case} has no example of {media_type}");
            if operation.path == "/feedback" {
                // The only thing that no document can know.
                body[0]["completion_id"] = completion_id.clone();
            }
            let request = request(&service, prefix, &document, operation);
            requests.push(request.body(media_type, as_text(&body)));
            bodies += 1;
        }
        if content.is_none() {
            requests.push(request(&service, prefix, &document, operation));
        }
        for request in requests {
            let answer = request.await;
            let status = answer.status();
            let text = answer.text();
            let has_ended = case == "DELETE /imports/{id}" && status == 409;
            let is_imported = case == "PATCH /outfits/{id}" && status == 409;
            let has_begun = case == "DELETE /experiments/{name}" && status == 422;
            assert!(answer.is_ok() || has_ended || is_imported || has_begun, "{case}: {status} {text}");
            if operation.path == "/complete" {
                completion_id = serde_json::from_str::<Value>(&text).unwrap()["completion_id"].take();
            }
            if operation.path == "/complete/batch" {
                assert!(!text.contains("\"status\""), "no item is a problem: {text}");
            }
        }
    }
    assert!(bodies >= 14, "{bodies} bodies have examples");
    let measured = service.get("/metrics").await.text();
    assert!(
        measured.contains("route=\"/articles/{id}\"") && !measured.contains("/v1"),
        "one name for a route"
    );
}

#[apply(on_sqlite)]
async fn both_prefixes_have_the_same_routes_and_guards(Guarded(service): Guarded) {
    let document = service.json("/openapi.json").await;
    let servers: BTreeSet<_> =
        document["servers"].as_array().unwrap().iter().map(|of| as_text(&of["url"])).collect();
    assert_eq!(servers, BTreeSet::from(["/".to_owned(), "/v1".to_owned()]));
    for operation in operations(&document) {
        let needs_key = !operation.about["security"].is_null();
        for prefix in ["", "/v1"] {
            let answer = request(&service, prefix, &document, &operation).await;
            let refused = answer.status() == 401;
            assert_eq!(refused, needs_key, "{} {prefix}{}", operation.method, operation.path);
            assert_ne!(answer.status(), 404, "{} {prefix}{}", operation.method, operation.path);
        }
    }
    assert_eq!(service.get("/v1/studio").await.status(), 404, "pages have no version");
    let told: Value = service.get("/v1/nothing").await.json();
    assert_eq!(told["code"], "not-found");
}

#[apply(on_sqlite)]
async fn documents_and_pictures_are_kept_until_they_change(service: Service) {
    let mut tags = BTreeSet::new();
    for path in [
        "/v1/openapi.json",
        "/docs",
        "/docs/problems",
        "/docs/api.md",
        "/docs/model-contract.md",
        "/llms.txt",
        "/pictures/coat.svg?colour=red",
        "/pictures/coat.svg?colour=blue",
        "/static/atelier.css",
    ] {
        let first = service.get(path).await;
        let varies = |answer: &Answer| -> BTreeSet<String> {
            answer.headers("vary").into_iter().map(str::to_owned).collect()
        };
        let (tag, vary) = (first.header("etag").to_owned(), varies(&first));
        assert!(!first.text().is_empty(), "{path}");
        assert!(tags.insert(tag.clone()), "{path}: {tag}");
        let ask = |expected: &str| service.get(path).header("if-none-match", expected);
        let second = ask(&tag).await;
        assert_eq!((second.status(), second.header("etag")), (304, tag.as_str()), "{path}");
        assert_eq!(varies(&second), vary, "{path}");
        assert!(!second.header("cache-control").contains("no-store"), "{path}");
        assert!(second.text().is_empty(), "{path}");
        assert_eq!(ask("\"other\"").await.status(), 200, "{path}");
    }
}

#[apply(on_sqlite)]
async fn options_are_the_methods_of_a_path(Guarded(service): Guarded) {
    for (path, methods) in
        [("/v1/customers/c-1", "GET,HEAD,PUT,PATCH,DELETE"), ("/complete", "POST"), ("/studio", "GET,HEAD")]
    {
        let answer = service.call(Method::OPTIONS, path).await;
        assert_eq!((answer.status(), answer.header("allow")), (204, methods), "{path}");
    }
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).await.unwrap();
    assert!(whole.starts_with("HTTP/1.1 204 "), "{whole}");
    assert!(whole.contains("\r\nallow: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"), "{whole}");
    let unknown = service.call(Method::OPTIONS, "/v1/nothing").await;
    assert_eq!(unknown.status(), 404);
}

/// As a browser does it: it asks first, then sends the request.
#[apply(on_sqlite)]
async fn pages_of_named_sites_may_call_with_a_key(service: Service) {
    let send = async |method: Method, origin: &str, key: Option<&str>| {
        let mut request = service.call(method.clone(), "/v1/customers?n=1");
        request = request.header("origin", origin);
        if method == Method::OPTIONS {
            request = request.header("access-control-request-method", "GET");
            request = request.header("access-control-request-headers", "authorization");
        }
        if let Some(key) = key {
            request = request.key(key);
        }
        request.await
    };
    let asked = send(Method::OPTIONS, FRIEND, None).await;
    assert_eq!((asked.status(), asked.header("access-control-allow-origin")), (204, FRIEND));
    assert_eq!(asked.header("access-control-allow-methods"), "GET, HEAD, POST, PUT, PATCH, DELETE");
    assert!(asked.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(asked.header("access-control-allow-credentials"), "", "no session");

    let (label, now) = (Name::new("Page").unwrap(), SystemTime::now().into());
    let (key, _) = service
        .state
        .access()
        .issue_key(&label, &Opens::Scopes(vec![Scope::Catalogue]), None, now)
        .await
        .unwrap();
    let key = key.as_str();
    let answer = send(Method::GET, FRIEND, Some(key)).await;
    assert_eq!((answer.status(), answer.header("access-control-allow-origin")), (200, FRIEND));
    assert_eq!(answer.header("vary"), "origin");
    assert!(answer.header("access-control-expose-headers").contains("etag"));
    let refused = send(Method::GET, FRIEND, None).await;
    assert_eq!((refused.status(), refused.header("access-control-allow-origin")), (401, FRIEND));

    for other in ["https://shop.example.org", "http://shop.example", "null"] {
        for method in [Method::OPTIONS, Method::GET] {
            let answer = send(method, other, Some(key)).await;
            assert!(
                answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")),
                "{other}"
            );
            assert_eq!(answer.header("vary"), "origin", "a cache keeps it apart from the answer to {FRIEND}");
        }
    }
    let plain = service.get("/v1/customers?n=1").await;
    assert_eq!(plain.header("vary"), "origin");
}

#[apply(on_sqlite)]
async fn answers_are_compressed_for_callers_that_accept_it(Demo(service): Demo) {
    let fetch = async |request: Call, accepted: &str| {
        let answer = request.header("accept-encoding", accepted).await;
        let encoding = answer.header("content-encoding").to_owned();
        assert!(answer.is_ok(), "{}", answer.status());
        let varies = answer.headers("vary").contains(&"accept-encoding");
        assert!(encoding.is_empty() || varies);
        let sent: Vec<u8> = answer.body;
        let mut read = Vec::new();
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
    for refused in ["identity;q=0", "*;q=0", "identity;q=0, gzip;q=0, br;q=0"] {
        let (encoding, length, plain) = fetch(service.get("/openapi.json"), refused).await;
        assert_eq!((encoding.as_str(), length), ("", plain.len()), "{refused}: rather plain than not at all");
    }
    let (encoding, ..) = fetch(service.get("/openapi.json"), "*;q=0, gzip;q=0.001").await;
    assert_eq!(encoding, "gzip");
    let question = json!({"outfit": ["a-00134", null, "a-00568"], "k": 50});
    let complete = || service.send("/complete", &question);
    assert_eq!(fetch(complete(), "identity").await.0, "");
    let (encoding, _, read) = fetch(complete(), "gzip").await;
    let answer: Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(
        (encoding.as_str(), answer["blanks"][0]["suggestions"].as_array().unwrap().len()),
        ("gzip", 50)
    );

    // What a caller sends back in If-Match stands for the very bytes.
    let note = "x".repeat(5000);
    service.put("/articles/a-note", &json!({"type": "coat", "note": note})).await;
    let (encoding, ..) = fetch(service.get("/articles/a-note"), "gzip, br").await;
    assert_eq!(encoding, "");
    let change = service.put("/articles/a-note", json!({"type": "coat"}));
    let (encoding, ..) = fetch(change, "identity;q=0").await;
    assert_eq!(encoding, "", "what is stored is not answered 406");

    // The token of a form is another text each time, and stays good.
    let stylist = service.signed_in(Role::Stylist).await;
    let token = async || {
        let page = stylist.page("/password").await;
        page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let tokens = [token().await, token().await];
    assert_ne!(tokens[0], tokens[1]);
    stylist.post_bare("/sign-out", &[("csrf", &tokens[0])]).is(303).await;
}
