//! API keys: what they open, and what the audit log records.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use atelier::{
    config::Limits,
    people::{ApiKey, Opens, Scope},
    platform::db::{Actor, Name},
};
use atelier_core::domain::{CustomerId, Role, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Demo, Guarded, Service, until};
use crate::harness::{Answer, Call, TestDatabase, apply, on_sqlite};

fn now() -> Timestamp {
    SystemTime::now().into()
}

async fn issue(service: &Service, scopes: &[Scope]) -> (String, ApiKey) {
    let label = Name::new("Shop").unwrap();
    let (key, kept) =
        service.state.access().issue_key(&label, &Opens::Scopes(scopes.to_vec()), None, now()).await.unwrap();
    (key.as_str().to_owned(), kept)
}

fn send(service: &Service, method: Method, path: &str, key: &str) -> Call {
    service.call(method, path).key(key).json(json!({}))
}

fn problem(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), "application/problem+json");
    answer.json()
}

#[apply(on_sqlite)]
async fn without_a_key_only_health_and_docs_answer(Guarded(service): Guarded) {
    let document = service.json("/openapi.json").await;
    let mut open = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let by = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let path_of_one = path.replace("{id}", "1").replace("{name}", "demo");
            let answer = service.call(by, path_of_one).await;
            if operation["security"].is_null() {
                assert_ne!(answer.status(), 401, "{method} {path}");
                open.push(path.as_str());
                continue;
            }
            assert_eq!(answer.status(), 401, "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"atelier\"");
            let security = operation["security"].as_array().unwrap();
            let scopes: Vec<&str> = security.iter().filter_map(|one| one["bearer"][0].as_str()).collect();
            let scope = scopes.join(" or ");
            let problem = problem(&answer);
            assert_eq!(problem["code"], "key");
            let said = format!(
                "an API key with the scope {scope} is required: send it as `Authorization: Bearer atl_"
            );
            assert!(problem["detail"].as_str().unwrap().starts_with(&said), "{method} {path}: {problem}");
        }
    }
    let expected =
        ["/docs", "/docs/problems", "/docs/{name}", "/livez", "/llms.txt", "/openapi.json", "/readyz"];
    assert_eq!(open, expected);
    // Pages redirect to the sign-in; unknown paths stay unknown.
    service.page("/sign-in").is(200).await;
    service.get("/nothing").is(404).await;
    let head = service.call(Method::HEAD, "/methods").await;
    assert_eq!(head.status(), 401, "a HEAD needs the scope of a GET");
}

/// The operations that take a key: their ids, methods and paths.
async fn guarded_operations(service: &Service) -> Vec<(String, Method, String)> {
    let document = service.json("/openapi.json").await;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let path = path.replace("{id}", "1").replace("{name}", "none");
            if !operation["security"].is_null() {
                operations.push((operation["operationId"].as_str().unwrap().to_owned(), method, path));
            }
        }
    }
    operations
}

