use std::{fs, path::Path};

use atelier_core::domain::{Article, Role};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    completion::tickets,
    demo,
    harness::{
        Html, Service, TestDatabase, apply, contract, each, json::with, on_sqlite, outfits, pick, rows,
    },
    outcomes::feedback,
};

async fn start(db: &TestDatabase) -> Service {
    let service = Service::start(db).await;
    service.put("/customers/c", json!({"features": {"age": 28}})).await;
    for id in ["a", "b", "d", "e", "f"] {
        service.put(format!("/articles/{id}"), json!({"type": "coat"})).await;
    }
    service
}

#[apply(contract)]
async fn save_get_and_delete(db: TestDatabase) {
    let service = start(&db).await;
    let body = json!({"customer": "c", "articles": ["d", "a", "e", "b"], "features": {"occasion": "office", "mood": 1}});
    let answer = service.send("/outfits", &body).is(201).await;
    let (path, mut saved) = (answer.header("location"), answer.json());
    assert_eq!(path, format!("/outfits/{}", saved["id"]));
    let expected = json!([body["articles"], body["features"], "saved"]);
    assert_eq!(pick(&saved, "articles features origin"), expected);
    let warnings = saved.as_object_mut().unwrap().remove("warnings").unwrap();
    assert_eq!(warnings[0]["pointer"], "/features/mood");
    assert_eq!(service.json(path).await, saved);
    assert!(saved["created_at"].as_str().unwrap().ends_with('Z'), "{saved}");

    // A set has no order.
    let turned = json!({"customer": "c", "articles": ["a", "b", "d", "e"], "features": body["features"]});
    assert_eq!(service.send("/outfits", &turned).is(200).await.header("location"), path);
    let other = service.send("/outfits", with(turned.clone(), json!({"features": {}}))).is(201).await;
    for path in [path, other.header("location")] {
        service.delete(path).is(204).await;
        service.get(path).is(404).await;
        service.delete(path).is(404).await;
    }
    let again = service.send("/outfits", turned).is(201).await.json();
    assert!(again["id"].as_i64() > other.json()["id"].as_i64(), "a number is never used again");
}

#[apply(contract)]
async fn a_draft_for_nobody_is_given_to_a_customer(db: TestDatabase) {
    let service = start(&db).await;
    let body = json!({"articles": ["a", "b", "d", "e"], "name": "Window"});
    let saved = service.send("/outfits", &body).is(201).await;
    let path = saved.header("location");
    assert_eq!(pick(&saved.json(), "customer draft"), json!([null, true]));
    service.send("/outfits", &body).is(200).await;
    assert_eq!(service.store.outfits().count().await, Ok(0), "training leaves it out");
    let give = |path: &str, customer: &str| service.patch(path, json!({"customer": customer}));
    give(path, "nobody").await.assert_problem(422, &["/customer"]);
    let given = service.patch(path, json!({"customer": "c", "note": "Call her"})).ok().await;
    assert_eq!(pick(&given, "customer draft name note"), json!(["c", false, "Window", "Call her"]));
    assert_eq!(service.store.outfits().count().await, Ok(1));
    let entry = &service.log(1).await[0];
    assert_eq!((entry.action.as_str(), &entry.details["given"]), ("outfit.change", &json!(true)));
    // What was done before is about her, too.
    let actions = each(&service.json("/customers/c/export").await["audit"], "action");
    assert!(actions.as_array().unwrap().contains(&json!("outfit.save")), "{actions}");
    // It is hers now: erased with her, and nobody else's.
    service.put("/customers/d", json!({"features": {}})).is(201).await;
    give(path, "d").is(422).await;
    // The draft is gone, so the same is another one; she has it already.
    let again = service.send("/outfits", &body).is(201).await;
    let again = again.header("location");
    give(again, "c").is(409).await;
    service.delete("/customers/c").is(204).await;
    service.get(path).is(404).await;
    service.get(again).is(200).await;
    service.delete(again).is(204).await;
}

