//! What a caller says of the moment: prices and stock for one answer, articles that may be gone, and which fields it wants.

use serde_json::{Value, json};

use super::{Demo, Service};
use crate::harness::{TestDatabase, apply, on_sqlite};

fn question() -> Value {
    json!({"customer": "c-014871", "outfit": ["a-00315", "a-01317", "a-00587", "a-00170", null], "k": 3})
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn suggested(completion: &Value) -> Vec<&str> {
    let suggestions = completion["blanks"][0]["suggestions"].as_array().unwrap();
    suggestions.iter().map(|suggestion| suggestion["article"]["id"].as_str().unwrap()).collect()
}

#[apply(on_sqlite)]
async fn prices_and_stock_of_the_moment_count_for_one_answer(Demo(service): Demo) {
    let ask = async |more: Value| service.ask_ok("/complete", &with(question(), &more)).await;
    let before = ask(json!({})).await;
    let first = suggested(&before)[0].to_owned();
    let stored = before["blanks"][0]["suggestions"][0]["article"].clone();
    // Sold out now, in whatever way an article says so.
    for offer in [json!({"stock": 0}), json!({"stock": {"S": 0}}), json!({"in_stock": "nein"})] {
        let now = ask(json!({"live": {first.clone(): offer}})).await;
        assert_eq!(suggested(&now)[..2], suggested(&before)[1..], "the next ones move up: {now}");
        assert_eq!((suggested(&now).len(), &now["warnings"]), (3, &json!([])), "{now}");
    }
    // A price counts for the filter, and is in the answer.
    let offer = json!({"live": {first.clone(): {"price": "1,50"}}, "filters": {"price": {"max": 2}}});
    let cheap = ask(offer).await;
    assert_eq!(cheap["blanks"][0]["admissible"], 1);
    assert_eq!(cheap["blanks"][0]["suggestions"][0]["article"], with(stored, &json!({"price": 1.5})));
    // Nothing was stored.
    assert_eq!(ask(json!({})).await["blanks"], before["blanks"]);

    service.patch(format!("/articles/{first}"), &json!({"in_stock": false})).await;
    assert!(!suggested(&ask(json!({})).await).contains(&&*first), "sold out in the catalogue");
    let back = ask(json!({"live": {first.clone(): {"stock": 2}}})).await;
    assert_eq!(suggested(&back), suggested(&before), "there again");
    assert_eq!(back["blanks"][0]["suggestions"][0]["article"]["stock"], 2);
    let batch =
        json!({"items": [with(question(), &json!({"live": {first.clone(): {"stock": 1}}})), question()]});
    let items = service.ask_ok("/complete/batch", &batch).await;
    assert_eq!(suggested(&items["items"][0])[0], first);
    assert_ne!(suggested(&items["items"][1])[0], first, "each item has its own");
    let compared = json!({"customer": "c-014871", "outfit": question()["outfit"], "methods": ["none", "match"], "k": 250,
        "live": {first.clone(): {"stock": 1}}});
    let columns = service.ask_ok("/compare", &compared).await;
    for column in columns["columns"].as_array().unwrap() {
        assert!(column["suggestions"].to_string().contains(&first), "{}", column["method"]);
    }

    let unknown = ask(json!({"live": {"no-such": {"stock": 1}}})).await;
    assert_eq!(unknown["warnings"][0]["code"], "unknown-article", "{unknown}");
    let many: serde_json::Map<String, Value> =
        (0..51).map(|n| (format!("x-{n}"), json!({"stock": 1}))).collect();
    for (live, pointer) in [
        (json!({first.clone(): {"price": "about 3"}}), format!("/live/{first}")),
        (json!({first.clone(): {"colour": "red"}}), format!("/live/{first}/colour")),
        (json!({"a|b": {}}), "/live/a|b".into()),
        (Value::Object(many), "/live".into()),
    ] {
        let (status, problem) = service.ask("/complete", &with(question(), &json!({"live": live}))).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{problem}");
    }
}

#[apply(on_sqlite)]
async fn a_variant_may_be_sold_out_at_the_moment(Demo(service): Demo) {
    let variants = json!([{"id": "sku-m", "size": "M", "price": 20, "stock": 3}]);
    service.put("/articles/poncho-1", &json!({"type": "poncho", "variants": variants})).await;
    let ask = async |live: Value| {
        let body = json!({"features": {}, "outfit": ["a-00315", null], "method": "match", "live": live,
            "filters": {"types": {"1": ["poncho"]}, "price": {"max": 30}}});
        service.ask_ok("/complete", &body).await["blanks"][0]["suggestions"].clone()
    };
    assert_eq!(ask(json!({})).await[0]["variant"]["id"], "sku-m");
    for gone in [json!({"stock": 0}), json!({"in_stock": false}), json!({"price": 31})] {
        assert_eq!(ask(json!({"sku-m": gone})).await, json!([]), "{gone}");
    }
    let cheap = ask(json!({"sku-m": {"price": 5, "stock": 9}})).await;
    let variant = &cheap[0]["variant"];
    assert_eq!(
        (&variant["id"], &variant["price"], &variant["stock"]),
        (&json!("sku-m"), &json!(5), &json!(9))
    );
}

#[apply(on_sqlite)]
async fn articles_that_are_gone_may_be_skipped(Demo(service): Demo) {
    let outfit = json!(["gone-1", "a-01317", null, "gone-2"]);
    let body = |skip: bool| json!({"customer": "c-014871", "outfit": outfit, "k": 2, "skip_unknown": skip, "explain": true});
    let (status, problem) = service.ask("/complete", &body(false)).await;
    let pointers: Vec<&Value> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!((status, pointers), (422, vec![&json!("/outfit/0"), &json!("/outfit/3")]), "{problem}");
    let skipped = service.ask_ok("/complete", &body(true)).await;
    let plain = json!({"customer": "c-014871", "outfit": ["a-01317", null], "k": 2});
    let plain = service.ask_ok("/complete", &plain).await;
    assert_eq!(
        (suggested(&skipped), &skipped["blanks"][0]["slot"]),
        (suggested(&plain), &json!(2)),
        "the caller's slots"
    );
    let told: Vec<&Value> =
        skipped["warnings"].as_array().unwrap().iter().map(|warning| &warning["detail"]).collect();
    assert!(
        told[0].as_str().unwrap().contains("gone-1: slot 0")
            && told[1].as_str().unwrap().contains("gone-2: slot 3"),
        "{told:?}"
    );
    assert!(skipped["warnings"][0]["code"] == "unknown-article");
    // Feedback on it counts, and nothing is missing without the others.
    let article = suggested(&skipped)[0];
    let event = json!({"id": "e-1", "completion_id": skipped["completion_id"], "kind": "accepted", "slot": 2, "article": article});
    assert_eq!(service.ask_ok("/feedback", &json!([event])).await[0]["recorded"], true);

    let all = json!({"features": {}, "outfit": ["gone-1", null], "skip_unknown": true});
    assert_eq!(
        service.ask_ok("/complete", &all).await["blanks"][0]["slot"],
        1,
        "as if the outfit were empty"
    );
    let compared =
        json!({"features": {}, "outfit": outfit, "methods": ["none", "gsu"], "skip_unknown": true});
    assert_eq!(service.ask_ok("/compare", &compared).await["slot"], 2);
    let scored = json!({"features": {}, "outfit": ["gone-1", "a-01317", "a-00587"], "skip_unknown": true});
    let scored = service.ask_ok("/score", &scored).await;
    assert_eq!(
        (&scored["articles"][0]["slot"], &scored["warnings"][0]["code"]),
        (&json!(1), &json!("unknown-article"))
    );
}

#[apply(on_sqlite)]
async fn an_answer_has_the_fields_that_are_wanted(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let ask = async |more: Value| service.ask_ok("/complete", &with(question(), &more)).await;
    let whole = ask(json!({"k": 20})).await;
    let few = ask(json!({"k": 20, "fields": ["price", "no_such"]})).await;
    let [whole_bytes, few_bytes] = [&whole, &few].map(|answer| answer.to_string().len());
    assert!(few_bytes * 2 < whole_bytes, "{few_bytes} of {whole_bytes} bytes");
    let [all, selected] = [&whole, &few].map(|answer| answer["blanks"][0]["suggestions"].as_array().unwrap());
    for (whole, few) in all.iter().zip(selected) {
        let article = &whole["article"];
        let wanted = json!({"rank": whole["rank"], "share": whole["share"], "article": {"id": article["id"], "type": article["type"], "price": article["price"]}});
        assert_eq!(few, &wanted);
    }
    let asked = ask(json!({"fields": [], "probability": true, "sets": 1})).await;
    let first = &asked["blanks"][0]["suggestions"][0];
    assert!(first["article"].as_object().unwrap().len() == 2 && first["probability"].is_number(), "{first}");
    assert_eq!(asked["sets"][0]["articles"][0]["article"].as_object().unwrap().len(), 2);
    let compared = json!({"features": {}, "outfit": ["a-00315", null], "methods": ["none"], "k": 1, "fields": ["price"]});
    let column = &service.ask_ok("/compare", &compared).await["columns"][0];
    assert_eq!(column["suggestions"][0]["article"].as_object().unwrap().len(), 3, "{column}");
    let variants = json!([{"id": "sku-m", "size": "M", "price": 20, "stock": 3}]);
    service.put("/articles/poncho-1", &json!({"type": "poncho", "variants": variants})).await;
    let body = json!({"features": {}, "outfit": ["a-00315", null], "k": 1, "method": "match", "fields": ["price"],
        "filters": {"types": {"1": ["poncho"]}}});
    let variant = &service.ask_ok("/complete", &body).await["blanks"][0]["suggestions"][0]["variant"];
    assert_eq!(variant, &json!({"in_stock": true, "id": "sku-m", "price": 20}));
    let many: Vec<String> = (0..51).map(|number| number.to_string()).collect();
    for (fields, pointer) in
        [(json!(["a", "b", "a"]), "/fields/2"), (json!(many), "/fields"), (json!([7]), "/fields/0")]
    {
        let (status, problem) = service.ask("/complete", &with(question(), &json!({"fields": fields}))).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{problem}");
    }
}
