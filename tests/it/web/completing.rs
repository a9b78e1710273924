//! `/complete`, `/complete/batch` and `/score` on the demo release.

use std::collections::HashSet;

use atelier::domain::{Article, ArticleId, Customer, Outfit, Split};
use atelier::store::Timestamp;
use serde_json::{Value, json};

use super::{Service, rows};
use crate::harness::{TestDatabase, contracts};

contracts!(
    suggests_for_a_blank,
    the_customer_matters_to_gsu_and_not_to_none,
    filters_come_before_the_choice,
    no_gos_are_hard_limits_unless_told_otherwise,
    several_blanks_by_themselves_and_together,
    lift_and_reasons_are_computed,
    variety_changes_the_order,
    what_makes_no_sense_is_told_at_its_place,
    a_catalogue_that_differs_from_the_release,
    a_batch_answers_each_item_by_itself,
    scores_an_outfit,
    without_a_release_nothing_is_completed,
);

/// Outfits of the demo's validation split, with their customers.
fn outfits() -> Vec<Outfit> {
    rows::<Outfit>().into_iter().filter(|outfit| outfit.split == Some(Split::Validation)).collect()
}

/// The outfit with its second article blanked.
fn blanked(outfit: &Outfit) -> Vec<Value> {
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    slots[1] = Value::Null;
    slots
}

fn ids(blank: &Value) -> Vec<&str> {
    let suggestions = blank["suggestions"].as_array().unwrap();
    suggestions.iter().map(|suggestion| suggestion["article"]["id"].as_str().unwrap()).collect()
}

async fn suggests_for_a_blank(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = &outfits()[0];
    let request =
        json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "method": "gsu", "k": 7});
    let answer = service.asked("/complete", &request).await;
    assert_eq!(
        (&answer["release"], &answer["method"], &answer["device"]),
        (&json!("demo"), &json!("gsu"), &json!("cpu"))
    );
    assert!(answer["completion_id"].as_str().unwrap().len() > 40);
    assert_eq!(answer["blanks"].as_array().unwrap().len(), 1);
    let blank = &answer["blanks"][0];
    assert_eq!(blank["slot"], 1);
    let suggestions = blank["suggestions"].as_array().unwrap();
    assert_eq!(suggestions.len(), 7);
    let mut before = 1.0;
    for (place, suggestion) in suggestions.iter().enumerate() {
        assert_eq!(suggestion["rank"], place + 1);
        let (probability, share) =
            (suggestion["probability"].as_f64().unwrap(), suggestion["share"].as_f64().unwrap());
        assert!(probability > 0.0 && probability <= before && share >= probability && share <= 1.0);
        assert!(suggestion["article"]["type"].is_string() && suggestion["article"]["price"].is_number());
        assert!(suggestion.get("lift").is_none() && suggestion.get("reasons").is_none());
        before = probability;
    }
    let theirs: HashSet<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
    assert!(ids(blank).iter().all(|id| *id == outfit.articles()[1].as_str() || !theirs.contains(id)));
    assert_eq!(answer["warnings"], json!([]));
    assert!(answer["timing"]["inference_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(answer["timing"]["questions"], 1);

    // The order of the slots says nothing; and 7.0 is a whole number, too.
    let mut reversed: Vec<Value> = blanked(outfit);
    reversed.reverse();
    let request =
        json!({"customer": outfit.customer.as_str(), "outfit": reversed, "method": "gsu", "k": 7.0});
    let again = service.asked("/complete", &request).await;
    assert_eq!(ids(&again["blanks"][0]), ids(blank));

    // Without a blank one more article is asked for; without a stored customer features will do.
    let request =
        json!({"outfit": [outfit.articles()[0].as_str()], "features": {"gender": "female", "age": 30}});
    let answer = service.asked("/complete", &request).await;
    assert_eq!(answer["blanks"][0]["slot"], 1);
    assert_eq!(ids(&answer["blanks"][0]).len(), 5, "five if not said");
    assert_eq!(answer["warnings"][0]["code"], "short-outfit");
}

async fn the_customer_matters_to_gsu_and_not_to_none(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let customers = rows::<Customer>();
    let outfit = blanked(&outfits()[0]);
    let answer = async |customer: &Customer, method: &str| {
        let request = json!({"customer": customer.id.as_str(), "outfit": outfit, "method": method, "k": 20,
            "filters": {"no_gos": false}});
        let answer = service.asked("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        suggestions
            .iter()
            .map(|s| (s["article"]["id"].to_string(), s["probability"].as_f64().unwrap()))
            .collect::<Vec<_>>()
    };
    let (one, other) = (&customers[0], &customers[1]);
    assert_ne!(one.features, other.features);
    assert_eq!(answer(one, "none").await, answer(other, "none").await);
    assert_ne!(answer(one, "gsu").await, answer(other, "gsu").await);
}

async fn filters_come_before_the_choice(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = &outfits()[0];
    let ask = async |filters: Value, k: usize| {
        let request = json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "k": k, "filters": filters});
        service.asked("/complete", &request).await["blanks"][0].clone()
    };
    let all = ask(json!({}), 250).await;
    assert_eq!(ids(&all).len(), 250, "always filled when they exist");
    let first = ids(&all)[0].to_owned();

    let without = ask(json!({"exclude": [first]}), 250).await;
    assert!(!ids(&without).contains(&first.as_str()));
    assert_eq!(ids(&without)[0], ids(&all)[1], "the next one moves up");

    let typed = ask(
        json!({"types": {"1": ["coat", "jeans"]}, "price": {"min": 20, "max": 90}, "in_stock": true}),
        40,
    )
    .await;
    assert!(!ids(&typed).is_empty());
    let mut sum = 0.0;
    for suggestion in typed["suggestions"].as_array().unwrap() {
        let article = &suggestion["article"];
        assert!(["coat", "jeans"].contains(&article["type"].as_str().unwrap()));
        assert!((20.0..=90.0).contains(&article["price"].as_f64().unwrap()));
        assert_ne!(article["in_stock"], false);
        sum += suggestion["share"].as_f64().unwrap();
    }
    if typed["admissible"].as_u64().unwrap() <= 40 {
        assert!((sum - 1.0).abs() < 1e-4, "shares of all that are let through: {sum}");
    }
    let nothing = ask(json!({"price": {"max": 0}}), 5).await;
    assert_eq!((ids(&nothing).len(), &nothing["admissible"]), (0, &json!(0)));
}

