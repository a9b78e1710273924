//! What is kept of a customer, what an export says of it, and what is left after an erasure.

use std::collections::HashSet;

use atelier::{
    outcomes::{FeedbackEvent, FeedbackKind, SuggestedArticle},
    platform::db::Entry,
};
use atelier_core::domain::{ArticleId, CustomerId, Features, Outfit, Role, Timestamp};
use serde_json::{Value, json};

use super::{Demo, Service};
use crate::{
    harness::{TestDatabase, apply, contract},
    store::erasing::everything,
};

const WHO: &str = "erika-4711";

#[apply(contract)]
async fn an_export_has_everything_and_an_erasure_leaves_nothing(Demo(service): Demo, db: TestDatabase) {
    let path = format!("/customers/{WHO}");
    let features = json!({"features": {"age": 28}});
    service.put(&path, &features).is(201).await;
    let (completion, blank) = complete(&service).await;
    for (id, kind, rank) in [("1", "shown", 0), ("2", "rejected", 0), ("3", "shown", 1), ("4", "accepted", 1)]
    {
        report(&service, &event(&format!("{WHO} {id}"), kind, &completion, &blank[rank]), 200).await;
    }
    let articles: Vec<&str> = blank.iter().take(4).map(String::as_str).collect();
    let saved = service.ask("/outfits", &json!({"customer": WHO, "articles": articles})).await;
    assert_eq!(saved.0, 201, "{}", saved.1);
    let imported = json!({"customer": WHO, "articles": &blank[4..8]});
    service.post("/outfits/bulk", "application/x-ndjson", format!("{imported}\n")).is(200).await;

    let export = service.json(&format!("{path}/export")).await;
    assert_eq!(
        (&export["customer"]["id"], &export["customer"]["features"]),
        (&json!(WHO), &features["features"])
    );
    assert!(export["created_at"].is_string() && export["updated_at"].is_string());
    let all = |table: &str, field: &str| {
        let rows = export[table].as_array().unwrap().iter();
        rows.map(|row| row[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(all("outfits", "origin"), ["saved", "imported"]);
    let mut kinds = all("feedback", "kind");
    kinds.sort();
    assert_eq!(kinds, ["accepted", "rejected", "shown", "shown"]);
    let actions = all("audit", "action");
    assert!(actions.starts_with(&["customer.put".into(), "outfit.save".into()]), "{actions:?}");
    assert_eq!(export["audit"][0]["subject"], WHO);
    assert_eq!(
        (&export["audit"][0]["by"], &export["audit"][0]["details"]),
        (&json!("service"), &json!({"new": true}))
    );

    service.delete(&path).is(204).await;
    service.get(&format!("{path}/export")).is(404).await;
    let log = service.signed_in(Role::Admin).await.page("/access/audit").await;
    assert!(log.contains("customer.erase") && !log.contains(WHO), "{log}");
    assert!(!everything(&db, &mut db.raw().await).await.contains(WHO));
}

/// More than any other JSON answer may have, and more outfits and events than are read at once.
#[apply(contract)]
async fn an_export_has_no_limit(service: Service) {
    let (who, now) = (CustomerId::new(WHO).unwrap(), Timestamp::from_millis(1));
    service.put(&format!("/customers/{WHO}"), &json!({"features": {}})).await;
    let outfit = |number: usize| {
        let articles = ["a", "b", "c"].map(str::to_owned).into_iter().chain([format!("d-{number}")]);
        let articles = articles.map(|id| ArticleId::new(id).unwrap()).collect();
        Outfit::new(who.clone(), articles, None, Features::default()).unwrap()
    };
    let mut import = service.store.import(now).await.unwrap();
    import.outfits(&(0..2001).map(outfit).collect::<Vec<_>>()).await.unwrap();
    import.commit().await.unwrap();
    for number in 0..1001 {
        // All have the same time.
        let event = FeedbackEvent {
            kind: FeedbackKind::Shown,
            completion_id: format!("k-{number}"),
            slot: 0,
            article: ArticleId::new("a").unwrap(),
            rank: 1,
            release: "demo".into(),
            method: "gsu".into(),
            arm: None,
            customer: Some(who.clone()),
            at: now,
            reason: None,
        };
        service
            .store
            .feedback()
            .record(&number.to_string(), &event, &SuggestedArticle::default())
            .await
            .unwrap();
    }
    for _ in 0..34 {
        let entry = Entry::new("customer.note", WHO, json!({"note": "x".repeat(1 << 20)})).about(&who);
        service.store.audit().append(&entry, now).await.unwrap();
    }
    let answer = service.get(&format!("/customers/{WHO}/export")).await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, "application/json"));
    let export: Value = answer.json();
    let count = |table: &str, field: &str| {
        let rows = export[table].as_array().unwrap();
        let different: HashSet<String> = rows.iter().map(|row| row[field].to_string()).collect();
        (rows.len(), different.len())
    };
    assert_eq!(count("outfits", "id"), (2001, 2001));
    assert_eq!(count("feedback", "completion_id"), (1001, 1001));
    assert_eq!(count("audit", "action").0, 35);
    service.get("/customers/unknown/export").is(404).await;
}

/// A shop's till may report a purchase after the customer asked to be erased.
#[apply(contract)]
async fn feedback_after_an_erasure_names_no_customer(Demo(service): Demo, db: TestDatabase) {
    let path = format!("/customers/{WHO}");
    service.put(&path, &json!({"features": {}})).await;
    let (completion, blank) = complete(&service).await;
    let before = event("before", "shown", &completion, &blank[0]);
    report(&service, &before, 200).await;
    service.delete(&path).is(204).await;

    let late = event("late", "accepted", &completion, &blank[0]);
    let problem = report(&service, &late, 422).await;
    assert_eq!(problem["errors"][0]["pointer"], "/customer");
    let again = report(&service, &before, 200).await;
    assert_eq!(again["recorded"], false, "it counted before");
    let (status, _) = service.ask("/outfits", &json!({"customer": WHO, "articles": &blank[..4]})).await;
    assert_eq!(status, 422);
    let line = json!({"customer": WHO, "articles": &blank[..4]}).to_string();
    let bulk = service.post("/outfits/bulk?skip_bad=true", "application/x-ndjson", line).is(422).await;
    assert_eq!(bulk.header("content-type"), "application/problem+json");
    assert!(!everything(&db, &mut db.raw().await).await.contains(WHO));

    let mut anonymous = late;
    anonymous.as_object_mut().unwrap().remove("customer");
    assert_eq!(report(&service, &anonymous, 200).await["recorded"], true, "it still counts");
}

/// A completion for the customer, and the articles suggested for its blank.
async fn complete(service: &Service) -> (String, Vec<String>) {
    let asked = json!({"customer": WHO, "outfit": [null, null, null, null], "k": 10, "method": "gsu"});
    let answer = service.ask_ok("/complete", &asked).await;
    let suggestions = answer["blanks"][0]["suggestions"].as_array().expect("suggestions").iter();
    let articles =
        suggestions.map(|suggestion| suggestion["article"]["id"].as_str().unwrap().to_owned()).collect();
    (answer["completion_id"].as_str().unwrap().to_owned(), articles)
}

fn event(id: &str, kind: &str, completion: &str, article: &str) -> Value {
    json!({"id": id, "completion_id": completion, "kind": kind, "slot": 0, "article": article, "customer": WHO})
}

async fn report(service: &Service, event: &Value, expected: u16) -> Value {
    let (status, answer) = service.ask("/feedback", event).await;
    assert_eq!(status, expected, "{answer}");
    answer
}
