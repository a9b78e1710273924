use reqwest::StatusCode;
use serde_json::{Value, json};

use super::Service;
use crate::harness::{apply, on_sqlite};

#[apply(on_sqlite)]
async fn put_get_and_delete(service: Service) {
    let before = service.store.articles().revision().await.unwrap();
    let coat = json!({"type": "coat", "colour": "red", "price": 79.0, "in_stock": true, "image": null,
                      "material": ["wool", {"lining": 1.50}]});
    let answer = service.put("/articles/a%2F1", &coat).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let stored = json!({"id": "a/1", "type": "coat", "colour": "red", "price": 79, "in_stock": true,
                        "material": ["wool", {"lining": 1.5}]});
    let mut answered = stored.clone();
    answered["warnings"] = json!([]);
    assert_eq!(answer.json(), answered);
    assert_eq!(service.json("/articles/a%2F1").await, stored);
    assert_eq!(service.put("/articles/a%2F1", &stored).await.status(), StatusCode::OK);
    assert_eq!(service.store.articles().revision().await, Ok(before + 1), "the same again changes nothing");
    assert_eq!(service.delete("/articles/a%2F1").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.delete("/articles/a%2F1").await.status(), StatusCode::NOT_FOUND);
    let gone: Value = service.get("/articles/a%2F1").await.json();
    assert_eq!(gone["detail"], "there is no article \"a/1\" in the catalogue");
    assert_eq!(service.store.articles().revision().await, Ok(before + 2));
}

#[apply(on_sqlite)]
async fn an_invalid_article_is_refused_with_pointers(service: Service) {
    for (body, pointer) in [
        (json!({}), ""),
        (json!({"type": 7}), "/type"),
        (json!({"type": ""}), "/type"),
        (json!({"type": "a|b"}), "/type"),
        (json!({"type": "coat", "id": "other"}), "/id"),
        (json!({"type": "coat", "id": 7}), "/id"),
        (json!({"type": "coat", "": 7}), "/"),
        (json!({"type": "coat", "a/b": ["\u{0}"]}), "/a~1b"),
        (json!({"type": "coat", "a": {"\u{0}": 1}}), "/a"),
        (json!({"type": "coat", "variants": [{"id": ".."}]}), "/variants"),
    ] {
        let answer = service.put("/articles/a", &body).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    assert_eq!(service.store.articles().count().await, Ok(0));
}

#[apply(on_sqlite)]
async fn a_list_can_be_searched(service: Service) {
    for (id, colour) in [("a", "red"), ("b", "blue"), ("c", "Red")] {
        service.put(&format!("/articles/{id}"), &json!({"type": "coat", "colour": colour})).await;
    }
    let page = service.json("/articles?search=RED+coat&n=1").await;
    assert_eq!(page, json!({"items": [{"id": "a", "type": "coat", "colour": "red"}], "next_cursor": "a"}));
    let page = service.json("/articles?search=RED+coat&n=1&cursor=a").await;
    assert_eq!(page["items"][0]["id"], "c");
    assert_eq!(page["next_cursor"], Value::Null);
}

#[apply(on_sqlite)]
async fn a_stream_is_one_change(service: Service) {
    let before = service.store.articles().revision().await.unwrap();
    let lines: Vec<String> =
        (0..4500).map(|n| format!("{{\"id\":\"a-{n}\",\"type\":\"coat\",\"n\":{n}}}\n")).collect();
    let answer = service.post("/articles/bulk", "application/x-ndjson; charset=utf-8", lines.concat()).await;
    let brought: Value = answer.json();
    assert_eq!((&brought["added"], &brought["bad"]), (&json!(4500), &json!(0)));
    assert_eq!(service.store.articles().revision().await, Ok(before + 4500), "each article is counted");
    let lines = "{\"id\":\"new\",\"type\":\"hat\"}\n{\"id\":\"b\"}\n{\"id\":\"..\",\"type\":\"hat\"}";
    let bad = service.post("/articles/bulk", "application/x-ndjson", lines).await;
    let problem: Value = bad.json();
    assert_eq!(
        problem["errors"],
        json!([
            {"line": 2, "detail": "field \"type\" is missing"},
            {"line": 3, "detail": "field \"id\": an id cannot be \"..\", which addresses lose"},
        ])
    );
    assert_eq!(service.get("/articles/new").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.store.articles().revision().await, Ok(before + 4500), "nothing was stored");
}

#[apply(on_sqlite)]
async fn prices_and_stock_are_stored_as_number_and_boolean(service: Service) {
    for (given, stored) in [
        (json!({"price": "64,55", "in_stock": "ja"}), json!({"price": 64.55, "in_stock": true})),
        (json!({"price": "1.299,00", "in_stock": "false"}), json!({"price": 1299, "in_stock": false})),
        (json!({"price": "1 299", "in_stock": 0}), json!({"price": 1299, "in_stock": false})),
        (json!({"price": 0.0, "in_stock": 1.0}), json!({"price": 0, "in_stock": true})),
        (json!({"price": null, "in_stock": null}), json!({})),
    ] {
        let mut body = given.clone();
        body["type"] = json!("coat");
        assert!(service.put("/articles/one", &body).await.is_ok(), "{given}");
        body["id"] = json!("two");
        let line = format!("{body}\n");
        assert_eq!(
            service.post("/articles/bulk", "application/x-ndjson", line).await.status(),
            200,
            "{given}"
        );
        for id in ["one", "two"] {
            let mut expected = stored.clone();
            (expected["id"], expected["type"]) = (json!(id), json!("coat"));
            assert_eq!(service.json(&format!("/articles/{id}")).await, expected);
        }
    }
}

#[apply(on_sqlite)]
async fn what_is_no_price_and_no_stock_is_refused(service: Service) {
    for (name, wrong) in [
        ("price", json!("€12")),
        ("price", json!("NaN")),
        ("price", json!("inf")),
        ("price", json!(-5)),
        ("price", json!("-5")),
        ("price", json!("")),
        ("price", json!("1,299")),
        ("price", json!(true)),
        ("price", json!([12])),
        ("in_stock", json!("vielleicht")),
        ("in_stock", json!(3)),
        ("in_stock", json!("")),
        ("in_stock", json!([true])),
    ] {
        let mut body = json!({"type": "coat"});
        body[name] = wrong;
        let answer = service.put("/articles/a", &body).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], format!("/{name}"), "{problem}");
        body["id"] = json!("a");
        let lines = format!("{{\"id\":\"good\",\"type\":\"hat\"}}\n{body}\n");
        let answer = service.post("/articles/bulk", "application/x-ndjson", lines).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let in_line: Value = answer.json();
        let detail = format!("{} (article \"a\")", problem["errors"][0]["detail"].as_str().unwrap());
        assert_eq!(in_line["errors"], json!([{"line": 2, "detail": detail}]));
    }
    assert_eq!(service.store.articles().count().await, Ok(0), "nothing was stored");
}