async fn no_gos_are_hard_limits_unless_told_otherwise(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = blanked(&outfits()[0]);
    let ask = async |filters: Value| {
        let request = json!({"outfit": outfit, "k": 250, "filters": filters,
            "features": {"nogo_types": ["sneaker", "coat"], "nogo_materials": ["leather"]}});
        let answer = service.asked("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        suggestions
            .iter()
            .filter(|s| {
                ["sneaker", "coat"].contains(&s["article"]["type"].as_str().unwrap())
                    || s["article"]["material"] == "leather"
            })
            .count()
    };
    assert_eq!(ask(json!({})).await, 0);
    assert!(ask(json!({"no_gos": false})).await > 0);
}

async fn several_blanks_by_themselves_and_together(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = &outfits()[0];
    let mut slots = blanked(outfit);
    slots[3] = Value::Null;
    let request = json!({"customer": outfit.customer.as_str(), "outfit": slots, "k": 3, "sets": 4,
        "filters": {"types": {"1": ["jeans", "trousers", "skirt", "dress", "chinos"]}}});
    let answer = service.asked("/complete", &request).await;
    let blanks: Vec<&Value> =
        answer["blanks"].as_array().unwrap().iter().map(|blank| &blank["slot"]).collect();
    assert_eq!(blanks, [1, 3]);
    let sets = answer["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 4);
    let mut before = 1.0;
    let mut seen = HashSet::new();
    for set in sets {
        let probability = set["probability"].as_f64().unwrap();
        assert!(probability > 0.0 && probability <= before);
        before = probability;
        let placed: Vec<(u64, &str)> = set["articles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|placed| (placed["slot"].as_u64().unwrap(), placed["article"]["id"].as_str().unwrap()))
            .collect();
        assert_eq!((placed[0].0, placed[1].0), (1, 3));
        assert_ne!(placed[0].1, placed[1].1);
        assert!(seen.insert(placed));
    }
    // A set's probability is what asking one after the other gives.
    let first = sets[0]["articles"].as_array().unwrap();
    let mut filled = slots.clone();
    filled[1] = first[0]["article"]["id"].clone();
    let request = json!({"customer": outfit.customer.as_str(), "outfit": filled, "k": 250});
    let second = service.asked("/complete", &request).await;
    let second = second["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|suggestion| suggestion["article"]["id"] == first[1]["article"]["id"])
        .unwrap()["probability"]
        .as_f64()
        .unwrap();
    let request = json!({"customer": outfit.customer.as_str(), "outfit": slots, "k": 250});
    let alone = service.asked("/complete", &request).await;
    let alone = alone["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|suggestion| suggestion["article"]["id"] == first[0]["article"]["id"])
        .unwrap()["probability"]
        .as_f64()
        .unwrap();
    let together = sets[0]["probability"].as_f64().unwrap();
    assert!((together / (alone * second) - 1.0).abs() < 1e-3, "{together} {alone} {second}");
}

async fn lift_and_reasons_are_computed(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = &outfits()[0];
    let base =
        json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "method": "gsu", "k": 5});
    let mut request = base.clone();
    request["lift"] = json!(true);
    request["explain"] = json!(true);
    let answer = service.asked("/complete", &request).await;
    let top = &answer["blanks"][0]["suggestions"][0];
    let probability = top["probability"].as_f64().unwrap();

    let mut none = base.clone();
    none["method"] = json!("none");
    none["k"] = json!(250);
    let none = service.asked("/complete", &none).await;
    let same = none["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|suggestion| suggestion["article"]["id"] == top["article"]["id"]);
    if let Some(same) = same {
        let expected = probability / same["probability"].as_f64().unwrap();
        assert!((top["lift"].as_f64().unwrap() / expected - 1.0).abs() < 1e-3);
    }

    let mut reasons = 0;
    for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
        for reason in suggestion["reasons"].as_array().unwrap() {
            reasons += 1;
            let factor = reason["factor"].as_f64().unwrap();
            assert!(factor >= 1.1 || factor <= 1.0 / 1.1, "only what is noticeable: {factor}");
            assert!(reason["feature"].is_object() != reason["slot"].is_number());
        }
    }
    assert!(reasons > 0, "something moved them");
    // A reason is what taking the thing away does: the request without that article says the same.
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let by_article = suggestions.iter().find_map(|suggestion| {
        let reasons = suggestion["reasons"].as_array().unwrap();
        reasons.iter().find(|reason| reason["slot"].is_number()).map(|reason| (suggestion, reason))
    });
    if let Some((suggestion, reason)) = by_article {
        let slot = usize::try_from(reason["slot"].as_u64().unwrap()).unwrap();
        let mut without = blanked(outfit);
        assert_eq!(reason["article"], without[slot]);
        without.remove(slot);
        let mut request = base.clone();
        request["outfit"] = json!(without);
        request["k"] = json!(250);
        let found = service.asked("/complete", &request).await;
        let found = found["blanks"][0]["suggestions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|other| other["article"]["id"] == suggestion["article"]["id"])
            .unwrap()["probability"]
            .as_f64()
            .unwrap();
        let expected = suggestion["probability"].as_f64().unwrap() / found;
        assert!((reason["factor"].as_f64().unwrap() / expected - 1.0).abs() < 1e-3);
    }
}

async fn variety_changes_the_order(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = &outfits()[0];
    let ask = async |diversity: f64| {
        let request = json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "k": 10, "diversity": diversity});
        let answer = service.asked("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        let types: HashSet<String> = suggestions.iter().map(|s| s["article"]["type"].to_string()).collect();
        (suggestions.len(), types.len())
    };
    let (plain, varied) = (ask(0.0).await, ask(0.9).await);
    assert_eq!((plain.0, varied.0), (10, 10));
    assert!(varied.1 > plain.1, "more types: {plain:?} {varied:?}");
}

async fn what_makes_no_sense_is_told_at_its_place(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let article = outfits()[0].articles()[0].to_string();
    let cases = [
        (json!({"outfit": ["nowhere", null]}), "/outfit/0", "there is no article nowhere"),
        (json!({"outfit": [article, article, null]}), "/outfit/1", "stands in it twice"),
        (
            json!({"outfit": [null, null, null, null, null, null, null, null, null]}),
            "/outfit",
            "at most 8 slots, this one has 9",
        ),
        (json!({"outfit": ["a|b", null]}), "/outfit/0", "an id cannot hold"),
        (json!({"outfit": [null], "k": 0}), "/k", "k is from 1 to 250, found 0"),
        (json!({"outfit": [null], "k": 251}), "/k", "found 251"),
        (json!({"outfit": [null], "k": 51, "diversity": 0.1}), "/k", "with diversity k is at most 50"),
        (json!({"outfit": [null], "k": -1}), "/k", "expected a whole number from 0"),
        (json!({"outfit": [null], "sets": 17}), "/sets", "sets are 0 to 16, found 17"),
        (json!({"outfit": [null], "diversity": 1.5}), "/diversity", "from 0 to 1, found 1.5"),
        (json!({"outfit": [null], "method": "bert"}), "/method", "there is no method \"bert\""),
        (json!({"outfit": [null], "customer": "nobody"}), "/customer", "there is no customer nobody"),
        (json!({"outfit": [null], "features": {"age": "old"}}), "/features/age", "takes a finite number"),
        (
            json!({"outfit": [article, null], "filters": {"types": {"0": ["coat"]}}}),
            "/filters/types/0",
            "slot 0 is no blank",
        ),
        (
            json!({"outfit": [null], "filters": {"types": {"0": ["spaceship"]}}}),
            "/filters/types/0/0",
            "no article of the catalogue is of the type",
        ),
        (
            json!({"outfit": [null], "filters": {"types": {"0": []}}}),
            "/filters/types/0",
            "names at least one",
        ),
        (
            json!({"outfit": [null], "filters": {"price": {"min": 9, "max": 2}}}),
            "/filters/price",
            "above the most",
        ),
        (json!({"outfit": [null], "filters": {"price": {"min": -1}}}), "/filters/price/min", "from 0 up"),
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
        .asked("/complete", &json!({"outfit": [null], "features": {"mood": "gay", "gender": "?"}}))
        .await;
    let codes: Vec<&str> =
        warned["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"unknown-feature") && codes.contains(&"unknown-value"), "{codes:?}");
}

async fn a_catalogue_that_differs_from_the_release(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let now = Timestamp::from_millis(2);
    let attributes = json!({"price": 10}).as_object().unwrap().clone();
    let new = Article::new(ArticleId::new("brand-new").unwrap(), "coat", attributes).unwrap();
    service.store.articles().put(&new, now).await.unwrap();
    let outfit = &outfits()[0];
    let gone = &outfit.articles()[0];
    let request =
        json!({"outfit": [gone.as_str(), "brand-new", null, outfit.articles()[2].as_str()], "k": 250});
    let before = service.ask("/complete", &request).await;
    assert_eq!(before.0, 422, "this process has not looked yet");
    assert!(service.store.articles().delete(gone).await.unwrap());
    service.offers.refresh().await.unwrap();

    let answer = service.asked("/complete", &request).await;
    let codes: Vec<&str> =
        answer["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["article-not-in-catalogue", "article-not-in-release"]);
    assert_eq!(answer["blanks"][0]["slot"], 2, "slots are those of the request");
    let all = service
        .asked("/complete", &json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["coat"]}}}))
        .await;
    assert!(
        !ids(&all["blanks"][0]).contains(&gone.as_str()) && !ids(&all["blanks"][0]).contains(&"brand-new")
    );

    // What is changed over HTTP is seen at once.
    let id = ids(&all["blanks"][0])[0].to_owned();
    assert_eq!(service.delete(&format!("/articles/{id}")).await.status(), 204);
    let after = service
        .asked("/complete", &json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["coat"]}}}))
        .await;
    assert!(!ids(&after["blanks"][0]).contains(&id.as_str()));
}

