//! `/articles/{id}/similar`.

use serde_json::{Value, json};

use super::{Demo, Service};
use crate::harness::{apply, on_sqlite};

impl Service {
    /// The ids of similar articles.
    async fn similar(&self, of: &str, query: &str) -> Vec<String> {
        let answer = self.json(&format!("/articles/{of}/similar?{query}")).await;
        let ids = answer["items"].as_array().unwrap().iter();
        ids.map(|item| item["article"]["id"].as_str().unwrap().to_owned()).collect()
    }

    async fn patch_article(&self, id: &str, change: &Value) {
        let request = self.patch(format!("/articles/{id}"), change);
        request.is(200).await;
    }
}

#[apply(on_sqlite)]
async fn similar_articles_are_of_the_type_and_may_be_had(Demo(service): Demo) {
    let answer = service.json("/articles/a-00134/similar?n=5").await;
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 5);
    for item in items {
        assert_eq!(item["article"]["type"], "blouse", "{item}");
        assert_ne!(item["article"]["id"], "a-00134");
        assert_eq!(item["article"]["in_stock"], true);
    }
    let all = service.similar("a-00134", "n=5").await;
    // What is sold out leaves, what is not the customer's size too.
    service.patch_article(&all[0], &json!({"in_stock": false})).await;
    assert_eq!(service.similar("a-00134", "n=4").await, all[1..]);
    let sizes = json!({"features": {"gender": "female", "top_size": "XS", "nogo_colours": ["black"]}});
    service.put("/customers/xs", &sizes).is(201).await;
    let fitting = service.json("/articles/a-00134/similar?n=20&customer=xs").await;
    for item in fitting["items"].as_array().unwrap() {
        let sizes = item["article"]["sizes"].as_array();
        assert!(sizes.is_none_or(|sizes| sizes.contains(&json!("XS"))), "{item}");
        assert_ne!(item["article"]["colour"], "black");
    }
    service.get("/articles/none/similar").is(404).await;
    let problem = service.get("/articles/a-00134/similar?customer=nobody").is(422).await.json();
    assert_eq!(problem["errors"][0]["parameter"], "customer", "{problem}");
    service.get("/articles/a-00134/similar?n=0").is(422).await;
}

#[apply(on_sqlite)]
async fn rules_move_similar_articles(Demo(service): Demo) {
    let plain = service.similar("a-00134", "n=8").await;
    // An article takes the other's place, so no rule on outfits keeps them apart.
    let blouses = json!({"types": ["blouse"]});
    let never =
        json!({"effect": "never-together", "articles": blouses, "others": blouses, "state": "active"});
    service.put("/rules/one-blouse", &never).is(201).await;
    assert_eq!(service.similar("a-00134", "n=8").await, plain);
    let rule = |effect: &str, ids: &[String], more: Value| {
        let mut rule = json!({"effect": effect, "articles": {"ids": ids}, "state": "active"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let exclude = rule("exclude", &plain[..1], json!({}));
    service.put("/rules/gone", &exclude).is(201).await;
    service.put("/rules/first", &rule("pin", &plain[5..6], json!({"rank": 1}))).is(201).await;
    let boost = rule("boost", &plain[7..8], json!({"factor": 1000}));
    service.put("/rules/up", &boost).is(201).await;
    let found = service.similar("a-00134", "n=4").await;
    assert_eq!(found, [5, 7, 1, 2].map(|at: usize| plain[at].clone()));
    let answer = service.json("/articles/a-00134/similar?n=1").await;
    let moved = json!([{"name": "first", "effect": "pin", "rank_before": 5}]);
    assert_eq!(answer["items"][0]["rules"], moved, "{answer}");
}

#[apply(on_sqlite)]
async fn answers_for_everybody_are_cached(Demo(service): Demo) {
    let first = service.get("/articles/a-00134/similar?n=3").await;
    assert!(first.header("cache-control").starts_with("public, max-age="), "{first:?}");
    let tag = first.header("etag").to_owned();
    let ask = |query: &str, tag: &str| {
        service.get(format!("/articles/a-00134/similar?n=3{query}")).header("if-none-match", tag)
    };
    ask("", &tag).is(304).await;
    let own = service.get("/articles/a-00134/similar?n=3&customer=c-000010").await;
    assert_eq!(own.header("cache-control"), "private, no-cache");
    ask("&customer=c-000010", own.header("etag")).is(304).await;
    let all = service.similar("a-00134", "n=3").await;
    service.patch_article(&all[0], &json!({"in_stock": false})).await;
    assert_eq!(ask("", &tag).await.status(), 200, "one is sold out");
    assert_eq!(service.similar("a-00134", "n=2").await, all[1..]);
}
