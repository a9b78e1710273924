//! `/compare` on the demo release.

use atelier::config::Limits;
use atelier_core::domain::{Customer, Outfit};
use serde_json::{Value, json};

use crate::{
    demo,
    harness::{
        Demo, Service, TestDatabase, apply, ids,
        json::{codes, list, number, text, with},
        on_sqlite, rows,
    },
};

/// About the first outfit without its first article.
fn request(more: Value) -> Value {
    let outfit = &rows::<Outfit>()[0];
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    let removed = slots[0].take();
    let request = json!({"customer": outfit.customer.as_str(), "outfit": slots, "k": 10});
    with(request, with(json!({"true_article": removed}), more))
}

#[apply(on_sqlite)]
async fn compares_all_methods(Demo(service): Demo) {
    let filters = json!({"price": {"max": 90}, "in_stock": false});
    let request_of_all = request(json!({"filters": filters}));
    let answer = service.ask_ok("/compare", &request_of_all).await;
    let columns = list(&answer["columns"]);
    let methods: Vec<&str> = columns.iter().map(|column| text(&column["method"])).collect();
    assert_eq!(methods, demo::methods().into_iter().map(String::from).collect::<Vec<_>>());
    assert_eq!(answer["slot"], 0);
    for (column, method) in columns.iter().zip(methods) {
        let mut single = with(request_of_all.clone(), json!({"method": method}));
        single.as_object_mut().unwrap().remove("true_article");
        let found = ids(&column["suggestions"]);
        assert_eq!(found, ids(&service.suggest(single).await), "{method}");
        let placement = &column["true_article"];
        assert!(number(&placement["rank"]) >= 1.0 && placement.get("probability").is_none());
        assert_eq!(placement["share"].is_number(), placement["admissible"] == true, "{placement}");
        let place = found.iter().position(|id| request_of_all["true_article"] == **id);
        if let Some(place) = place.filter(|_| placement["admissible"] == true) {
            assert_eq!(placement["rank"], place + 1);
            let [one, other] =
                [placement, &column["suggestions"][place]].map(|placed| number(&placed["share"]));
            assert!((one - other).abs() < 1e-9, "{one} {other}");
        }
        assert_eq!(column["personas"].is_array(), method.contains("latent"));
        assert_eq!(column["steps"].is_number(), method.contains("universal"));
    }
    assert_eq!(list(&answer["pairs"]).len(), 36);
    for pair in list(&answer["pairs"]) {
        for likeness in ["overlap", "rank_biased_overlap"] {
            assert!((0.0..=1.0 + 1e-9).contains(&number(&pair[likeness])), "{pair}");
        }
    }
}

#[apply(on_sqlite)]
async fn a_true_article_that_cannot_be_ranked_is_warned_of(Demo(service): Demo) {
    service.put("/articles/bare-coat", json!({"type": "coat"})).is(201).await;
    for (id, method, code) in [
        ("bare-coat", "gsu", Some("article-not-in-release")),
        ("bare-coat", "match", None),
        ("nope", "match", Some("unknown-article")),
    ] {
        let asked = request(json!({"methods": [method], "true_article": id, "probability": true}));
        let column = service.ask_ok("/compare", asked).await["columns"][0].take();
        let is_placed = column["true_article"]["probability"].is_number();
        assert_eq!(is_placed, code.is_none(), "{id} {method}");
        assert!(code.is_none_or(|code| codes(&column["warnings"]).contains(&code)), "{id}: {column}");
    }
}

#[apply(on_sqlite)]
async fn compares_customers(Demo(service): Demo) {
    let customers: Vec<String> =
        rows::<Customer>()[..3].iter().map(|customer| customer.id.to_string()).collect();
    let mut request = request(json!({"customers": customers, "filters": {"no_gos": false, "fit": false}}));
    request.as_object_mut().unwrap().remove("customer");
    for (method, same) in [("none", true), ("gsu", false)] {
        request["methods"] = json!([method]);
        let answer = service.ask_ok("/compare", &request).await;
        let columns: Vec<&str> =
            list(&answer["columns"]).iter().map(|column| text(&column["customer"])).collect();
        assert_eq!(columns, customers);
        let pairs = list(&answer["pairs"]);
        assert!(!pairs.is_empty(), "{answer:#}");
        let alike = pairs.iter().all(|pair| number(&pair["rank_biased_overlap"]) > 1.0 - 1e-9);
        assert_eq!(alike, same, "{method}");
    }
}

#[apply(on_sqlite)]
async fn invalid_comparisons_are_refused(db: TestDatabase) {
    let service = Service::demo_with(&db, Limits { columns: 4, ..Limits::default() }).await;
    let customer = rows::<Customer>()[0].id.to_string();
    for (request, pointers) in [
        // Without named methods, all of the release are asked for.
        (json!({}), &["/methods"][..]),
        (json!({"outfit": [null, null], "methods": ["c"]}), &["/outfit"]),
        (json!({"methods": ["gsu", "gsu"]}), &["/methods/1"]),
        // A name that is not understood hides no other mistake, and places are those of the request.
        (json!({"methods": ["bert", "gsu", "gsu"]}), &["/methods/0", "/methods/2"]),
        (json!({"customers": [customer, "nobody"], "methods": ["c"]}), &["/customers/1"]),
        (json!({"customer": customer, "customers": [customer], "methods": ["c"]}), &["/customers"]),
        (json!({"customers": [customer, "x"], "methods": ["gsu", "none"]}), &["/methods"]),
        (json!({"true_article": "", "methods": ["c"]}), &["/true_article"]),
        (json!({"k": 0, "methods": ["c"]}), &["/k"]),
    ] {
        let request = with(json!({"outfit": [null]}), request);
        service.send("/compare", request).await.assert_problem(422, pointers);
    }
    let named = json!({"outfit": [null], "methods": ["none", "c", "np", "gsu"]});
    service.send("/compare", named).is(200).await;
}
