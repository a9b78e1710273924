//! What a caller says of the moment: prices and stock for one answer, articles that may be gone, and which fields it wants.

use serde_json::{Map, Value, json};

use crate::harness::{
    Demo, Html, Service, apply, ids,
    json::{codes, list, text, with},
    on_sqlite, pick,
};

fn question(more: Value) -> Value {
    let outfit = json!(["a-00315", "a-01317", "a-00587", "a-00170", null]);
    with(json!({"customer": "c-014871", "outfit": outfit, "k": 3}), more)
}

/// Stores the only poncho, of one variant.
async fn store_poncho(service: &Service) {
    let variants = json!([{"id": "sku-m", "size": "M", "price": 20, "stock": 3}]);
    service.put("/articles/poncho-1", json!({"type": "poncho", "variants": variants})).is(201).await;
}

#[apply(on_sqlite)]
async fn prices_and_stock_of_the_moment_count_for_one_answer(Demo(service): Demo) {
    let ask = |more: Value| service.complete(question(more));
    let suggested = |completion: &Value| ids(&completion["blanks"][0]["suggestions"]);
    let before = ask(json!({})).await;
    let all = suggested(&before);
    let first = all[0].as_str();
    let stored = before["blanks"][0]["suggestions"][0]["article"].clone();
    // Sold out now, in whatever way an article says so.
    for offer in [json!({"stock": 0}), json!({"stock": {"S": 0}}), json!({"in_stock": "nein"})] {
        let now = ask(json!({"live": {first: offer}})).await;
        assert_eq!(suggested(&now)[..2], all[1..], "the next ones move up: {now}");
        assert_eq!((suggested(&now).len(), &now["warnings"]), (3, &json!([])), "{now}");
    }
    // A price counts for the filter, and is in the answer.
    let cheap = ask(json!({"live": {first: {"price": "1,50"}}, "filters": {"price": {"max": 2}}})).await;
    assert_eq!(cheap["blanks"][0]["admissible"], 1);
    assert_eq!(cheap["blanks"][0]["suggestions"][0]["article"], with(stored, json!({"price": 1.5})));
    assert_eq!(ask(json!({})).await["blanks"], before["blanks"], "nothing was stored");

    service.patch(format!("/articles/{first}"), json!({"in_stock": false})).is(200).await;
    let live = json!({"live": {first: {"stock": 2}}});
    let back = ask(live.clone()).await;
    assert_eq!(suggested(&back), all, "there again");
    assert_eq!(back["blanks"][0]["suggestions"][0]["article"]["stock"], 2);
    let batch = json!({"items": [question(live.clone()), question(json!({}))]});
    let items = service.ask_ok("/complete/batch", batch).await;
    assert_eq!(suggested(&items["items"][0])[0], first);
    assert!(!suggested(&items["items"][1]).contains(&all[0]), "each item has its own");
    let compared = question(with(live, json!({"methods": ["none", "match"], "k": 250})));
    for column in list(&service.ask_ok("/compare", compared).await["columns"]) {
        assert!(ids(&column["suggestions"]).contains(&all[0]), "{}", column["method"]);
    }

    let unknown = ask(json!({"live": {"no-such": {"stock": 1}}})).await;
    assert_eq!(codes(&unknown["warnings"])[0], "unknown-article", "{unknown}");
    let many: Map<String, Value> = (0..51).map(|n| (format!("x-{n}"), json!({"stock": 1}))).collect();
    for (live, pointer) in [
        (json!({first: {"price": "about 3"}}), format!("/live/{first}")),
        (json!({first: {"colour": "red"}}), format!("/live/{first}/colour")),
        (json!({"a|b": {}}), "/live/a|b".into()),
        (Value::Object(many), "/live".into()),
    ] {
        let refused = question(json!({"live": live}));
        service.send("/complete", refused).await.assert_problem(422, &[&pointer]);
    }
}

#[apply(on_sqlite)]
async fn a_variant_may_be_sold_out_at_the_moment(Demo(service): Demo) {
    store_poncho(&service).await;
    let ask = |live: Value| {
        service.suggest(json!({"features": {}, "outfit": ["a-00315", null], "method": "match", "live": live,
            "filters": {"types": {"1": ["poncho"]}, "price": {"max": 30}}}))
    };
    assert_eq!(ask(json!({})).await[0]["variant"]["id"], "sku-m");
    for gone in [json!({"stock": 0}), json!({"in_stock": false}), json!({"price": 31})] {
        assert_eq!(ask(json!({"sku-m": gone})).await, json!([]), "{gone}");
    }
    let variant = ask(json!({"sku-m": {"price": 5, "stock": 9}})).await[0]["variant"].take();
    assert_eq!(pick(&variant, "id price stock"), json!(["sku-m", 5, 9]));
}

