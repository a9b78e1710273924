//! API keys: what they open, and what the audit log records.

use std::{collections::BTreeSet, time::Duration};

use atelier::{
    config::Limits,
    people::{Opens, Scope},
    platform::db::{Actor, Name},
};
use atelier_core::domain::{CustomerId, Role, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        Demo, Guarded, Html, Service, TestDatabase, apply, contract, json::text, now, on_sqlite, until,
        until_too_fast,
    },
    platform::routes::read_document,
};

/// What is open to everyone, and what each scope opens. A new operation must be added here. Clients are generated with these
/// names: keep those that are there.
const OPEN: &str =
    "getDocsPage getProblemsPage getDocument getLiveness listDocuments getOpenApiDocument getReadiness";
const OPENS: [(Scope, &str); 7] = [
    (
        Scope::Complete,
        "answerAgent compareSuggestions completeLook completeOutfit completeOutfits findSimilarArticles getRouting listMethods \
         listReleases scoreOutfit",
    ),
    (
        Scope::Catalogue,
        "answerAgent cancelImport deleteArticle deleteOutfit eraseCustomer exportCustomer getArticle getCoverage getCustomer \
         getImport getOutfit importArticles importCustomers importOutfits listArticles listCustomerOutfits listCustomers \
         listImports patchArticle patchCustomer patchOutfit putArticle putCustomer saveOutfit sendFeed undoImport",
    ),
    (
        Scope::Feedback,
        "exportAcceptedOutfits getAcceptance getEventCounts getExperimentCustomers getExperimentFigures getFeedbackCounts \
         reportFeedback",
    ),
    (Scope::Events, "importEvents recordEvents"),
    (
        Scope::Rules,
        "deleteLook deleteRule getHoldout getLook getRule getRuleEffect listLooks listRules patchLook patchRule putLook putRule \
         setHoldout",
    ),
    (
        Scope::Admin,
        "activateRelease deleteExperiment deleteFeed fetchFeed getExperiment getFeed listExperiments listFeeds patchExperiment \
         patchFeed putExperiment putFeed sendRelease setRouting",
    ),
    (Scope::Metrics, "getMetrics"),
];

#[apply(on_sqlite)]
async fn without_a_key_only_health_and_docs_answer(Guarded(service): Guarded) {
    let (_, operations) = read_document(&service).await;
    let open = operations.iter().filter(|operation| operation.scopes().is_empty());
    assert_eq!(open.map(|operation| &*operation.id).collect::<Vec<_>>().join(" "), OPEN);
    for operation in operations {
        let path = operation.with("1");
        for path in [format!("/v1{path}"), path] {
            let answer = service.call(operation.method.clone(), path).await;
            if operation.scopes().is_empty() {
                assert_ne!(answer.status, 401, "{operation}");
                continue;
            }
            let problem = answer.assert_problem(401, &[]);
            assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"atelier\"");
            assert_eq!(problem["code"], "key");
            let said =
                format!("an API key with the scope {} is required: send it", operation.scopes().join(" or "));
            assert!(text(&problem["detail"]).starts_with(&said), "{operation}: {problem}");
        }
    }
    // Pages redirect to the sign-in; unknown paths stay unknown. A HEAD needs the scope of a GET.
    service.page("/sign-in").is(200).await;
    service.get("/nothing").is(404).await;
    service.call(Method::HEAD, "/methods").is(401).await;
}

#[apply(on_sqlite)]
async fn a_key_opens_what_its_scopes_name(Guarded(service): Guarded) {
    let (_, mut operations) = read_document(&service).await;
    operations.retain(|operation| !operation.scopes().is_empty());
    operations.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    let listed: BTreeSet<&str> = OPENS.iter().flat_map(|(_, opened)| opened.split_whitespace()).collect();
    assert_eq!(
        operations.iter().map(|operation| &*operation.id).collect::<Vec<_>>(),
        Vec::from_iter(listed),
        "each once, see OPENS"
    );
    for held in Scope::ALL {
        let key = service.issue(&[held]).await;
        for operation in &operations {
            let answer = operation.call(&service).key(&key).json(json!({})).await;
            let opens = |opened: &str| opened.split_whitespace().any(|id| id == operation.id);
            let opening: Vec<Scope> =
                OPENS.iter().filter(|(_, opened)| opens(opened)).map(|(scope, _)| *scope).collect();
            if opening.contains(&held) {
                assert!(![401, 403, 405].contains(&answer.status), "{held}: {operation}: {}", answer.status);
                continue;
            }
            let problem = answer.assert_problem(403, &[]);
            let [scopes, names] = [" ", " or "]
                .map(|between| opening.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(between));
            let challenge =
                format!("Bearer realm=\"atelier\", error=\"insufficient_scope\", scope=\"{scopes}\"");
            assert_eq!(answer.header("www-authenticate"), challenge);
            let said = format!(
                "an API key with the scope {names} is required, this one has {held}; ask an admin for another"
            );
            assert_eq!((&problem["code"], &problem["detail"]), (&json!("scope"), &json!(said)));
        }
    }
    let both = service.issue(&[Scope::Catalogue, Scope::Metrics]).await;
    service.get("/articles").header("x-api-key", &both).is(200).await;
    // The scheme is case-insensitive.
    service.call(Method::HEAD, "/metrics").header("authorization", format!("bearer {both}")).is(200).await;
}