/// Callers who do not read their pages take little memory.
#[apply(on_sqlite)]
async fn a_page_ends_early_after_a_megabyte(service: Service) {
    for number in 0..40 {
        let (article, customer) = (format!("/articles/a-{number:02}"), format!("/customers/c-{number:02}"));
        let notes = "x".repeat(60_000);
        service.put(&article, &json!({"type": "coat", "notes": notes})).is(201).await;
        service.put(&customer, &json!({"features": {"notes": notes}})).is(201).await;
    }
    for (list, count) in [
        ("articles?", 40),
        ("articles?type=coat&", 40),
        ("articles?where=type:coat&", 40),
        ("customers?", 40),
        ("articles?search=a-1&", 10),
    ] {
        let (mut ids, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = service.json(&format!("/{list}n=500{cursor}")).await;
            assert!(page.to_string().len() < 1_200_000, "{list}");
            ids.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].to_string()));
            pages += 1;
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert!(ids.len() == count && ids.is_sorted(), "{list}: {ids:?}");
        assert_eq!(pages, count.div_ceil(18), "{list}");
    }
}

#[apply(on_sqlite)]
async fn a_price_has_at_most_twelve_digits(service: Service) {
    for (price, status) in [
        (json!(1.7e308), 422),
        (json!(1e12), 422),
        (json!("1000000000000"), 422),
        (json!(999_999_999_999.99), 201),
    ] {
        let put = service.put("/articles/a", &json!({"type": "coat", "price": price})).await;
        assert_eq!(put.status(), status, "{price}");
    }
}