#[apply(on_sqlite)]
async fn an_invalid_outfit_is_refused_with_pointers(db: TestDatabase) {
    let service = start(&db).await;
    for (field, value, pointers) in [
        ("customer", json!("nobody"), &["/customer"][..]),
        ("customer", json!(" c"), &["/customer"]),
        ("articles", json!(["a"]), &["/articles"]),
        ("articles", json!(["a", "b", "d", "a"]), &["/articles/3"]),
        ("articles", json!(["a", "x", "d", "y"]), &["/articles/1", "/articles/3"]),
        ("articles", json!(["a", "", "d", "\u{0}"]), &["/articles/1", "/articles/3"]),
        ("articles", json!(["a", 7, "d", "e"]), &["/articles/1"]),
        ("articles", json!(["a", null, "a"]), &["/articles/2"]),
        ("articles", json!([null, "gone"]), &["/articles/1"]),
        ("features", json!({"age": "old"}), &["/features/age"]),
        ("name", json!(" x"), &["/name"]),
        ("note", json!("\u{0}"), &["/note"]),
        ("split", json!("train"), &["/split"]),
    ] {
        let mut body = json!({"customer": "c", "articles": ["a", "b", "d", "e"]});
        body[field] = value;
        service.send("/outfits", &body).await.assert_problem(422, pointers);
    }
    assert_eq!(service.store.outfits().count().await, Ok(0));
}

#[apply(contract)]
async fn a_draft_has_a_name_and_a_note(db: TestDatabase) {
    let service = start(&db).await;
    let body = json!({"customer": "c", "articles": ["a", null], "name": "Autumn", "note": "38"});
    let saved = service.send("/outfits", &body).is(201).await.json();
    assert_eq!(pick(&saved, "draft articles name note"), json!([true, ["a", null], "Autumn", "38"]));
    let path = format!("/outfits/{}", saved["id"]);
    let renamed = json!({"customer": "c", "articles": ["a", null], "name": "Winter"});
    let saved = service.send("/outfits", renamed).ok().await;
    assert_eq!(pick(&saved, "name note"), json!(["Winter", "38"]));
    assert_eq!(service.json(&path).await["name"], "Winter");
    for (query, count) in [("", 0), ("?drafts=true", 1)] {
        let listed = service.json(format!("/customers/c/outfits{query}")).await;
        assert_eq!(listed["items"].as_array().unwrap().len(), count, "{query}: {listed}");
    }
}

/// The demo release, and one of the same articles with another schema.
pub fn folder_with_schema(change: impl FnOnce(&str) -> String) -> TempDir {
    let folder = tickets::folder();
    change_file(&folder.path().join("next"), "schema.toml", |schema| {
        change(str::from_utf8(&schema).unwrap()).into_bytes()
    });
    folder
}

/// Changes a release's file, and says so in its manifest.
pub fn change_file(release: &Path, file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let bytes = change(fs::read(release.join(file)).unwrap());
    demo::put(release, file, &bytes).unwrap();
}

