//! What `/complete` and similar endpoints refuse or warn of, with their messages.

use serde_json::{Value, json};

use crate::harness::{
    Demo, Service, apply,
    json::{codes, text, with},
    on_sqlite, outfits,
};

#[apply(on_sqlite)]
async fn invalid_requests_are_refused_with_pointers(Demo(service): Demo) {
    let article = outfits()[0].articles()[0].to_string();
    let one = |name: &str, value: Value| Value::from_iter([(name, value)]);
    let filters = |name: &str, value: Value| json!({"filters": {name: value}});
    for (request, pointer, part) in [
        (one("outfit", json!(["nowhere", null])), "/outfit/0", "there is no article nowhere"),
        (one("outfit", json!([article, article, null])), "/outfit/1", "is in the outfit twice"),
        (one("outfit", json!(vec![Value::Null; 9])), "/outfit", "at most 8 slots, found 9"),
        (one("outfit", json!(["a|b", null])), "/outfit/0", "an id cannot contain"),
        (one("outfit", json!("x")), "/outfit", "expected a sequence"),
        (one("k", json!(0)), "/k", "k is from 1 to 250, found 0"),
        (one("k", json!(251)), "/k", "found 251"),
        (one("k", json!(-1)), "/k", "expected a whole number from 0"),
        (json!({"k": 51, "diversity": 0.1}), "/k", "with diversity k is at most 50"),
        (one("diversity", json!(1.5)), "/diversity", "from 0 to 1, found 1.5"),
        (one("sets", json!(17)), "/sets", "sets are 0 to 16, found 17"),
        (one("method", json!("bert")), "/method", "this release has no method bert; it has none, c,"),
        (one("method", json!("BERT")), "/method", "hyphens, found \"BERT\""),
        (one("customer", json!("nobody")), "/customer", "there is no customer nobody"),
        (one("features", json!({"age": "old"})), "/features/age", "takes a finite number"),
        (one("colour", json!("red")), "/colour", "colour"),
        (one("filters", json!([])), "/filters", "sequence, expected an object"),
        (
            json!({"outfit": [article, null], "filters": {"types": {"0": ["coat"]}}}),
            "/filters/types/0",
            "slot 0 is not a blank",
        ),
        (
            filters("types", json!({"0": ["spaceship"]})),
            "/filters/types/0/0",
            "the catalogue has no articles of type",
        ),
        (filters("types", json!({"0": []})), "/filters/types/0", "needs at least one"),
        (filters("types", json!({"x": ["coat"]})), "/filters/types/x", "a slot's number from 0, found \"x\""),
        (filters("price", json!({"min": 9, "max": 2})), "/filters/price", "above the highest"),
        (filters("price", json!({"min": -1})), "/filters/price/min", "of 0 or more"),
        (filters("price", json!({"max": "120"})), "/filters/price/max", "120"),
        (filters("price", json!({"total": -1})), "/filters/price/total", "of 0 or more"),
        (filters("price", json!([null, null])), "/filters/price", "sequence, expected an object"),
        (json!({"filters": {"store": "Zurich", "in_stock": false}}), "/filters/store", "in_stock"),
    ] {
        let request = with(json!({"outfit": [null]}), request);
        let problem = service.send("/complete", &request).await.assert_problem(422, &[pointer]);
        assert_eq!(problem["code"], "invalid");
        assert!(text(&problem["errors"][0]["detail"]).contains(part), "{request}: {problem:#}");
    }
    for (body, detail) in [
        ("{}", "missing field `outfit`"),
        (" [[]]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
    ] {
        let problem = service.post("/complete", "application/json", body).await.assert_problem(422, &[""]);
        assert_eq!(problem["detail"], detail);
    }
    let infinite = r#"{"outfit": [null], "filters": {"price": {"min": 1e999}}}"#;
    service.post("/complete", "application/json", infinite).is(400).await;
    let many = json!({"outfit": ["nowhere", "nor here", null], "k": 0});
    service.send("/complete", many).await.assert_problem(422, &["/outfit/0", "/outfit/1", "/k"]);
    let odd = json!({"outfit": [null], "features": {"mood": "gay", "gender": "?"}});
    let warned = service.complete(odd).await;
    let codes = codes(&warned["warnings"]);
    assert!(codes.contains(&"unknown-feature") && codes.contains(&"unknown-value"), "{codes:?}");
}

#[apply(on_sqlite)]
async fn without_a_release_nothing_is_completed(service: Service) {
    for (path, body) in [
        ("/complete", json!({"outfit": [null]})),
        ("/compare", json!({"outfit": [null]})),
        ("/score", json!({"outfit": ["a", "b"]})),
    ] {
        let problem = service.send(path, body).await.assert_problem(503, &[]);
        assert_eq!(problem["code"], "no-release", "{path}");
    }
}
