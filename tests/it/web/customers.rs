use futures_util::TryStreamExt;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Guarded, Service};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

#[apply(on_sqlite)]
async fn put_get_and_erase(service: Service) {
    let features = json!({"age": 28.0, "preferred_colours": ["grey", "red"], "country": null});
    let answer = service.put("/customers/c-1", &json!({"features": features})).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let stored = json!({"id": "c-1", "features": {"age": 28, "preferred_colours": ["grey", "red"]}});
    let expected = json!({"id": "c-1", "features": stored["features"], "warnings": []});
    assert_eq!(answer.json(), expected);
    assert_eq!(service.json("/customers/c-1").await, stored);
    let again = service.put("/customers/c-1", &stored).await;
    assert_eq!(again.status(), StatusCode::OK, "a GET's answer can be PUT back");

    assert_eq!(service.delete("/customers/c-1").await.status(), StatusCode::NO_CONTENT);
    let gone = service.get("/customers/c-1").await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    assert_eq!(gone.json()["detail"], "there is no customer \"c-1\"");
    assert_eq!(service.delete("/customers/c-1").await.status(), StatusCode::NOT_FOUND);
}

#[apply(on_sqlite)]
async fn features_are_checked_against_the_schema(service: Service) {
    let given = json!({"features": {"gender": "other", "hat size": 57}});
    let stored: Value = service.put("/customers/c", &given).await.json();
    assert_eq!(stored["features"], given["features"], "it is stored");
    assert_eq!(
        stored["warnings"],
        json!([
            {"pointer": "/features/gender", "detail": "feature \"gender\" has no value \"other\"; models do not see it"},
            {"pointer": "/features/hat size", "detail": "the schema has no feature \"hat size\"; models do not see it"},
        ])
    );
    let answer = service.put("/customers/c", &json!({"features": {"age": "old", "fit": ["slim"]}})).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let problem: Value = answer.json();
    assert_eq!(problem["code"], "invalid");
    assert_eq!(
        problem["errors"],
        json!([
            {"pointer": "/features/age", "detail": "feature \"age\" takes a finite number, found the string \"old\""},
            {"pointer": "/features/fit", "detail": "feature \"fit\" takes a string or a whole number, found a list of 1"},
        ])
    );
    assert_eq!(service.json("/customers/c").await["features"], given["features"], "nothing changed");
    let other = service.put("/customers/c", &json!({"id": "d", "features": {}})).await;
    let problem: Value = other.json();
    assert_eq!(problem["errors"][0]["pointer"], "/id");
}

#[apply(on_sqlite)]
async fn ids_may_be_any_text(service: Service) {
    for (path, id) in [
        ("/customers/a%2Fb%20%C3%A4%3F", "a/b ä?"),
        ("/customers/%F0%9F%98%80%25", "😀%"),
        ("/customers/%62ulk", "bulk"),
    ] {
        assert_eq!(service.put(path, &json!({"features": {}})).await.status(), StatusCode::CREATED);
        assert_eq!(service.json(path).await["id"], id);
        assert_eq!(service.json(&format!("{path}/outfits")).await, json!({"items": [], "next_cursor": null}));
        assert_eq!(service.delete(path).await.status(), StatusCode::NO_CONTENT);
    }
    for (path, status, code) in [
        ("/customers/%00", 422, "invalid"),
        ("/customers/%ff", 400, "malformed"),
        (&format!("/customers/{}", "x".repeat(129)), 422, "invalid"),
        ("/customers/a/b", 404, "not-found"),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.json()["code"], code, "{path}");
    }
    // Addresses lose the segments `.` and `..`, so such a customer could never be read or erased.
    for id in [".", ".."] {
        let line = format!("{{\"id\": \"{id}\", \"features\": {{}}}}");
        let answer = service.post("/customers/bulk", "application/x-ndjson", line).await;
        assert_eq!(answer.status(), 422, "{id}");
        let outfit = json!({"customer": id, "articles": ["a", "b"]});
        service.post("/outfits", "application/json", outfit.to_string()).is(422).await;
    }
    assert_eq!(service.store.customers().count().await, Ok(0));
}