#[apply(on_sqlite)]
async fn articles_that_are_gone_may_be_skipped(Demo(service): Demo) {
    let outfit = json!(["gone-1", "a-01317", null, "gone-2"]);
    let body = json!({"customer": "c-014871", "outfit": outfit, "k": 2, "explain": true});
    service.send("/complete", &body).await.assert_problem(422, &["/outfit/0", "/outfit/3"]);
    let skipped = service.complete(with(body, json!({"skip_unknown": true}))).await;
    let plain = json!({"customer": "c-014871", "outfit": ["a-01317", null], "k": 2});
    let suggested = ids(&skipped["blanks"][0]["suggestions"]);
    assert_eq!(suggested, ids(&service.suggest(plain).await));
    assert_eq!(skipped["blanks"][0]["slot"], 2, "the caller's slots");
    assert_eq!(codes(&skipped["warnings"])[..2], ["unknown-article"; 2]);
    for (place, said) in [(0, "gone-1: slot 0"), (1, "gone-2: slot 3")] {
        text(&skipped["warnings"][place]["detail"]).has([said]);
    }
    // Feedback on it counts, and nothing is missing without the others.
    let event = json!({"id": "e-1", "completion_id": skipped["completion_id"], "kind": "accepted", "slot": 2,
                       "article": suggested[0]});
    assert_eq!(service.ask_ok("/feedback", json!([event])).await[0]["recorded"], true);

    for (path, more, place, slot) in [
        ("/complete", json!({"outfit": ["gone-1", null]}), "/blanks/0/slot", 1), // As if it were empty.
        ("/compare", json!({"outfit": outfit, "methods": ["none", "gsu"]}), "/slot", 2),
        ("/score", json!({"outfit": ["gone-1", "a-01317", "a-00587"]}), "/articles/0/slot", 1),
    ] {
        let asked = with(json!({"features": {}, "skip_unknown": true}), more);
        let answer = service.ask_ok(path, asked).await;
        assert_eq!(answer.pointer(place), Some(&json!(slot)), "{path}: {answer}");
        if path == "/score" {
            assert_eq!(codes(&answer["warnings"])[0], "unknown-article");
        }
    }
}

#[apply(on_sqlite)]
async fn an_answer_has_the_fields_that_are_wanted(Demo(service): Demo) {
    let ask = |more: Value| service.complete(question(more));
    let all = ask(json!({"k": 20})).await["blanks"][0]["suggestions"].take();
    let few = ask(json!({"k": 20, "fields": ["price", "no_such"]})).await["blanks"][0]["suggestions"].take();
    for (whole, few) in list(&all).iter().zip(list(&few)) {
        let article = ["id", "type", "price"].map(|name| (name, whole["article"][name].clone()));
        let article: Value = article.into_iter().collect();
        assert_eq!(few, &json!({"rank": whole["rank"], "share": whole["share"], "article": article}));
    }
    let size = |value: &Value| value.as_object().unwrap().len();
    let asked = ask(json!({"fields": [], "probability": true, "sets": 1})).await;
    let first = &asked["blanks"][0]["suggestions"][0];
    assert!(size(&first["article"]) == 2 && first["probability"].is_number(), "{first}");
    assert_eq!(size(&asked["sets"][0]["articles"][0]["article"]), 2);
    let compared = question(json!({"methods": ["none"], "k": 1, "fields": ["price"]}));
    let column = service.ask_ok("/compare", compared).await["columns"][0].take();
    assert_eq!(size(&column["suggestions"][0]["article"]), 3, "{column}");
    store_poncho(&service).await;
    let body = json!({"features": {}, "outfit": ["a-00315", null], "k": 1, "method": "match", "fields": ["price"],
        "filters": {"types": {"1": ["poncho"]}}});
    let variant = &service.suggest(body).await[0]["variant"];
    assert_eq!(variant, &json!({"in_stock": true, "id": "sku-m", "price": 20}));
    let many: Vec<String> = (0..51).map(|number| number.to_string()).collect();
    for (fields, pointer) in
        [(json!(["a", "b", "a"]), "/fields/2"), (json!(many), "/fields"), (json!([7]), "/fields/0")]
    {
        let refused = question(json!({"fields": fields}));
        service.send("/complete", refused).await.assert_problem(422, &[pointer]);
    }
}
