//! `/compare` on the demo release.

use atelier::config::Limits;
use atelier_core::domain::{Customer, Outfit};
use serde_json::{Value, json};

use super::{Demo, Service, rows};
use crate::{
    demo,
    harness::{TestDatabase, apply, on_sqlite},
};

fn request(outfit: &Outfit) -> Value {
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    slots[0] = Value::Null;
    json!({"customer": outfit.customer.as_str(), "outfit": slots, "true_article": outfit.articles()[0].as_str(), "k": 10})
}

#[apply(on_sqlite)]
async fn compares_all_methods(Demo(service): Demo) {
    let outfit = &rows::<Outfit>()[0];
    let request = request(outfit);
    let answer = service.ask_ok("/compare", &request).await;
    let columns = answer["columns"].as_array().unwrap();
    let methods: Vec<&str> = columns.iter().map(|column| column["method"].as_str().unwrap()).collect();
    let expected: Vec<String> = demo::methods().into_iter().map(String::from).collect();
    assert_eq!(methods, expected);
    assert_eq!(answer["slot"], 0);
    for column in columns {
        let mut single = request.clone();
        single.as_object_mut().unwrap().remove("true_article");
        single["method"] = column["method"].clone();
        let single = service.ask_ok("/complete", &single).await;
        let ids = |suggestions: &Value| {
            let all = suggestions.as_array().unwrap().iter().map(|s| s["article"]["id"].clone());
            all.collect::<Vec<_>>()
        };
        assert_eq!(ids(&column["suggestions"]), ids(&single["blanks"][0]["suggestions"]));
        let placement = &column["true_article"];
        assert!(placement["rank"].as_u64().unwrap() >= 1 && placement.get("probability").is_none());
        assert_eq!(placement["share"].is_number(), placement["admissible"] == true, "{placement}");
        let found = ids(&column["suggestions"]).iter().position(|id| *id == request["true_article"]);
        if placement["admissible"] == true
            && let Some(place) = found
        {
            assert_eq!(placement["rank"], place + 1);
            let [one, other] =
                [placement, &column["suggestions"][place]].map(|of| of["share"].as_f64().unwrap());
            assert!((one - other).abs() < 1e-9, "{one} {other}");
        }
        assert_eq!(column["personas"].is_array(), column["method"].as_str().unwrap().contains("latent"));
        assert_eq!(column["steps"].is_number(), column["method"].as_str().unwrap().contains("universal"));
    }
    // A new article, which only match can rank, and one that is not there.
    let put = service.put("/articles/bare-coat", &json!({"type": "coat"})).await;
    assert!(put.is_ok());
    for (id, method, code) in [
        ("bare-coat", "gsu", "article-not-in-release"),
        ("bare-coat", "match", ""),
        ("nope", "match", "unknown-article"),
    ] {
        let mut request = request.clone();
        (request["methods"], request["true_article"]) = (json!([method]), id.into());
        request["probability"] = true.into();
        let column = service.ask_ok("/compare", &request).await["columns"][0].take();
        let codes: Vec<&str> = column["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["code"].as_str().unwrap())
            .collect();
        assert_eq!(
            (codes.contains(&code), column["true_article"]["probability"].is_number()),
            (!code.is_empty(), code.is_empty())
        );
    }
    let pairs = answer["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 36);
    for pair in pairs {
        for likeness in ["overlap", "rank_biased_overlap"] {
            assert!((0.0..=1.0 + 1e-9).contains(&pair[likeness].as_f64().unwrap()), "{pair}");
        }
    }
}

#[apply(on_sqlite)]
async fn compares_customers(Demo(service): Demo) {
    let outfit = &rows::<Outfit>()[0];
    let customers: Vec<String> =
        rows::<Customer>()[..3].iter().map(|customer| customer.id.to_string()).collect();
    let mut request = request(outfit);
    request.as_object_mut().unwrap().remove("customer");
    request["customers"] = json!(customers);
    request["filters"] = json!({"no_gos": false, "fit": false});
    for (method, same) in [("none", true), ("gsu", false)] {
        request["methods"] = json!([method]);
        let answer = service.ask_ok("/compare", &request).await;
        let columns = answer["columns"].as_array().unwrap();
        assert_eq!(columns.iter().map(|column| column["customer"].clone()).collect::<Vec<_>>(), customers);
        let pairs = answer["pairs"].as_array().unwrap();
        assert!(!pairs.is_empty(), "{answer:#}");
        let alike = pairs.iter().all(|pair| pair["rank_biased_overlap"].as_f64().unwrap() > 1.0 - 1e-9);
        assert_eq!(alike, same, "{method}");
    }
}

#[apply(on_sqlite)]
async fn invalid_comparisons_are_refused(Demo(service): Demo) {
    let customer = rows::<Customer>()[0].id.to_string();
    let cases = [
        (json!({"outfit": [null, null]}), "/outfit"),
        (json!({"outfit": [null], "methods": ["gsu", "gsu"]}), "/methods/1"),
        (json!({"outfit": [null], "methods": ["bert"]}), "/methods/0"),
        (json!({"outfit": [null], "customers": [customer, "nobody"]}), "/customers/1"),
        (json!({"outfit": [null], "customer": customer, "customers": [customer]}), "/customers"),
        (json!({"outfit": [null], "customers": [customer, "x"], "methods": ["gsu", "none"]}), "/methods"),
        (json!({"outfit": [null], "true_article": ""}), "/true_article"),
        (json!({"outfit": [null], "k": 0}), "/k"),
    ];
    for (request, pointer) in cases {
        let (status, problem) = service.ask("/compare", &request).await;
        assert_eq!(
            (status, &problem["errors"][0]["pointer"]),
            (422, &json!(pointer)),
            "{request}: {problem:#}"
        );
    }
}

#[apply(on_sqlite)]
async fn columns_are_limited(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { columns: 4, ..Limits::default() }).await;
    // Without named methods, all of the release are asked for.
    let (status, problem) = service.ask("/compare", &json!({"outfit": [null]})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/methods")), "{problem:#}");
    let named = json!({"outfit": [null], "methods": ["none", "c", "np", "gsu"]});
    assert_eq!(service.ask("/compare", &named).await.0, 200);
    // A name that is not understood hides no other mistake, and places are those of the request.
    let mixed = json!({"outfit": [null], "methods": ["bert", "gsu", "gsu"]});
    let (_, problem) = service.ask("/compare", &mixed).await;
    let pointers: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/methods/0", "/methods/2"]);
}