/// What each scope opens, by the operation's id. A new operation must be added here.
const OPENS: [(Scope, &[&str]); 7] = [
    (
        Scope::Complete,
        &[
            "answerAgent",
            "compareSuggestions",
            "completeLook",
            "completeOutfit",
            "completeOutfits",
            "findSimilarArticles",
            "getRouting",
            "listMethods",
            "listReleases",
            "scoreOutfit",
        ],
    ),
    (
        Scope::Catalogue,
        &[
            "answerAgent",
            "cancelImport",
            "deleteArticle",
            "deleteOutfit",
            "eraseCustomer",
            "exportCustomer",
            "getArticle",
            "getCoverage",
            "getCustomer",
            "getImport",
            "getOutfit",
            "importArticles",
            "importCustomers",
            "importOutfits",
            "listArticles",
            "listCustomerOutfits",
            "listCustomers",
            "listImports",
            "patchArticle",
            "patchCustomer",
            "patchOutfit",
            "putArticle",
            "putCustomer",
            "saveOutfit",
            "sendFeed",
        ],
    ),
    (
        Scope::Feedback,
        &[
            "exportAcceptedOutfits",
            "getAcceptance",
            "getEventCounts",
            "getExperimentCustomers",
            "getExperimentFigures",
            "getFeedbackCounts",
            "reportFeedback",
        ],
    ),
    (Scope::Events, &["importEvents", "recordEvents"]),
    (
        Scope::Rules,
        &[
            "deleteLook",
            "deleteRule",
            "getHoldout",
            "getLook",
            "getRule",
            "getRuleEffect",
            "listLooks",
            "listRules",
            "patchLook",
            "patchRule",
            "putLook",
            "putRule",
            "setHoldout",
        ],
    ),
    (
        Scope::Admin,
        &[
            "activateRelease",
            "deleteExperiment",
            "deleteFeed",
            "fetchFeed",
            "getExperiment",
            "getFeed",
            "listExperiments",
            "listFeeds",
            "patchExperiment",
            "putExperiment",
            "putFeed",
            "sendRelease",
            "setRouting",
        ],
    ),
    (Scope::Metrics, &["getMetrics"]),
];

#[apply(on_sqlite)]
async fn a_key_opens_what_its_scopes_name(Guarded(service): Guarded) {
    let operations = guarded_operations(&service).await;
    let listed: BTreeSet<&str> = OPENS.iter().flat_map(|(_, opened)| *opened).copied().collect();
    assert_eq!(operations.iter().map(|(id, ..)| id.as_str()).collect::<BTreeSet<_>>(), listed, "see OPENS");
    for held in Scope::ALL {
        let (key, _) = issue(&service, &[held]).await;
        for (id, method, path) in &operations {
            let answer = send(&service, method.clone(), path, &key).await;
            let status = answer.status();
            let opening =
                OPENS.iter().filter(|(_, opened)| opened.contains(&id.as_str())).map(|(scope, _)| *scope);
            let opening: Vec<Scope> = opening.collect();
            if opening.contains(&held) {
                assert!(![401, 403, 405].contains(&status), "{held}: {id}: {status}");
                continue;
            }
            assert_eq!(status, 403, "{held}: {id}");
            let [scopes, names] = [" ", " or "]
                .map(|between| opening.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(between));
            let challenge =
                format!("Bearer realm=\"atelier\", error=\"insufficient_scope\", scope=\"{scopes}\"");
            assert_eq!(answer.header("www-authenticate"), challenge);
            let problem = problem(&answer);
            let said = format!(
                "an API key with the scope {names} is required, this one has {held}; ask an admin for another"
            );
            assert_eq!((&problem["code"], &problem["detail"]), (&json!("scope"), &json!(said)));
        }
    }
    let (both, _) = issue(&service, &[Scope::Catalogue, Scope::Metrics]).await;
    let as_header = service.get("/articles").header("x-api-key", &both);
    assert_eq!(as_header.await.json()["items"], json!([]));
    let head = service.call(Method::HEAD, "/metrics").header("authorization", format!("bearer {both}"));
    assert_eq!(head.await.status(), 200, "the scheme is case-insensitive");
}

#[apply(on_sqlite)]
async fn a_wrong_key_is_refused_wherever_it_is_sent(service: Service) {
    assert_eq!(service.get("/articles").await.status(), 200, "no key is needed here");
    let never_given = format!("atl_{}", "0".repeat(64));
    for wrong in ["", "x", "atl_", &never_given, &"x".repeat(9000)] {
        let answer = send(&service, Method::GET, "/articles", wrong).await;
        assert_eq!(answer.status(), 401, "{wrong}");
        let challenge = answer.header("www-authenticate").to_owned();
        assert_eq!(challenge, "Bearer realm=\"atelier\", error=\"invalid_token\"");
        let text = answer.text();
        assert!(text.contains("the API key is unknown, has expired or was revoked"), "{text}");
        assert!(wrong.is_empty() || wrong == "x" || !text.contains(wrong), "the key is not repeated: {text}");
        let request = service.get("/articles").header("x-api-key", wrong);
        assert_eq!(request.await.status(), 401, "{wrong}");
    }
    service.get("/articles").header("x-api-key", b"\xe4").is(401).await;
    // A proxy's credentials are not a key.
    service.get("/articles").header("authorization", "Basic eDp5").is(200).await;
    assert_eq!(send(&service, Method::GET, "/livez", "x").await.status(), 200, "no key is requested");
    let browser = service.get("/articles").header("accept", "text/html");
    let page = browser.header("x-api-key", "x").await;
    assert!(page.text().contains("<h1>API key required</h1>"));
}

