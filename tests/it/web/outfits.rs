use std::{fs, path::Path};

use atelier::config::Limits;
use atelier_core::{
    domain::{Article, Role},
    util::digest,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Service, feedback, outfits, rows, tickets};
use crate::harness::{Call, TestDatabase, apply, contract, on_sqlite};

async fn start(db: &TestDatabase) -> Service {
    let service = Service::start(db).await;
    service.put("/customers/c", &json!({"features": {"age": 28}})).await;
    for id in ["a", "b", "d", "e", "f"] {
        service.put(&format!("/articles/{id}"), &json!({"type": "coat"})).await;
    }
    service
}

fn save(service: &Service, body: &Value) -> Call {
    service.send("/outfits", body)
}

#[apply(on_sqlite)]
async fn save_get_and_delete(db: TestDatabase) {
    let service = start(&db).await;
    let body = json!({"customer": "c", "articles": ["d", "a", "e", "b"], "features": {"occasion": "office", "mood": 1}});
    let answer = save(&service, &body).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let path = answer.header("location").to_owned();
    let mut saved: Value = answer.json();
    assert_eq!(path, format!("/outfits/{}", saved["id"]));
    assert_eq!(saved["articles"], body["articles"]);
    assert_eq!((&saved["origin"], &saved["features"]), (&json!("saved"), &body["features"]));
    let warnings = saved.as_object_mut().unwrap().remove("warnings").unwrap();
    assert_eq!(warnings[0]["pointer"], "/features/mood");
    assert_eq!(service.json(&path).await, saved);
    assert!(saved["created_at"].as_str().unwrap().ends_with('Z'), "{saved}");

    let turned = json!({"customer": "c", "articles": ["a", "b", "d", "e"], "features": body["features"]});
    let again = save(&service, &turned).await;
    assert_eq!(again.status(), StatusCode::OK, "a set has no order");
    assert_eq!(again.header("location"), path);
    assert_eq!(service.delete(&path).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.get(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.delete(&path).await.status(), StatusCode::NOT_FOUND);
}

#[apply(contract)]
async fn a_draft_for_nobody_is_given_to_a_customer(db: TestDatabase) {
    let service = start(&db).await;
    let change = async |path: &str, body: Value| {
        let answer = service.patch(path, body).await;
        (answer.status(), answer.json())
    };
    let body = json!({"articles": ["a", "b", "d", "e"], "name": "Window"});
    let saved = save(&service, &body).await;
    assert_eq!(saved.status(), StatusCode::CREATED);
    let path = saved.header("location").to_owned();
    let saved: Value = saved.json();
    assert_eq!((saved.get("customer"), &saved["draft"]), (None, &json!(true)), "{saved}");
    assert_eq!(save(&service, &body).await.status(), StatusCode::OK, "stored once");
    assert_eq!(service.store.outfits().count().await, Ok(0), "training leaves it out");
    let (status, problem) = change(&path, json!({"customer": "nobody"})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/customer")), "{problem}");
    let (status, given) = change(&path, json!({"customer": "c", "note": "Call her"})).await;
    assert_eq!(status, 200, "{given}");
    assert_eq!((&given["customer"], &given["draft"]), (&json!("c"), &json!(false)));
    assert_eq!((&given["name"], &given["note"]), (&json!("Window"), &json!("Call her")));
    assert_eq!(service.store.outfits().count().await, Ok(1));
    let entry = &service.log(1).await[0];
    assert_eq!((entry.action.as_str(), &entry.details["given"]), ("outfit.change", &json!(true)));
    let hers = service.json("/customers/c/export").await["audit"].clone();
    let actions: Vec<&Value> = hers.as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert!(actions.contains(&&json!("outfit.save")), "what was done before is about her, too: {hers}");
    // It is hers now: erased with her, and nobody else's.
    service.put("/customers/d", &json!({})).await;
    assert_eq!(change(&path, json!({"customer": "d"})).await.0, 422);
    let again = save(&service, &body).await;
    assert_eq!(again.status(), StatusCode::CREATED, "the draft is gone, so the same is another one");
    let again = again.header("location").to_owned();
    assert_eq!(change(&again, json!({"customer": "c"})).await.0, 409, "she has it already");
    assert_eq!(service.delete("/customers/c").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.get(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.get(&again).await.status(), StatusCode::OK);
    assert_eq!(service.delete(&again).await.status(), StatusCode::NO_CONTENT);
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
        ("features", json!({"age": "old"}), &["/features/age"]),
        ("split", json!("train"), &["/split"]),
    ] {
        let mut body = json!({"customer": "c", "articles": ["a", "b", "d", "e"]});
        body[field] = value;
        let answer = save(&service, &body).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let problem: Value = answer.json();
        let found: Vec<&str> = problem["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["pointer"].as_str().unwrap())
            .collect();
        assert_eq!(found, pointers, "{problem}");
    }
    assert_eq!(service.store.outfits().count().await, Ok(0));
}

/// The demo release, and one of the same articles with another schema.
pub(super) fn folder_with_schema(change: impl FnOnce(&str) -> String) -> TempDir {
    let folder = tickets::folder();
    change_file(&folder.path().join("next"), "schema.toml", |schema| {
        change(str::from_utf8(&schema).unwrap()).into_bytes()
    });
    folder
}

/// Changes a release's file, and says so in its manifest.
pub(super) fn change_file(release: &Path, file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let bytes = change(fs::read(release.join(file)).unwrap());
    fs::write(release.join(file), &bytes).unwrap();
    let manifest = release.join("release.json");
    let mut sealed: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    sealed["files"][file] = json!({"bytes": bytes.len(), "sha256": digest::sha256(&bytes)});
    fs::write(manifest, sealed.to_string()).unwrap();
}

/// The demo release's outfits have four to eight articles, those of another release two to twelve.
#[apply(on_sqlite)]
async fn outfits_are_as_large_as_the_live_release_says(db: TestDatabase) {
    let folder = folder_with_schema(|schema| {
        let size = |least: usize, most: usize| format!("outfit = {{least = {least}, most = {most}}}");
        schema.replace(&size(4, 8), &size(2, 12))
    });
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    let ids: Vec<String> =
        rows::<Article>().into_iter().take(13).map(|article| article.id.to_string()).collect();
    let customer = outfits()[0].customer.to_string();
    let body = |count: usize| json!({"customer": customer, "articles": &ids[..count]});
    let refusal = async |path: &str, body: &Value| {
        let (status, problem) = service.ask(path, body).await;
        (status, problem["errors"][0]["detail"].as_str().unwrap_or_default().to_owned())
    };
    let complete = |visible: usize| {
        let blank = [Value::Null];
        let slots: Vec<Value> = ids[..visible].iter().map(|id| json!(id)).chain(blank).collect();
        json!({"customer": customer, "outfit": slots, "method": "match", "k": 3, "explain": true, "lift": true})
    };

    service.ask_ok("/releases/next/activate", &json!({})).await;
    let mut saved = Vec::new();
    for count in [2, 12] {
        let (status, outfit) = service.ask("/outfits", &body(count)).await;
        assert_eq!((status, &outfit["draft"]), (201, &json!(false)), "{outfit}");
        saved.push((format!("/outfits/{}", outfit["id"]), count));
    }
    let size = "an outfit has 2 to 12 articles (`outfit` in the schema), found";
    assert_eq!(refusal("/outfits", &body(1)).await, (422, format!("{size} 1")));
    assert_eq!(refusal("/outfits", &body(13)).await, (422, format!("{size} 13")));
    for (visible, warnings) in [(0, 1), (1, 0), (11, 0)] {
        let answer = service.ask_ok("/complete", &complete(visible)).await;
        assert_eq!(answer["blanks"][0]["suggestions"].as_array().unwrap().len(), 3, "{answer}");
        let short =
            answer["warnings"].as_array().unwrap().iter().filter(|warning| warning["code"] == "short-outfit");
        assert_eq!(short.count(), warnings, "{visible}: {answer}");
    }
    let pair = service.ask_ok("/complete", &complete(1)).await;
    let mut accepted = feedback::event(pair["completion_id"].as_str().unwrap(), "e", "accepted");
    accepted["customer"] = customer.clone().into();
    accepted["article"] = pair["blanks"][0]["suggestions"][0]["article"]["id"].clone();
    assert_eq!(feedback::report(&service, &accepted).await.0, 200);
    let training = async || service.get("/feedback/outfits.jsonl").await.text().lines().count();
    assert_eq!(training().await, 1, "two articles are an outfit");
    let most = "an outfit has at most 12 slots, found 13".to_owned();
    assert_eq!(refusal("/complete", &complete(12)).await, (422, most.clone()));
    let lines = |count: usize| format!("{}\n", body(count));
    let bulk = |lines: String| service.post("/outfits/bulk", "application/x-ndjson", lines);
    bulk(lines(3) + &lines(11)).is(200).await;
    let refused: Value = bulk(lines(13)).await.json();
    assert_eq!(refused["errors"][0]["detail"], format!("{size} 13"));

    // What is stored stays readable under a release with narrower limits.
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let browser = service.signed_in(Role::Stylist).await;
    for (path, count) in &saved {
        let outfit = service.json(path).await;
        assert_eq!((outfit["articles"].as_array().unwrap().len(), &outfit["draft"]), (*count, &json!(false)));
        let page = browser.page(&format!("/studio{path}")).await;
        let (_, edit) = page.split_once("id=\"edit\" href=\"").unwrap();
        browser.page(&edit.split('"').next().unwrap().replace("&#38;", "&")).await;
    }
    assert_eq!(training().await, 0, "models of this release learn from no pairs");
    let stored = service.json(&format!("/customers/{customer}/outfits?n=100")).await;
    assert!(stored["items"].as_array().unwrap().len() >= 4, "{stored}");
    let size = "an outfit has 4 to 8 articles (`outfit` in the schema), found 12";
    assert_eq!(refusal("/outfits", &body(12)).await, (422, size.to_owned()));
    assert_eq!(refusal("/complete", &complete(11)).await, (422, most.replace("12", "8").replace("13", "12")));
    let refused: Value = bulk(lines(12)).await.json();
    assert_eq!(refused["errors"][0]["detail"], size);
}

#[apply(on_sqlite)]
async fn outfits_of_a_customer_are_listed(db: TestDatabase) {
    let service = start(&db).await;
    for articles in [["a", "b", "d", "e"], ["a", "b", "d", "f"], ["a", "b", "e", "f"]] {
        save(&service, &json!({"customer": "c", "articles": articles})).is(201).await;
    }
    let first = service.json("/customers/c/outfits?n=2").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = service.json(&format!("/customers/c/outfits?n=2&cursor={cursor}")).await;
    assert_eq!(last["items"][0]["articles"], json!(["a", "b", "e", "f"]));
    assert_eq!(last["next_cursor"], Value::Null);
    let export = service.json("/customers/c/export").await;
    assert_eq!(export["outfits"].as_array().unwrap().len(), 3);
    assert_eq!(service.get("/customers/nobody/outfits").await.status(), StatusCode::NOT_FOUND);
    service.delete("/customers/c").await;
    assert_eq!(service.store.outfits().count().await, Ok(0), "an outfit is about a person");
}

#[apply(on_sqlite)]
async fn a_stream_is_checked(db: TestDatabase) {
    let service = start(&db).await;
    let good = "{\"customer\":\"c\",\"articles\":[\"a\",\"b\",\"d\",\"e\"],\"split\":\"train\"}\n";
    let bad = "{\"customer\":\"x\",\"articles\":[\"a\",\"b\",\"d\",\"y\"]}\n";
    let answer = service.post("/outfits/bulk", "application/x-ndjson", format!("{good}{bad}")).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let problem: Value = answer.json();
    assert_eq!(
        problem["errors"],
        json!([{"line": 2, "detail": "customer \"x\" is unknown; article \"y\" is not in the catalogue"}])
    );
    let answer = service.post("/outfits/bulk", "application/x-ndjson", good).await;
    assert_eq!(answer.json()["added"], 1);
    let listed = service.json("/customers/c/outfits").await;
    assert_eq!(
        (&listed["items"][0]["split"], &listed["items"][0]["origin"]),
        (&json!("train"), &json!("imported"))
    );
}