#[apply(on_sqlite)]
async fn a_wrong_key_is_refused_wherever_it_is_sent(service: Service) {
    // No key is needed here.
    service.get("/articles").is(200).await;
    let never_given = format!("atl_{}", "0".repeat(64));
    for wrong in ["", "x", "atl_", &never_given, &"x".repeat(9000)] {
        let answer = service.get("/articles").key(wrong).is(401).await;
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, "Bearer realm=\"atelier\", error=\"invalid_token\"", "{wrong}");
        let text = answer.text();
        text.has(["the API key is unknown, has expired or was revoked"]);
        // The key is not repeated.
        text.lacks((wrong.len() > 1).then_some(wrong));
        service.get("/articles").header("x-api-key", wrong).is(401).await;
    }
    service.get("/articles").header("x-api-key", b"\xe4").is(401).await;
    // A proxy's credentials are not a key, and what needs no key looks at none.
    service.get("/articles").header("authorization", "Basic eDp5").is(200).await;
    service.get("/livez").key("x").is(200).await;
    service.page("/articles").header("x-api-key", "x").await.text().has(["<h1>API key required</h1>"]);
}

#[apply(on_sqlite)]
async fn changes_are_audited_with_the_key(Demo(service): Demo) {
    let (key, kept) = service.issue_for(Opens::Scopes(vec![Scope::Catalogue, Scope::Admin])).await;
    let coat = json!({"type": "coat"});
    let mara = |age: u32| json!({"features": {"age": age}});
    let outfit = json!({"customer": "mara", "articles": ["a-00134", "a-01243", "a-00568", "a-00259"]});
    for (method, path, body) in [
        (Method::PUT, "/articles/new", coat.clone()),
        (Method::PUT, "/articles/new", coat),
        (Method::DELETE, "/articles/new", json!({})),
        (Method::PUT, "/customers/mara", mara(34)),
        (Method::PUT, "/customers/mara", mara(35)),
        (Method::POST, "/outfits", outfit.clone()),
        (Method::POST, "/outfits", outfit),
        (Method::PUT, "/routing", json!({"default_method": "np"})),
    ] {
        let answer = service.call(method, path).json(body).header("x-api-key", &key).await;
        assert!(answer.is_ok(), "{path}: {}", answer.text());
    }
    // Callers on the same machine need no key.
    for _ in 0..2 {
        let lines = "{\"id\": \"noor\", \"features\": {}}\n";
        service.lines("/customers/bulk", lines).is(200).await;
    }

    let log = service.log(20).await;
    let by_key = Actor::Key(kept.id);
    let mara = CustomerId::new("mara").unwrap();
    let kept_outfit = service.store.outfits().for_customer(&mara, 0, 1).await.unwrap()[0].seq.to_string();
    let said = log.iter().rev().map(|one| (one.actor, one.action.as_str(), one.subject.as_str()));
    assert_eq!(
        said.collect::<Vec<_>>(),
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

    service.delete("/customers/mara").key(&key).is(204).await;
    let log = service.log(5).await;
    assert_eq!((log[0].action.as_str(), log[0].actor, &log[0].customer), ("customer.erase", by_key, &None));
    assert!(!format!("{log:?}").contains("mara"), "{log:?}");
}

#[apply(on_sqlite)]
async fn use_is_recorded_once_a_minute(Guarded(service): Guarded) {
    let access = service.state.access();
    let (label, opens) = (Name::new("Shop").unwrap(), Opens::Scopes(Vec::new()));
    let (key, _) = access.issue_key(&label, &opens, None, Timestamp::from_millis(0)).await.unwrap();
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
    let service = Service::start_with(&db, Limits { key_rate: 2, ..Limits::default() }).await;
    let [key, other] = [service.issue(&[Scope::Catalogue]).await, service.issue(&[Scope::Catalogue]).await];
    let customers = |key: &str| service.get("/customers").key(key);
    let answer = until_too_fast(|| customers(&key)).await;
    let problem = answer.assert_problem(429, &[]);
    assert_eq!(answer.header("retry-after"), "1", "half a second, rounded up");
    assert_eq!(problem["code"], "too-fast");
    assert_eq!(problem["detail"], "this API key sent more than 2 requests in a second");
    // Another key has its own limit.
    customers(&other).is(200).await;
    service.get("/livez").is(200).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    customers(&key).is(200).await;
}

#[apply(on_sqlite)]
async fn every_operation_counts_for_its_keys_rate(db: TestDatabase) {
    let service = Service::start_with(&db, Limits { key_rate: 1, ..Limits::default() }).await;
    let key = service.issue(&Scope::ALL).await;
    let (_, operations) = read_document(&service).await;
    for operation in operations.iter().filter(|operation| !operation.scopes().is_empty()) {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(operation.call(&service).key(&key).json(json!({})).await.status);
        }
        assert!(statuses.contains(&429), "{operation}: {statuses:?}");
    }
}

#[apply(contract)]
async fn a_key_used_before_works_without_the_database_until_it_expires(Guarded(service): Guarded) {
    let (access, hour) = (service.state.access(), Duration::from_hours(1));
    let (label, opens) = (Name::new("Shop").unwrap(), Opens::Scopes(vec![Scope::Metrics]));
    let (used, _) = access.issue_key(&label, &opens, Some(hour), now()).await.unwrap();
    let unused = service.issue(&[Scope::Metrics]).await;
    service.get("/metrics").key(used.as_str()).is(200).await;
    service.store.close().await;
    service.get("/metrics").key(used.as_str()).is(200).await;
    assert!(access.key(&used, now() + hour).await.unwrap().is_none());
    service.get("/metrics").key(&unused).is(503).await;
}

#[apply(on_sqlite)]
async fn a_session_opens_no_api_and_a_key_no_page(Guarded(service): Guarded) {
    let admin = service.signed_in(Role::Admin).await;
    admin.get("/access").is(200).await;
    admin.get("/articles").is(401).await;
    let key = service.issue(&Scope::ALL).await;
    service.get("/articles").key(&key).is(200).await;
    service.get("/access").header("x-api-key", &key).is(303).await;
    service.get("/access").header("cookie", format!("atelier_session={key}")).is(303).await;
}
