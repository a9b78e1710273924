use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Service, header};
use crate::harness::{TestDatabase, apply, contract};

const JSON: &str = "application/json";

async fn start(db: &TestDatabase) -> Service {
    let service = Service::start(db).await;
    service.put("/customers/c", &json!({"features": {"age": 28}})).await;
    for id in ["a", "b", "d", "e", "f"] {
        service.put(&format!("/articles/{id}"), &json!({"type": "coat"})).await;
    }
    service
}

async fn save(service: &Service, body: &Value) -> reqwest::Response {
    service.post("/outfits", JSON, body.to_string()).await
}

#[apply(contract)]
async fn save_get_and_delete(db: TestDatabase) {
    let service = start(&db).await;
    let body = json!({"customer": "c", "articles": ["d", "a", "e", "b"], "features": {"occasion": "office", "mood": 1}});
    let answer = save(&service, &body).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let path = header(&answer, "location").to_owned();
    let mut saved: Value = answer.json().await.unwrap();
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
    assert_eq!(header(&again, "location"), path);
    assert_eq!(service.delete(&path).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.get(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.delete(&path).await.status(), StatusCode::NOT_FOUND);
}

#[apply(contract)]
async fn an_invalid_outfit_is_refused_with_pointers(db: TestDatabase) {
    let service = start(&db).await;
    for (field, value, pointers) in [
        ("customer", json!("nobody"), &["/customer"][..]),
        ("customer", json!(" c"), &["/customer"]),
        ("articles", json!(["a", "b", "d"]), &["/articles"]),
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
        let problem: Value = answer.json().await.unwrap();
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

#[apply(contract)]
async fn outfits_of_a_customer_are_listed(db: TestDatabase) {
    let service = start(&db).await;
    for articles in [["a", "b", "d", "e"], ["a", "b", "d", "f"], ["a", "b", "e", "f"]] {
        assert_eq!(save(&service, &json!({"customer": "c", "articles": articles})).await.status(), 201);
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

#[apply(contract)]
async fn a_stream_is_checked(db: TestDatabase) {
    let service = start(&db).await;
    let good = "{\"customer\":\"c\",\"articles\":[\"a\",\"b\",\"d\",\"e\"],\"split\":\"train\"}\n";
    let bad = "{\"customer\":\"x\",\"articles\":[\"a\",\"b\",\"d\",\"y\"]}\n";
    let answer = service.post("/outfits/bulk", "application/x-ndjson", format!("{good}{bad}")).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(
        problem["errors"],
        json!([{"line": 2, "detail": "customer \"x\" is unknown; article \"y\" is not in the catalogue"}])
    );
    let answer = service.post("/outfits/bulk", "application/x-ndjson", good).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["added"], 1);
    let listed = service.json("/customers/c/outfits").await;
    assert_eq!(
        (&listed["items"][0]["split"], &listed["items"][0]["origin"]),
        (&json!("train"), &json!("imported"))
    );
}