#[apply(on_sqlite)]
async fn a_key_ends_when_it_expires_or_is_revoked(Guarded(service): Guarded) {
    let access = service.state.access();
    let (label, hour) = (Name::new("Shop").unwrap(), Duration::from_hours(1));
    let (short, kept) =
        access.issue_key(&label, &Opens::Scopes(Scope::ALL.to_vec()), Some(hour), now()).await.unwrap();
    assert!(access.key(&short, now()).await.unwrap().is_some());
    assert!(access.key(&short, now() + hour).await.unwrap().is_none());
    send(&service, Method::GET, "/articles", short.as_str()).is(200).await;
    service.store.api_keys().revoke(kept.id, now()).await.unwrap();
    send(&service, Method::GET, "/articles", short.as_str()).is(401).await;
}

#[apply(on_sqlite)]
async fn changes_are_audited_with_the_key(Demo(service): Demo) {
    let (key, kept) = issue(&service, &[Scope::Catalogue, Scope::Admin]).await;
    let send = async |method: Method, path: &str, body: Value| {
        let request = service.call(method, path).json(&body);
        let answer = request.header("x-api-key", &key).await;
        assert!(answer.is_ok(), "{path}: {}", answer.text());
    };
    let coat = json!({"type": "coat"});
    send(Method::PUT, "/articles/new", coat.clone()).await;
    send(Method::PUT, "/articles/new", coat).await;
    send(Method::DELETE, "/articles/new", json!({})).await;
    let mara = |age: u32| json!({"features": {"age": age}});
    send(Method::PUT, "/customers/mara", mara(34)).await;
    send(Method::PUT, "/customers/mara", mara(35)).await;
    let outfit = json!({"customer": "mara", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"]});
    send(Method::POST, "/outfits", outfit.clone()).await;
    send(Method::POST, "/outfits", outfit).await;
    send(Method::PUT, "/routing", json!({"default_method": "np"})).await;
    // Callers on the same machine need no key.
    let lines = "{\"id\": \"noor\", \"features\": {}}\n";
    service.post("/customers/bulk", "application/x-ndjson", lines).is(200).await;
    service.post("/customers/bulk", "application/x-ndjson", lines).is(200).await;

    let log = service.log(20).await;
    let by_key = Actor::Key(kept.id);
    let mara = CustomerId::new("mara").unwrap();
    let kept_outfit = service.store.outfits().for_customer(&mara, 0, 1).await.unwrap()[0].seq.to_string();
    let said: Vec<_> =
        log.iter().rev().map(|one| (one.actor, one.action.as_str(), one.subject.as_str())).collect();
    assert_eq!(
        said,
        [
            (by_key, "article.put", "new"),
            (by_key, "article.delete", "new"),
            (by_key, "customer.put", "mara"),
            (by_key, "customer.put", "mara"),
            (by_key, "outfit.save", kept_outfit.as_str()),
            (by_key, "routing.set", "routing"),
            (Actor::Service, "customers.bulk", "customers"),
        ]
    );
    assert_eq!(Value::from(log[0].details.clone()), json!({"added": 1, "changed": 0, "bad": 0}));
    let routed = json!({"before": "the release's default", "after": "np"});
    assert_eq!(Value::from(log[1].details.clone()), routed);
    assert_eq!((&log[4].details["new"], &log[3].details["new"]), (&json!(true), &json!(false)));
    assert_eq!(log[2].customer, Some(mara));

    send(Method::DELETE, "/customers/mara", json!({})).await;
    let log = service.log(5).await;
    assert_eq!((log[0].action.as_str(), log[0].actor, &log[0].customer), ("customer.erase", by_key, &None));
    let left = format!("{log:?}");
    assert!(!left.contains("mara"), "{left}");
}

#[apply(on_sqlite)]
async fn use_is_recorded_once_a_minute(Guarded(service): Guarded) {
    let access = service.state.access();
    let (key, kept) = access
        .issue_key(&Name::new("Shop").unwrap(), &Opens::Scopes(Vec::new()), None, Timestamp::from_millis(0))
        .await
        .unwrap();
    assert_eq!(kept.last_used_at, None);
    // Had 2,000 or 60,999 been stored, 61,000 and 121,000 would not be.
    for (millis, stored) in [
        (1_000, 1_000),
        (2_000, 1_000),
        (60_999, 1_000),
        (61_000, 61_000),
        (90_000, 61_000),
        (121_000, 121_000),
    ] {
        access.key(&key, Timestamp::from_millis(millis)).await.unwrap().unwrap();
        until!({
            let last = service.store.api_keys().list().await.unwrap()[0].last_used_at;
            last == Some(Timestamp::from_millis(stored))
        });
    }
}

#[apply(on_sqlite)]
async fn a_key_over_its_rate_limit_is_refused(db: TestDatabase) {
    let limits = Limits { key_rate: 2, ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    let (key, _) = issue(&service, &[Scope::Catalogue]).await;
    let (other, _) = issue(&service, &[Scope::Catalogue]).await;
    let mut refused = None;
    for _ in 0..50 {
        let answer = send(&service, Method::GET, "/customers", &key).await;
        if answer.status() == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("fifty requests come faster than two a second");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert_eq!(wait, 1, "half a second, rounded up");
    let problem = problem(&refused);
    assert_eq!(problem["code"], "too-fast");
    assert_eq!(problem["detail"], "this API key sent more than 2 requests in a second");
    assert_eq!(
        send(&service, Method::GET, "/customers", &other).await.status(),
        200,
        "another key has its own limit"
    );
    service.get("/livez").is(200).await;
    tokio::time::sleep(Duration::from_secs(wait)).await;
    send(&service, Method::GET, "/customers", &key).is(200).await;
}

#[apply(on_sqlite)]
async fn every_operation_counts_for_its_keys_rate(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { key_rate: 1, ..Limits::default() }).await;
    let (key, _) = issue(&service, &Scope::ALL).await;
    for (id, method, path) in guarded_operations(&service).await {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(send(&service, method.clone(), &path, &key).await.status());
        }
        assert!(statuses.contains(&429), "{id}: {statuses:?}");
    }
}

#[apply(on_sqlite)]
async fn a_key_used_before_works_without_the_database(Guarded(service): Guarded) {
    let (used, _) = issue(&service, &[Scope::Metrics]).await;
    let (unused, _) = issue(&service, &[Scope::Metrics]).await;
    send(&service, Method::GET, "/metrics", &used).is(200).await;
    service.store.close().await;
    send(&service, Method::GET, "/metrics", &used).is(200).await;
    send(&service, Method::GET, "/metrics", &unused).is(503).await;
}

#[apply(on_sqlite)]
async fn a_session_opens_no_api_and_a_key_no_page(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    admin.get("/access").is(200).await;
    admin.get("/articles").is(401).await;
    let (key, _) = issue(&service, &Scope::ALL).await;
    send(&service, Method::GET, "/articles", &key).is(200).await;
    for header in ["x-api-key", "cookie"] {
        let value = if header == "cookie" { format!("atelier_session={key}") } else { key.clone() };
        let page = service.get("/access").header(header, value);
        assert_eq!(page.await.status(), 303, "{header}");
    }
}
