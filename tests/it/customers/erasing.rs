//! What is kept of a customer, what an export says of it, and what is left after an erasure.

use std::collections::HashSet;

use atelier::{
    outcomes::{FeedbackEvent, FeedbackKind, SuggestedArticle},
    platform::db::Entry,
};
use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    customers::sql::erasing::everything,
    harness::{
        Demo, Html, NOW, Service, TestDatabase, apply, contract, customer_id, each, feedback, ids, outfit,
        pick,
    },
};

const WHO: &str = "erika-4711";
const PATH: &str = "/customers/erika-4711";

#[apply(contract)]
async fn an_export_has_everything_and_an_erasure_leaves_nothing(Demo(service): Demo, db: TestDatabase) {
    let features = json!({"features": {"age": 28}});
    service.put(PATH, &features).is(201).await;
    let (completion, blank) = complete(&service).await;
    for (id, kind, rank) in [("1", "shown", 0), ("2", "rejected", 0), ("3", "shown", 1), ("4", "accepted", 1)]
    {
        let event = event(&format!("{WHO} {id}"), kind, &completion, &blank[rank]);
        service.ask_ok("/feedback", event).await;
    }
    service.send("/outfits", json!({"customer": WHO, "articles": &blank[..4]})).is(201).await;
    let imported = json!({"customer": WHO, "articles": &blank[4..8]});
    service.lines("/outfits/bulk", format!("{imported}\n")).is(200).await;

    let export = service.json(format!("{PATH}/export")).await;
    assert_eq!(export["customer"], json!({"id": WHO, "features": features["features"]}));
    assert!(export["created_at"].is_string() && export["updated_at"].is_string());
    assert_eq!(each(&export["outfits"], "origin"), json!(["saved", "imported"]));
    let mut kinds: Vec<String> = serde_json::from_value(each(&export["feedback"], "kind")).unwrap();
    kinds.sort();
    assert_eq!(kinds, ["accepted", "rejected", "shown", "shown"]);
    let audit = pick(&export["audit"], "0/action 1/action 0/subject 0/by 0/details");
    assert_eq!(audit, json!(["customer.put", "outfit.save", WHO, "service", {"new": true}]));

    service.delete(PATH).is(204).await;
    service.get(format!("{PATH}/export")).is(404).await;
    service.signed_in(Role::Admin).await.page("/access/audit").await.has(["customer.erase"]).lacks([WHO]);
    everything(&db, &mut db.raw().await).await.lacks([WHO]);
}

/// More than any other JSON answer may have, and more outfits and events than are read at once.
#[apply(contract)]
async fn an_export_has_no_limit(service: Service) {
    let who = customer_id(WHO);
    service.put(PATH, json!({"features": {}})).await;
    let outfits = (0..2001).map(|number| outfit(WHO, ["a", "b", "c", &format!("d-{number}")], None));
    let mut import = service.store.import(NOW).await.unwrap();
    import.outfits(&outfits.collect::<Vec<_>>()).await.unwrap();
    import.commit().await.unwrap();
    for number in 0..1001 {
        // All have the same time.
        let event = feedback(FeedbackKind::Shown, &format!("k-{number}"), "a");
        let event = FeedbackEvent { customer: Some(who.clone()), ..event };
        let suggested = SuggestedArticle::default();
        service.store.feedback().record(&number.to_string(), &event, &suggested).await.unwrap();
    }
    for _ in 0..34 {
        let entry = Entry::new("customer.note", WHO, json!({"note": "x".repeat(1 << 20)})).about(&who);
        service.store.audit().append(&entry, NOW).await.unwrap();
    }
    let answer = service.get(format!("{PATH}/export")).is(200).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let export = answer.json();
    let count = |table: &str, field: &str| {
        let rows = export[table].as_array().unwrap();
        let different: HashSet<String> = rows.iter().map(|row| row[field].to_string()).collect();
        (rows.len(), different.len())
    };
    assert_eq!(count("outfits", "id"), (2001, 2001));
    assert_eq!(count("feedback", "completion_id"), (1001, 1001));
    assert_eq!(count("audit", "action").0, 35);
}

/// A shop's till may report a purchase after the customer asked to be erased.
#[apply(contract)]
async fn feedback_after_an_erasure_names_no_customer(Demo(service): Demo, db: TestDatabase) {
    service.put(PATH, json!({"features": {}})).await;
    let (completion, blank) = complete(&service).await;
    let before = event("before", "shown", &completion, &blank[0]);
    service.ask_ok("/feedback", &before).await;
    service.delete(PATH).is(204).await;

    let mut late = event("late", "accepted", &completion, &blank[0]);
    service.send("/feedback", &late).await.assert_problem(422, &["/customer"]);
    assert_eq!(service.ask_ok("/feedback", &before).await["recorded"], false, "it counted before");
    let outfit = json!({"customer": WHO, "articles": &blank[..4]});
    service.send("/outfits", &outfit).is(422).await;
    let bulk = service.lines("/outfits/bulk?skip_bad=true", outfit.to_string());
    bulk.await.assert_problem(422, &[]);
    everything(&db, &mut db.raw().await).await.lacks([WHO]);

    late.as_object_mut().unwrap().remove("customer");
    assert_eq!(service.ask_ok("/feedback", late).await["recorded"], true, "it still counts");
}

/// A completion for the customer, and the articles suggested for its blank.
async fn complete(service: &Service) -> (String, Vec<String>) {
    let asked = json!({"customer": WHO, "outfit": [null, null, null, null], "k": 10, "method": "gsu"});
    let answer = service.ask_ok("/complete", asked).await;
    (answer["completion_id"].as_str().unwrap().to_owned(), ids(&answer["blanks"][0]["suggestions"]))
}

fn event(id: &str, kind: &str, completion: &str, article: &str) -> Value {
    json!({"id": id, "completion_id": completion, "kind": kind, "slot": 0, "article": article, "customer": WHO})
}