#[apply(contract)]
async fn a_list_continues_at_its_cursor(service: Service) {
    for (id, country) in [("c 1", "CH"), ("c 2", "AT"), ("ä", "CH"), ("b", "CH")] {
        service.put(&format!("/customers/{id}"), &json!({"features": {"country": country}})).await;
    }
    let ids = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|customer| customer["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = service.json("/customers?n=2").await;
    assert_eq!((ids(&first), &first["next_cursor"]), (vec!["b".into(), "c 1".into()], &json!("c 1")));
    let last = service.json("/customers?n=2&cursor=c+1").await;
    assert_eq!((ids(&last), &last["next_cursor"]), (vec!["c 2".into(), "ä".into()], &Value::Null));
    assert_eq!(ids(&service.json("/customers?search=ch%201").await), ["c 1"]);
    // Words are whole ones, whatever comes in pages, and what they never wear is not theirs.
    for (id, gender, colour) in [("m-1", "male", "red"), ("m-2", "female", "Grün"), ("m-3", "male", "Grün")]
    {
        let features = json!({"gender": gender, "preferred_colours": [colour], "nogo_colours": ["navy"]});
        service.put(&format!("/customers/{id}"), &json!({"features": features})).await;
    }
    let male = service.json("/customers?search=male&n=1").await;
    assert_eq!((ids(&male), &male["next_cursor"]), (vec!["m-1".into()], &json!("m-1")));
    let rest = service.json("/customers?search=male&n=1&cursor=m-1").await;
    assert_eq!((ids(&rest), &rest["next_cursor"]), (vec!["m-3".into()], &Value::Null));
    for (search, found) in
        [("GR%C3%9CN,male", &["m-3"][..]), ("gender:female", &["m-2"]), ("navy", &[]), ("fem", &[])]
    {
        assert_eq!(ids(&service.json(&format!("/customers?search={search}")).await), found, "{search}");
    }
    for (query, parameter) in
        [("n=0", "n"), ("n=501", "n"), ("n=x", "n"), ("cursor=%00", "cursor"), ("sort=id", "sort")]
    {
        let answer = service.get(&format!("/customers?{query}")).await;
        assert_eq!(answer.status(), 422, "{query}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{problem}");
    }
}

const NDJSON: &str = "application/x-ndjson";

#[apply(on_sqlite)]
async fn a_stream_is_imported(service: Service) {
    service.put("/customers/c-1", &json!({"features": {"age": 1}})).await;
    let line = |n: u32| format!("{{\"id\":\"c-{n}\",\"features\":{{\"age\":{},\"x\":1}}}}\n", 20 + n % 50);
    let lines: String = (0..4500).map(line).collect();
    let answer = service.post("/customers/bulk", NDJSON, lines.clone()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let warning = json!({"line": 1, "detail": "the schema has no feature \"x\"; models do not see it (4500 lines in all)"});
    let brought: Value = answer.json();
    assert_eq!(
        brought,
        json!({"added": 4499, "changed": 1, "unchanged": 0, "deleted": 0, "absent": 0, "bad": 0,
               "errors": [], "warnings": [warning]})
    );
    let again: Value = service.post("/customers/bulk", NDJSON, lines).await.json();
    assert_eq!(again["unchanged"], 4500);
    assert_eq!(service.store.customers().count().await, Ok(4500));
}

#[apply(on_sqlite)]
async fn a_bad_line_refuses_the_stream(service: Service) {
    let mut lines = String::from("{\"id\":\"good\",\"features\":{}}\n\n");
    for _ in 0..25 {
        lines.push_str("{\"id\":\"c\",\"features\":{\"age\":\"old\"}}\n");
    }
    let answer = service.post("/customers/bulk", NDJSON, lines.clone()).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let problem: Value = answer.json();
    assert_eq!(
        problem["detail"],
        "nothing was stored: 25 of 26 lines are bad; fix them, or store the 1 good ones with ?skip_bad=true"
    );
    assert_eq!(problem["errors"].as_array().unwrap().len(), 20);
    let first =
        json!({"line": 3, "detail": "feature \"age\" takes a finite number, found the string \"old\""});
    assert_eq!(problem["errors"][0], first);
    assert_eq!(service.store.customers().count().await, Ok(0));

    let answer = service.post("/customers/bulk?skip_bad=true", NDJSON, lines).await;
    let brought: Value = answer.json();
    assert_eq!((&brought["added"], &brought["bad"]), (&json!(1), &json!(25)));
    let none = service.post("/customers/bulk?skip_bad=true", NDJSON, "nonsense\n").await;
    assert_eq!(none.status(), StatusCode::UNPROCESSABLE_ENTITY, "no line is good");
    let wrong = service.post("/customers/bulk", "application/json", "{}").await;
    assert_eq!(wrong.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let now = service.store.customers().all().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(now.len(), 1);
}

#[apply(on_sqlite)]
async fn a_stream_has_its_own_limit(db: TestDatabase) {
    let limits = atelier::config::Limits { body_bytes: 1024, bulk_bytes: 4096, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let lines = |bytes: usize| format!("{{\"id\":\"c\",\"features\":{{}}}}{}\n", " ".repeat(bytes - 25));
    let answer = service.post("/customers/bulk", NDJSON, lines(4096)).await;
    assert_eq!(answer.status(), StatusCode::OK, "{:?}", answer.text());
    let answer = service.post("/customers/bulk", NDJSON, lines(4097)).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem: Value = answer.json();
    assert_eq!(problem["detail"], "the body is longer than this path's limit of 4096 bytes");
    let long = json!({"features": {"country": "x".repeat(10 << 20)}});
    assert_eq!(service.put("/customers/c", &long).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

/// Each different row is remembered, and takes memory.
#[apply(on_sqlite)]
async fn a_stream_has_a_limit_of_rows(db: TestDatabase) {
    let limits = atelier::config::Limits { bulk_rows: 3, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let customer = |id: &str| format!("{{\"id\":\"{id}\",\"features\":{{}}}}\n");
    let lines = |ids: &[&str]| ids.iter().map(|id| customer(id)).collect::<String>();
    let answer = service.post("/customers/bulk", NDJSON, lines(&["a", "b", "c"])).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = service.post("/customers/bulk", NDJSON, lines(&["d", "e", "d", "f"])).await;
    let problem: Value = answer.json();
    assert_eq!(problem["errors"], json!([{"line": 3, "detail": "customer \"d\" is already in line 1"}]));
    for path in ["/customers/bulk", "/customers/bulk?skip_bad=true"] {
        let answer = service.post(path, NDJSON, lines(&["d", "e", "d", "f", "g"])).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let problem: Value = answer.json();
        assert_eq!(problem["detail"], "nothing was stored: an import takes at most 3 rows; split it");
        assert_eq!(
            problem["errors"],
            json!([{"line": 5, "detail": "an import takes at most 3 rows; split it"}])
        );
    }
    assert_eq!(service.store.customers().count().await, Ok(3));
}

#[apply(on_sqlite)]
async fn an_item_called_bulk_is_like_any_other(Guarded(service): Guarded, db: TestDatabase) {
    for (table, body) in [("customers", json!({"features": {}})), ("articles", json!({"type": "coat"}))] {
        let path = format!("/{table}/bulk");
        assert_eq!(
            service.put(&path, &body).await.status(),
            StatusCode::UNAUTHORIZED,
            "keys are needed as ever"
        );
    }
    let service = Service::start(&db).await;
    for (table, body) in [("customers", json!({"features": {}})), ("articles", json!({"type": "coat"}))] {
        let path = format!("/{table}/bulk");
        assert_eq!(service.get(&path).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(service.put(&path, &body).await.status(), StatusCode::CREATED);
        assert_eq!(service.json(&path).await["id"], "bulk");
        assert_eq!(service.json(&format!("/{table}/%62ulk")).await["id"], "bulk");
        let mut line = body.clone();
        line["id"] = json!("x");
        assert_eq!(
            service.post(&path, NDJSON, format!("{line}\n")).await.status(),
            StatusCode::OK,
            "POST imports"
        );
        assert_eq!(service.delete(&path).await.status(), StatusCode::NO_CONTENT);
        assert_eq!(service.get(&path).await.status(), StatusCode::NOT_FOUND);
        let refused = service.call(reqwest::Method::TRACE, path);
        let refused = refused.await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    for id in ["bulk", "export", "outfits"] {
        let path = format!("/customers/{id}");
        assert_eq!(service.put(&path, &json!({"features": {}})).await.status(), StatusCode::CREATED);
        assert_eq!(service.json(&format!("{path}/export")).await["customer"]["id"], id);
        assert_eq!(service.json(&format!("{path}/outfits")).await["items"], json!([]));
        assert_eq!(service.delete(&path).await.status(), StatusCode::NO_CONTENT);
    }
}

/// A Mac writes ü as u and two dots; a byte order mark and a zero-width space are invisible.
#[apply(on_sqlite)]
async fn an_id_is_one_in_every_form_of_its_letters(service: Service) {
    let forms = ["z%C3%BC", "zu%CC%88", "%EF%BB%BFz%C3%BC", "z%E2%80%8Bu%CC%88"];
    for (table, body) in [("customers", json!({"features": {}})), ("articles", json!({"type": "coat"}))] {
        for (place, form) in forms.iter().enumerate() {
            let path = format!("/{table}/{form}");
            let mut body = body.clone();
            body["id"] = json!("zu\u{308}");
            let status = if place == 0 { StatusCode::CREATED } else { StatusCode::OK };
            let answer = service.put(&path, &body).await;
            assert_eq!(answer.status(), status, "{path}");
            assert_eq!(answer.json()["id"], "zü");
            assert_eq!(service.json(&path).await["id"], "zü");
        }
        assert_eq!(service.json(&format!("/{table}")).await["items"].as_array().unwrap().len(), 1);
    }
    let twice = "{\"id\":\"z\u{fc}\",\"features\":{}}\n{\"id\":\"zu\u{308}\",\"features\":{}}\n";
    let problem: Value = service.post("/customers/bulk", NDJSON, twice).await.json();
    assert_eq!(problem["errors"], json!([{"line": 2, "detail": "customer \"zü\" is already in line 1"}]));
    assert_eq!(service.delete("/customers/zu%CC%88").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(service.get("/customers/z%C3%BC").await.status(), StatusCode::NOT_FOUND);
}

#[apply(on_sqlite)]
async fn numbers_out_of_any_sense_are_warned_of(service: Service) {
    for (features, warned) in [
        (json!({"age": 1e308, "height": -5}), vec!["age", "height"]),
        (json!({"height": 1.72, "weight": 72_000}), vec!["height", "weight"]),
        (json!({"age": -5}), vec!["age"]),
        (json!({"age": 0, "height": 235, "weight": 170}), vec![]),
        (json!({"age": 122, "height": 115, "weight": 0}), vec![]),
    ] {
        let stored: Value = service.put("/customers/c", &json!({"features": features})).await.json();
        let warnings = stored["warnings"].as_array().unwrap();
        let pointers: Vec<&str> =
            warnings.iter().map(|warning| warning["pointer"].as_str().unwrap()).collect();
        let expected: Vec<String> = warned.iter().map(|name| format!("/features/{name}")).collect();
        assert_eq!(pointers, expected, "{features}");
        let line = format!("{}\n", json!({"id": "c", "features": features}));
        let brought: Value = service.post("/customers/bulk", NDJSON, line).await.json();
        assert_eq!(brought["warnings"].as_array().unwrap().len(), warned.len(), "{brought}");
    }
    let stored: Value = service.put("/customers/c", &json!({"features": {"age": 1e308}})).await.json();
    assert_eq!(
        stored["warnings"][0]["detail"],
        "feature \"age\" is 1e+308, but 0 to 122 years is plausible; models see the nearest bucket"
    );
    // In a file, one warning counts all its rows.
    let line = |n: i32| format!("{{\"id\":\"c-{n}\",\"features\":{{\"age\":{}}}}}\n", -1 - n);
    let lines: Vec<String> = (0..30).map(line).collect();
    let brought: Value = service.post("/customers/bulk", NDJSON, lines.concat()).await.json();
    assert_eq!(brought["warnings"].as_array().unwrap().len(), 1, "{brought}");
    assert!(brought["warnings"][0]["detail"].as_str().unwrap().ends_with("(30 lines in all)"), "{brought}");

    service.bring_in_demo().await;
    service.serve_demo().await;
    let request =
        json!({"outfit": [null, null, null, null], "k": 1, "features": {"age": -5, "height": 1e300}});
    let answer = service.ask_ok("/complete", &request).await;
    let codes: Vec<&Value> = answer["warnings"].as_array().unwrap().iter().map(|w| &w["code"]).collect();
    assert_eq!(codes, ["implausible-number", "implausible-number"]);
}
