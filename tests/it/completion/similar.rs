//! `/articles/{id}/similar`.

use serde_json::json;

use crate::harness::{
    Demo, Service, apply, ids,
    json::{list, with},
    on_sqlite,
};

impl Service {
    /// The ids of articles that are similar to a blouse.
    async fn similar(&self, query: &str) -> Vec<String> {
        ids(&self.json(format!("/articles/a-00134/similar?{query}")).await["items"])
    }
}

#[apply(on_sqlite)]
async fn similar_articles_are_of_the_type_and_may_be_had(Demo(service): Demo) {
    let answer = service.json("/articles/a-00134/similar?n=5").await;
    for item in list(&answer["items"]) {
        assert_eq!(item["article"]["type"], "blouse", "{item}");
        assert_eq!(item["article"]["in_stock"], true);
    }
    let all = ids(&answer["items"]);
    assert!(all.len() == 5 && !all.iter().any(|id| id == "a-00134"), "{all:?}");
    // What is sold out leaves, what is not the customer's size too.
    service.patch(format!("/articles/{}", all[0]), json!({"in_stock": false})).is(200).await;
    assert_eq!(service.similar("n=4").await, all[1..]);
    let sizes = json!({"features": {"gender": "female", "top_size": "XS", "nogo_colours": ["black"]}});
    service.put("/customers/xs", sizes).is(201).await;
    let fitting = service.json("/articles/a-00134/similar?n=20&customer=xs").await;
    for item in list(&fitting["items"]) {
        let sizes = item["article"]["sizes"].as_array();
        assert!(sizes.is_none_or(|sizes| sizes.contains(&json!("XS"))), "{item}");
        assert_ne!(item["article"]["colour"], "black");
    }
    let problem = service.get("/articles/a-00134/similar?customer=nobody").is(422).await.json();
    assert_eq!(problem["errors"][0]["parameter"], "customer", "{problem}");
}

#[apply(on_sqlite)]
async fn rules_move_similar_articles(Demo(service): Demo) {
    let plain = service.similar("n=8").await;
    // An article takes the other's place, so no rule on outfits keeps them apart.
    let blouses = json!({"types": ["blouse"]});
    let never =
        json!({"effect": "never-together", "articles": blouses, "others": blouses, "state": "active"});
    service.put("/rules/one-blouse", never).is(201).await;
    assert_eq!(service.similar("n=8").await, plain);
    for (name, article, effect) in [
        ("gone", &plain[0], json!({"effect": "exclude"})),
        ("first", &plain[5], json!({"effect": "pin", "rank": 1})),
        ("up", &plain[7], json!({"effect": "boost", "factor": 1000})),
    ] {
        let rule = with(effect, json!({"articles": {"ids": [article]}, "state": "active"}));
        service.put(format!("/rules/{name}"), rule).is(201).await;
    }
    assert_eq!(service.similar("n=4").await, [5, 7, 1, 2].map(|at: usize| plain[at].clone()));
    let answer = service.json("/articles/a-00134/similar?n=1").await;
    let moved = json!([{"name": "first", "effect": "pin", "rank_before": 5}]);
    assert_eq!(answer["items"][0]["rules"], moved, "{answer}");
}
