//! What `/complete` and similar endpoints refuse or warn of, with their messages.

use serde_json::json;

use super::{Demo, Service, outfits};
use crate::harness::{apply, on_sqlite};

#[apply(on_sqlite)]
async fn invalid_requests_are_refused_with_pointers(Demo(service): Demo) {
    let article = outfits()[0].articles()[0].to_string();
    let cases = [
        (json!({"outfit": ["nowhere", null]}), "/outfit/0", "there is no article nowhere"),
        (json!({"outfit": [article, article, null]}), "/outfit/1", "is in the outfit twice"),
        (
            json!({"outfit": [null, null, null, null, null, null, null, null, null]}),
            "/outfit",
            "at most 8 slots, found 9",
        ),
        (json!({"outfit": ["a|b", null]}), "/outfit/0", "an id cannot contain"),
        (json!({"outfit": [null], "k": 0}), "/k", "k is from 1 to 250, found 0"),
        (json!({"outfit": [null], "k": 251}), "/k", "found 251"),
        (json!({"outfit": [null], "k": 51, "diversity": 0.1}), "/k", "with diversity k is at most 50"),
        (json!({"outfit": [null], "k": -1}), "/k", "expected a whole number from 0"),
        (json!({"outfit": [null], "sets": 17}), "/sets", "sets are 0 to 16, found 17"),
        (json!({"outfit": [null], "diversity": 1.5}), "/diversity", "from 0 to 1, found 1.5"),
        (
            json!({"outfit": [null], "method": "bert"}),
            "/method",
            "this release has no method bert; it has none, c,",
        ),
        (json!({"outfit": [null], "method": "BERT"}), "/method", "hyphens, found \"BERT\""),
        (json!({"outfit": [null], "customer": "nobody"}), "/customer", "there is no customer nobody"),
        (json!({"outfit": [null], "features": {"age": "old"}}), "/features/age", "takes a finite number"),
        (
            json!({"outfit": [article, null], "filters": {"types": {"0": ["coat"]}}}),
            "/filters/types/0",
            "slot 0 is not a blank",
        ),
        (
            json!({"outfit": [null], "filters": {"types": {"0": ["spaceship"]}}}),
            "/filters/types/0/0",
            "the catalogue has no articles of type",
        ),
        (
            json!({"outfit": [null], "filters": {"types": {"0": []}}}),
            "/filters/types/0",
            "needs at least one",
        ),
        (
            json!({"outfit": [null], "filters": {"types": {"x": ["coat"]}}}),
            "/filters/types/x",
            "a slot's number from 0, found \"x\"",
        ),
        (
            json!({"outfit": [null], "filters": {"price": {"min": 9, "max": 2}}}),
            "/filters/price",
            "above the highest",
        ),
        (json!({"outfit": [null], "filters": {"price": {"min": -1}}}), "/filters/price/min", "of 0 or more"),
        (json!({"outfit": [null], "filters": []}), "/filters", "sequence, expected an object"),
        (
            json!({"outfit": [null], "filters": {"price": [null, null]}}),
            "/filters/price",
            "sequence, expected an object",
        ),
        (json!({"outfit": "x"}), "/outfit", "expected a sequence"),
        (json!({"outfit": [null], "colour": "red"}), "", "colour"),
        (json!({}), "", "outfit"),
    ];
    for (request, pointer, part) in cases {
        let (status, problem) = service.ask("/complete", &request).await;
        assert_eq!(status, 422, "{request} {problem}");
        assert_eq!(problem["code"], "invalid");
        let error = &problem["errors"][0];
        assert!(error["detail"].as_str().unwrap().contains(part), "{request}: {problem:#}");
        assert!(error["pointer"].as_str().unwrap().starts_with(pointer), "{request}: {problem:#}");
    }
    let many = json!({"outfit": ["nowhere", "nor here", null], "k": 0});
    let (_, problem) = service.ask("/complete", &many).await;
    assert_eq!(problem["errors"].as_array().unwrap().len(), 3, "all at once: {problem:#}");
    let warned = service
        .ask_ok("/complete", &json!({"outfit": [null], "features": {"mood": "gay", "gender": "?"}}))
        .await;
    let codes: Vec<&str> =
        warned["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"unknown-feature") && codes.contains(&"unknown-value"), "{codes:?}");
}

#[apply(on_sqlite)]
async fn without_a_release_nothing_is_completed(service: Service) {
    for (path, body) in [
        ("/complete", json!({"outfit": [null]})),
        ("/compare", json!({"outfit": [null]})),
        ("/score", json!({"outfit": ["a", "b"]})),
    ] {
        let (status, problem) = service.ask(path, &body).await;
        assert_eq!((status, &problem["code"]), (503, &json!("no-release")), "{path}");
    }
}