/// The demo release's outfits have four to eight articles, those of another release two to twelve.
#[apply(on_sqlite)]
async fn outfits_are_as_large_as_the_live_release_says(db: TestDatabase) {
    let folder = folder_with_schema(|schema| {
        let size = |least: usize, most: usize| format!("outfit = {{least = {least}, most = {most}}}");
        schema.replace(&size(4, 8), &size(2, 12))
    });
    let service = Service::filled(&db, &folder).await;
    let ids: Vec<String> =
        rows::<Article>().into_iter().take(13).map(|article| article.id.to_string()).collect();
    let customer = outfits()[0].customer.to_string();
    let body = |count: usize| json!({"customer": customer, "articles": &ids[..count]});
    let refused = async |path: &str, body: &Value, detail: &str| {
        let problem = service.send(path, body).is(422).await.json();
        assert_eq!(problem["errors"][0]["detail"], detail, "{path} {body}");
    };
    let complete = |visible: usize| {
        let slots: Vec<Value> = ids[..visible].iter().map(|id| json!(id)).chain([Value::Null]).collect();
        json!({"customer": customer, "outfit": slots, "method": "match", "k": 3, "explain": true, "lift": true})
    };

    service.ask_ok("/releases/next/activate", json!({})).await;
    let mut saved = Vec::new();
    for count in [2, 12] {
        let outfit = service.send("/outfits", body(count)).is(201).await.json();
        assert_eq!(outfit["draft"], false, "{outfit}");
        saved.push((format!("/outfits/{}", outfit["id"]), count));
    }
    let size = "an outfit has 2 to 12 articles (`outfit` in the schema), found";
    for count in [1, 13] {
        refused("/outfits", &body(count), &format!("{size} {count}")).await;
    }
    for (visible, warnings) in [(0, 1), (1, 0), (11, 0)] {
        let answer = service.ask_ok("/complete", complete(visible)).await;
        assert_eq!(answer["blanks"][0]["suggestions"].as_array().unwrap().len(), 3, "{answer}");
        let codes = each(&answer["warnings"], "code");
        let short = codes.as_array().unwrap().iter().filter(|code| **code == "short-outfit");
        assert_eq!(short.count(), warnings, "{visible}: {answer}");
    }
    let pair = service.ask_ok("/complete", complete(1)).await;
    let mut accepted = feedback::event(pair["completion_id"].as_str().unwrap(), "e", "accepted");
    accepted["customer"] = customer.clone().into();
    accepted["article"] = pair["blanks"][0]["suggestions"][0]["article"]["id"].clone();
    service.ask_ok("/feedback", accepted).await;
    let training = async || service.get("/feedback/outfits.jsonl").await.text().lines().count();
    assert_eq!(training().await, 1, "two articles are an outfit");
    refused("/complete", &complete(12), "an outfit has at most 12 slots, found 13").await;
    let lines = |count: usize| format!("{}\n", body(count));
    let bulk = |lines: String| service.lines("/outfits/bulk", lines);
    bulk(lines(3) + &lines(11)).is(200).await;
    assert_eq!(bulk(lines(13)).is(422).await.json()["errors"][0]["detail"], format!("{size} 13"));

    // What is stored stays readable under a release with narrower limits.
    service.ask_ok("/releases/demo/activate", json!({})).await;
    let browser = service.signed_in(Role::Stylist).await;
    for (path, count) in &saved {
        let outfit = service.json(path).await;
        assert_eq!((outfit["articles"].as_array().unwrap().len(), &outfit["draft"]), (*count, &json!(false)));
        let page = browser.page(format!("/studio{path}")).await;
        browser.page(page.between("id=\"edit\" href=\"", "\"")).await;
    }
    assert_eq!(training().await, 0, "models of this release learn from no pairs");
    let stored = service.json(format!("/customers/{customer}/outfits?n=100")).await;
    assert!(stored["items"].as_array().unwrap().len() >= 4, "{stored}");
    let size = "an outfit has 4 to 8 articles (`outfit` in the schema), found 12";
    refused("/outfits", &body(12), size).await;
    refused("/complete", &complete(11), "an outfit has at most 8 slots, found 12").await;
    assert_eq!(bulk(lines(12)).is(422).await.json()["errors"][0]["detail"], size);
}

#[apply(contract)]
async fn outfits_of_a_customer_are_listed(db: TestDatabase) {
    let service = start(&db).await;
    for articles in [["a", "b", "d", "e"], ["a", "b", "d", "f"], ["a", "b", "e", "f"]] {
        service.send("/outfits", json!({"customer": "c", "articles": articles})).is(201).await;
    }
    service.put("/customers/d", json!({"features": {}})).is(201).await;
    service.send("/outfits", json!({"customer": "d", "articles": ["a", "b", "d", "e"]})).is(201).await;
    let first = service.json("/customers/c/outfits?n=2").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = service.json(format!("/customers/c/outfits?n=2&cursor={cursor}")).await;
    assert_eq!(pick(&last, "items/0/articles next_cursor"), json!([["a", "b", "e", "f"], null]));
}

#[apply(contract)]
async fn a_stream_is_checked(db: TestDatabase) {
    let service = start(&db).await;
    let good = "{\"customer\":\"c\",\"articles\":[\"a\",\"b\",\"d\",\"e\"],\"split\":\"train\"}\n";
    let bad = "{\"customer\":\"x\",\"articles\":[\"a\",\"b\",\"d\",\"y\"]}\n";
    let refused = service.lines("/outfits/bulk", format!("{good}{bad}")).is(422).await.json();
    let detail = "customer \"x\" is unknown; article \"y\" is not in the catalogue";
    assert_eq!(refused["errors"], json!([{"line": 2, "detail": detail}]));
    assert_eq!(service.lines("/outfits/bulk", good).ok().await["added"], 1);
    let listed = service.json("/customers/c/outfits").await;
    assert_eq!(pick(&listed["items"][0], "split origin"), json!(["train", "imported"]));
    let renamed = service.patch(format!("/outfits/{}", listed["items"][0]["id"]), json!({"name": "x"}));
    assert_eq!(renamed.is(409).await.json()["code"], "conflict");
    // Who saves it takes it over.
    let body = json!({"customer": "c", "articles": ["a", "b", "d", "e"]});
    let saved = service.send("/outfits", body).is(200).await.json();
    assert_eq!(pick(&saved, "id split origin"), json!([listed["items"][0]["id"], "train", "saved"]));
}
