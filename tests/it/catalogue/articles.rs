use serde_json::json;

use crate::harness::{Call, Service, apply, assert_has, contract, json_lines, on_sqlite};

fn bulk(service: &Service, lines: String) -> Call {
    service.post("/articles/bulk", "application/x-ndjson; charset=utf-8", lines)
}

/// How prices and stock may be written is asked in `atelier_core::domain`.
#[apply(contract)]
async fn put_get_and_delete(service: Service) {
    let path = "/articles/a%2F1";
    let coat = json!({"type": "coat", "colour": "red", "price": "1.299,00", "in_stock": "ja", "image": null,
                      "material": ["wool", {"lining": 1.50}]});
    let mut stored = json!({"id": "a/1", "type": "coat", "colour": "red", "price": 1299, "in_stock": true,
                        "material": ["wool", {"lining": 1.5}]});
    let added = service.put(path, coat).is(201).await;
    assert_eq!(service.json(path).await, stored);
    // An answer can be sent back.
    service.put(path, &stored).is(200).await;
    stored["warnings"] = json!([]);
    assert_eq!(added.json(), stored);
    service.delete(path).is(204).await;
    service.delete(path).is(404).await;
    let gone = service.get(path).is(404).await.json();
    assert_eq!(gone["detail"], "there is no article \"a/1\" in the catalogue");
}

/// Alone and in a stream.
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
        service.put("/articles/a", body).await.assert_problem(422, &[pointer]);
    }
    for (name, wrong) in [
        ("price", json!("1,299")),
        ("price", json!([12])),
        ("in_stock", json!("vielleicht")),
        ("stock", json!({"M": "three"})),
    ] {
        let mut body = json!({"type": "coat", name: wrong});
        let pointer = format!("/{name}");
        let problem = service.put("/articles/a", &body).await.assert_problem(422, &[&pointer]);
        body["id"] = json!("a");
        let in_line = bulk(&service, format!("{{\"id\":\"good\",\"type\":\"hat\"}}\n{body}\n")).is(422).await;
        let detail = format!("{} (article \"a\")", problem["errors"][0]["detail"].as_str().unwrap());
        assert_eq!(in_line.json()["errors"], json!([{"line": 2, "detail": detail}]));
    }
    assert_eq!(service.store.articles().count().await, Ok(0), "nothing was stored");
}

#[apply(on_sqlite)]
async fn a_stream_is_one_change(service: Service) {
    let coat =
        |n: u32| json!({"id": format!("a-{n}"), "type": "coat", "price": "1.299,00", "in_stock": "nein"});
    let brought = bulk(&service, json_lines((0..4500).map(coat))).await.json();
    assert_has(&brought, json!({"added": 4500, "bad": 0}));
    let last = json!({"id": "a-4499", "type": "coat", "price": 1299, "in_stock": false});
    assert_eq!(service.json("/articles/a-4499").await, last);
    let lines = "{\"id\":\"new\",\"type\":\"hat\"}\n{\"id\":\"b\"}\n{\"id\":\"..\",\"type\":\"hat\"}";
    let problem = bulk(&service, lines.into()).is(422).await.json();
    let errors = json!([
        {"line": 2, "detail": "field \"type\" is missing"},
        {"line": 3, "detail": "field \"id\": an id cannot be \"..\", which addresses lose"},
    ]);
    assert_eq!(problem["errors"], errors);
    service.get("/articles/new").is(404).await;
}

/// Callers who do not read their pages take little memory.
#[apply(on_sqlite)]
async fn a_page_ends_early_after_a_megabyte(service: Service) {
    for number in 0..40 {
        let notes = "x".repeat(60_000);
        let article = json!({"type": "coat", "notes": notes});
        service.put(format!("/articles/a-{number:02}"), article).is(201).await;
        let customer = json!({"features": {"notes": notes}});
        service.put(format!("/customers/c-{number:02}"), customer).is(201).await;
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
            let page = service.json(format!("/{list}n=500{cursor}")).await;
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