async fn a_batch_answers_each_item_by_itself(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfits = outfits();
    let good = |outfit: &Outfit| json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit)});
    let items = json!({"items": [good(&outfits[0]), {"outfit": [null], "k": 0}, 7, good(&outfits[1])]});
    let answer = service.asked("/complete/batch", &items).await;
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 4);
    assert_eq!(items[1]["status"], 422);
    assert_eq!(items[1]["errors"][0]["pointer"], "/k");
    assert_eq!(items[2]["code"], "invalid");
    for (place, outfit) in [(0, &outfits[0]), (3, &outfits[1])] {
        let single = service.asked("/complete", &good(outfit)).await;
        assert_eq!(ids(&items[place]["blanks"][0]), ids(&single["blanks"][0]));
    }
    let many = vec![json!({"outfit": [null, null, null], "k": 250}); 27];
    let (status, problem) = service.ask("/complete/batch", &json!({"items": many})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/items")));
    assert!(problem["detail"].as_str().unwrap().contains("this one for 20250"), "{problem}");
    // More questions than a queue holds: they go through it all the same.
    let all = vec![json!({"outfit": [null, null, null, null, null, null, null, null], "k": 5}); 256];
    let answer = service.asked("/complete/batch", &json!({"items": all})).await;
    assert!(answer["items"].as_array().unwrap().iter().all(|item| item["blanks"].is_array()));
    let (status, problem) = service.ask("/complete/batch", &json!({"items": []})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/items")));
}

async fn scores_an_outfit(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfits = outfits();
    let mut better = 0;
    for outfit in &outfits[..20] {
        let articles: Vec<&str> = outfit.articles().iter().map(ArticleId::as_str).collect();
        let request = json!({"customer": outfit.customer.as_str(), "outfit": articles, "method": "gsu"});
        let score = service.asked("/score", &request).await;
        assert_eq!(score["articles"].as_array().unwrap().len(), articles.len());
        let mean = score["articles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|article| article["log_probability"].as_f64().unwrap())
            .sum::<f64>()
            / f64::from(u32::try_from(articles.len()).unwrap());
        assert!((mean - score["mean_log_probability"].as_f64().unwrap()).abs() < 1e-9);
        for article in score["articles"].as_array().unwrap() {
            assert!(article["rank"].as_u64().unwrap() <= article["of_type"].as_u64().unwrap());
            assert!((0.0..=1.0).contains(&article["share"].as_f64().unwrap()));
        }
        // The same articles mixed with those of another outfit hang together less.
        let mut mixed: Vec<&str> = articles.clone();
        let stranger = outfits.iter().rev().flat_map(Outfit::articles).map(ArticleId::as_str);
        let stranger: Vec<&str> = stranger.filter(|id| !articles.contains(id)).take(2).collect();
        mixed[0] = stranger[0];
        mixed[1] = stranger[1];
        if stranger[0] == stranger[1] {
            continue;
        }
        let request = json!({"customer": outfit.customer.as_str(), "outfit": mixed, "method": "gsu"});
        let other = service.asked("/score", &request).await;
        better +=
            usize::from(score["mean_log_probability"].as_f64() > other["mean_log_probability"].as_f64());
    }
    assert!(better >= 15, "of twenty outfits {better} score above their mixtures");
    let (status, problem) =
        service.ask("/score", &json!({"outfit": [outfits[0].articles()[0].as_str()]})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/outfit")));
}

async fn without_a_release_nothing_is_completed(db: TestDatabase) {
    let service = Service::start(&db).await;
    for (path, body) in [
        ("/complete", json!({"outfit": [null]})),
        ("/compare", json!({"outfit": [null]})),
        ("/score", json!({"outfit": ["a", "b"]})),
    ] {
        let (status, problem) = service.ask(path, &body).await;
        assert_eq!((status, &problem["code"]), (503, &json!("no-release")), "{path}");
    }
}
