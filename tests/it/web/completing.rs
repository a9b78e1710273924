//! `/complete` and `/complete/batch` on the demo release.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use atelier::config::Limits;
use atelier_core::domain::{Article, ArticleId, Customer, Method, Outfit, Timestamp};
use serde_json::{Value, json};

use super::{Demo, Service, outfits, rows};
use crate::harness::{TestDatabase, apply, on_sqlite};

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

#[apply(on_sqlite)]
async fn suggests_for_a_blank(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let request = json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "method": "gsu", "k": 7, "probability": true});
    let answer = service.ask_ok("/complete", &request).await;
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

    // The order of the slots does not matter; and 7.0 is an integer, too.
    let mut reversed: Vec<Value> = blanked(outfit);
    reversed.reverse();
    let request =
        json!({"customer": outfit.customer.as_str(), "outfit": reversed, "method": "gsu", "k": 7.0});
    let again = service.ask_ok("/complete", &request).await;
    assert_eq!(ids(&again["blanks"][0]), ids(blank));
    // Without `probability`, the other articles are not looked at. Shares are the same.
    for (alone, beside) in again["blanks"][0]["suggestions"].as_array().unwrap().iter().zip(suggestions) {
        assert!(alone.get("probability").is_none(), "{alone}");
        assert!((alone["share"].as_f64().unwrap() - beside["share"].as_f64().unwrap()).abs() < 1e-5);
    }

    // Without a blank, one more article is suggested; without a stored customer, features are enough.
    let request =
        json!({"outfit": [outfit.articles()[0].as_str()], "features": {"gender": "female", "age": 30}});
    let answer = service.ask_ok("/complete", &request).await;
    assert_eq!(answer["blanks"][0]["slot"], 1);
    assert_eq!(ids(&answer["blanks"][0]).len(), 5, "the default is five");
    assert_eq!(answer["warnings"][0]["code"], "short-outfit");
}

#[apply(on_sqlite)]
async fn gsu_uses_the_customer_and_none_does_not(Demo(service): Demo) {
    let customers = rows::<Customer>();
    let outfit = blanked(&outfits()[0]);
    let answer = async |customer: &Customer, method: &str| {
        let request = json!({"customer": customer.id.as_str(), "outfit": outfit, "method": method, "k": 20,
            "filters": {"no_gos": false, "fit": false}});
        let answer = service.ask_ok("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        suggestions
            .iter()
            .map(|s| (s["article"]["id"].to_string(), s["share"].as_f64().unwrap()))
            .collect::<Vec<_>>()
    };
    let (one, other) = (&customers[0], &customers[1]);
    assert_ne!(one.features, other.features);
    assert_eq!(answer(one, "none").await, answer(other, "none").await);
    assert_ne!(answer(one, "gsu").await, answer(other, "gsu").await);
}

#[apply(on_sqlite)]
async fn filters_apply_before_suggestions_are_chosen(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let ask = async |filters: Value, k: usize| {
        let request = json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "k": k, "filters": filters});
        service.ask_ok("/complete", &request).await["blanks"][0].clone()
    };
    let all = ask(json!({}), 250).await;
    assert_eq!(ids(&all).len(), 250, "as many as exist");
    let first = ids(&all)[0].to_owned();

    let without = ask(json!({"exclude": [first]}), 250).await;
    assert!(!ids(&without).contains(&first.as_str()));
    assert_eq!(ids(&without)[0], ids(&all)[1], "the next one moves up");

    let typed = ask(
        json!({"types": {"1": ["coat", "jeans"]}, "price": {"min": 20, "max": 90}, "in_stock": true}),
        250,
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
    assert_eq!(typed["admissible"], ids(&typed).len(), "all of them are suggested");
    assert!((sum - 1.0).abs() < 1e-4, "the shares of all admissible articles: {sum}");
    let nothing = ask(json!({"price": {"max": 0}}), 5).await;
    assert_eq!((ids(&nothing).len(), &nothing["admissible"]), (0, &json!(0)));
}

/// The engine's sum of probabilities is rounded.
#[apply(on_sqlite)]
async fn all_admissible_articles_have_a_share_of_one(Demo(service): Demo) {
    let coats = async |prices: Value| {
        let filters = json!({"types": {"0": ["coat"]}, "fit": false, "in_stock": false, "price": prices});
        let request = json!({"outfit": [null, "a-00315"], "k": 250, "filters": filters});
        let answer = service.ask_ok("/complete", &request).await;
        answer["blanks"][0]["suggestions"].as_array().unwrap().clone()
    };
    let share = |one: &Value| one["share"].as_f64().unwrap();
    let all = coats(json!({})).await;
    assert!((2..250).contains(&all.len()), "{}", all.len());
    let sum: f64 = all.iter().map(share).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    let price = |one: &Value| one["article"]["price"].as_f64().unwrap();
    let mut prices: Vec<f64> = all.iter().map(price).collect();
    prices.sort_by(f64::total_cmp);
    let mut alone = 0;
    for price in
        prices.chunk_by(|one, other| one.total_cmp(other).is_eq()).filter(|same| same.len() == 1).take(10)
    {
        let only = coats(json!({"min": price[0], "max": price[0]})).await;
        assert_eq!(only.iter().map(share).collect::<Vec<_>>(), [1.0]);
        alone += 1;
    }
    assert!(alone > 0);
}

#[apply(on_sqlite)]
async fn a_wrong_price_limit_is_refused(Demo(service): Demo) {
    for (price, status, pointer) in [
        (r#"{"max": "120"}"#, 422, "/filters/price/max"),
        (r#"{"max": -1}"#, 422, "/filters/price/max"),
        (r#"{"min": 1e999}"#, 400, ""),
        (r#"{"min": NaN}"#, 400, ""),
        (r#"{"min": 3, "max": 2}"#, 422, "/filters/price"),
    ] {
        let body = format!(r#"{{"outfit": [null], "filters": {{"price": {price}}}}}"#);
        let answer = service.post("/complete", "application/json", body).await;
        assert_eq!(answer.status(), status, "{price}");
        let problem: Value = answer.json();
        if status == 422 {
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
    }
}

/// What was made of a profile for one request serves the next, while all that it was made of stays as it is.
#[apply(on_sqlite)]
async fn a_changed_profile_article_or_release_counts_at_once(db: TestDatabase) {
    let folder = super::outfits::folder_with_schema(|schema| {
        let of_gender =
            schema.lines().find(|line| line.starts_with("requires = {attribute = \"gender\"")).unwrap();
        schema.replace(of_gender, "")
    });
    crate::web::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    let features = json!({"features": {"gender": "female", "nogo_materials": ["leather"]}});
    service.put("/customers/kept", &features).is(201).await;
    let ask = async |own: Value| {
        let request = json!({"customer": "kept", "outfit": [null], "k": 250, "features": own,
            "filters": {"types": {"0": ["boot"]}}});
        let first = service.ask_ok("/complete", &request).await["blanks"].take();
        assert_eq!(service.ask_ok("/complete", &request).await["blanks"], first);
        let suggestions = first[0]["suggestions"].as_array().unwrap().iter();
        let material = |suggestion: &Value| suggestion["article"]["material"].as_str().unwrap().to_owned();
        let materials: HashSet<String> = suggestions.clone().map(material).collect();
        let last = suggestions.clone().last().unwrap()["article"]["id"].as_str().unwrap().to_owned();
        (materials, suggestions.len(), last)
    };
    let patch = async |path: String, body: Value| {
        let patch = service.patch(path, &body);
        patch.is(200).await;
    };
    let of = |materials: [&str; 2]| HashSet::from(materials.map(str::to_owned));
    let (materials, count, _) = ask(json!({})).await;
    assert_eq!((materials, count), (of(["suede", "rubber"]), 11));
    let (materials, count, _) = ask(json!({"nogo_materials": ["suede"]})).await;
    assert_eq!((materials, count), (of(["leather", "rubber"]), 19), "the request's own features");
    patch("/customers/kept".into(), json!({"features": {"nogo_materials": ["suede"]}})).await;
    let (materials, count, last) = ask(json!({})).await;
    assert_eq!((materials, count), (of(["leather", "rubber"]), 19), "another no-go");
    patch(format!("/articles/{last}"), json!({"material": "suede"})).await;
    let (_, count, last) = ask(json!({})).await;
    assert_eq!(count, 18, "an article that says it now");
    patch(format!("/articles/{last}"), json!({"gender": "men"})).await;
    assert_eq!(ask(json!({})).await.1, 17, "an article that does not fit now");
    service.ask_ok("/releases/next/activate", &json!({})).await;
    assert_eq!(ask(json!({})).await.1, 26, "gender requires nothing");
}

#[apply(on_sqlite)]
async fn no_gos_exclude_articles_unless_turned_off(Demo(service): Demo) {
    let outfit = blanked(&outfits()[0]);
    let ask = async |filters: Value| {
        let request = json!({"outfit": outfit, "k": 250, "filters": filters,
            "features": {"nogo_types": ["sneaker", "coat"], "nogo_materials": ["leather"]}});
        let answer = service.ask_ok("/complete", &request).await;
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

/// Stores articles of the demo release with other attributes, all of one type.
async fn ponchos(service: &Service, attributes: &[Value]) -> Vec<String> {
    let demo: Vec<Article> = rows();
    for (article, attributes) in demo.iter().zip(attributes) {
        let mut body = attributes.clone();
        body["type"] = json!("Poncho");
        service.put(&format!("/articles/{}", article.id), &body).is(200).await;
    }
    demo.iter().take(attributes.len()).map(|article| article.id.to_string()).collect()
}

#[apply(on_sqlite)]
async fn a_no_go_is_compared_without_case_and_in_lists(Demo(service): Demo) {
    let materials = [
        json!("Leder"),
        json!("leder"),
        json!(" LEDER "),
        json!("Leder/Nylon"),
        json!("Nylon, Leder"),
        json!(["Wolle", "leder"]),
        json!("Wolle und Leder"),
        json!("80% Wolle, 20 % Leder"),
        json!("Le\u{ad}der"),
        json!("Grobstrick"),
        json!("Lederimitat"),
        json!("Gru\u{308}ner Loden"),
        json!(1200),
    ];
    let bodies: Vec<Value> = materials.iter().map(|material| json!({"material": material})).collect();
    let ids_of = ponchos(&service, &bodies).await;
    let passing = async |no_gos: Value| {
        let request = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["Poncho"]}},
                             "features": {"nogo_materials": no_gos}});
        let answer = service.ask_ok("/complete", &request).await;
        let found = ids(&answer["blanks"][0]).into_iter().map(str::to_owned).collect::<HashSet<_>>();
        (0..materials.len()).filter(|place| found.contains(&ids_of[*place])).collect::<Vec<_>>()
    };
    for no_go in ["Leder", "leder ", "LEDER", "Leder/Seide", "seide; leder"] {
        assert_eq!(passing(json!([no_go])).await, [9, 10, 11, 12], "{no_go:?}");
    }
    assert_eq!(passing(json!(["nylon"])).await, [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(passing(json!(["GRÜNER loden", 1200])).await, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// However a feed writes it, a no-go sees it.
#[apply(on_sqlite)]
async fn no_gos_are_not_passed_by_spelling(Demo(service): Demo) {
    let invisible = "\u{ad}\u{34f}\u{61c}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{202a}\u{202e}\u{2060}\u{2063}\u{2066}\
                     \u{2069}\u{3164}\u{feff}\u{fe0f}\u{1}\u{e0061}";
    let mut materials: Vec<Value> = invisible
        .chars()
        .flat_map(|c| [format!("Lea{c}ther"), format!("{c}Nylon/Leather{c}")])
        .map(Value::from)
        .collect();
    materials.extend(["Ｌｅａｔｈｅｒ", "ＬＥＡＴＨＥＲ／Nylon", "𝐋𝐞𝐚𝐭𝐡𝐞𝐫"].map(Value::from));
    let separators = [
        "&", "\t", "\r\n", "\u{b}", "\u{1f}", "\u{2028}", ":", "_", ".", "–", " - ", "·", "、", "\\", "=",
        "*",
    ];
    materials.extend(separators.map(|separator| json!(format!("Leather{separator}Nylon"))));
    materials.extend([
        json!("Nylon (leather)"),
        json!("<b>leather</b>"),
        json!([[["Leather"]]]),
        json!({"outer": "leather"}),
    ]);
    materials
        .extend([json!({"leather": 80, "nylon": 20}), json!([{"parts": ["nylon", {"name": "Leather"}]}])]);
    let excluded = materials.len();
    materials.extend(["Leatherette", "faux leather", "leather-free", "pleather"].map(Value::from));
    let bodies: Vec<Value> = materials.iter().map(|material| json!({"material": material})).collect();
    let ids_of = ponchos(&service, &bodies).await;
    for no_go in ["leather", "Lea\u{200e}ther", "ｌｅａｔｈｅｒ"] {
        let request = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["Ponc\u{2063}ho"]}},
                             "features": {"nogo_materials": [no_go]}});
        let answer = service.ask_ok("/complete", &request).await;
        let found = ids(&answer["blanks"][0]).into_iter().map(str::to_owned).collect::<HashSet<_>>();
        let passing = (0..materials.len()).filter(|place| found.contains(&ids_of[*place]));
        let passing: Vec<&Value> = passing.map(|place| &materials[place]).collect();
        assert_eq!(passing, materials[excluded..].iter().collect::<Vec<_>>(), "{no_go:?}");
    }
}

#[apply(on_sqlite)]
async fn a_no_go_that_names_nothing_is_warned_of(Demo(service): Demo) {
    service.put("/articles/brand-new", &json!({"type": "coat", "material": "Loden"})).await;
    let ask = async |filters: Value| {
        let request = json!({"outfit": [null, null, null, null], "filters": filters, "k": 1,
                             "features": {"nogo_materials": ["lether/wool", "Wool", "loden"]}});
        let answer = service.ask_ok("/complete", &request).await;
        let warnings = answer["warnings"].as_array().unwrap().clone();
        warnings.into_iter().filter(|warning| warning["code"] == "no-go-without-articles").collect::<Vec<_>>()
    };
    let detail = "no article has the material \"lether\", so this no-go excludes nothing; check its spelling";
    assert_eq!(ask(json!({})).await, [json!({"code": "no-go-without-articles", "detail": detail})]);
    assert!(ask(json!({"no_gos": false})).await.is_empty());
}

#[apply(on_sqlite)]
async fn types_are_compared_without_case(Demo(service): Demo) {
    let ids_of = ponchos(&service, &[json!({})]).await;
    let second: Vec<Article> = rows();
    let second = second[1].id.as_str();
    service.put(&format!("/articles/{second}"), &json!({"type": "Cape/Poncho"})).await;
    for kind in ["Poncho", "poncho", " PONCHO"] {
        let request = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": [kind]}}});
        let answer = service.ask_ok("/complete", &request).await;
        let found: HashSet<&str> = ids(&answer["blanks"][0]).into_iter().collect();
        assert_eq!(found, HashSet::from([ids_of[0].as_str(), second]), "{kind:?}");
    }
    let no_go = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["poncho"]}},
                       "features": {"nogo_types": ["CAPE"]}});
    assert_eq!(ids(&service.ask_ok("/complete", &no_go).await["blanks"][0]), [ids_of[0].as_str()]);
}

#[apply(on_sqlite)]
async fn completes_several_blanks_alone_and_as_sets(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let mut slots = blanked(outfit);
    slots[3] = Value::Null;
    let request = json!({"customer": outfit.customer.as_str(), "outfit": slots, "k": 3, "sets": 4, "method": "gsu",
        "filters": {"types": {"1": ["jeans", "trousers", "skirt", "dress", "chinos"]}}});
    let answer = service.ask_ok("/complete", &request).await;
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
    // A set's probability is the product of asking one blank after the other.
    let first = sets[0]["articles"].as_array().unwrap();
    let mut filled = slots.clone();
    filled[1] = first[0]["article"]["id"].clone();
    let request = json!({"customer": outfit.customer.as_str(), "outfit": filled, "method": "gsu", "k": 250, "probability": true});
    let second = service.ask_ok("/complete", &request).await;
    let second = second["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|suggestion| suggestion["article"]["id"] == first[1]["article"]["id"])
        .unwrap()["probability"]
        .as_f64()
        .unwrap();
    let request = json!({"customer": outfit.customer.as_str(), "outfit": slots, "method": "gsu", "k": 250, "probability": true});
    let alone = service.ask_ok("/complete", &request).await;
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

#[apply(on_sqlite)]
async fn distinct_sets_differ_in_half_of_their_articles(Demo(service): Demo) {
    let ask = async |distinct: bool| -> Vec<HashSet<String>> {
        let request = json!({"customer": "c-014871", "outfit": ["a-00134", null, null, null], "k": 1, "sets": 16,
            "distinct_sets": distinct});
        let answer = service.ask_ok("/complete", &request).await;
        let id = |placed: &Value| placed["article"]["id"].as_str().unwrap().to_owned();
        let ids = |set: &Value| set["articles"].as_array().unwrap().iter().map(id).collect();
        answer["sets"].as_array().unwrap().iter().map(ids).collect()
    };
    let alike = |sets: &[HashSet<String>]| {
        let pairs = sets
            .iter()
            .enumerate()
            .flat_map(|(place, set)| sets[..place].iter().map(move |other| set.intersection(other).count()));
        pairs.filter(|same| 2 * same > 3).count()
    };
    let (usual, distinct) = (ask(false).await, ask(true).await);
    assert_eq!((usual.len(), alike(&distinct)), (16, 0), "{distinct:?}");
    assert!(alike(&usual) > 0 && distinct.len() > 8, "{} distinct ones", distinct.len());
}

#[apply(on_sqlite)]
async fn lift_and_reasons_are_computed(Demo(service): Demo) {
    let outfit = &outfits()[0];
    // With and without the customer the same articles are admissible.
    let filters = json!({"no_gos": false, "fit": false});
    let base = json!({
        "customer": outfit.customer.as_str(), "outfit": blanked(outfit), "method": "gsu", "k": 5, "filters": filters
    });
    let mut request = base.clone();
    request["lift"] = json!(true);
    request["explain"] = json!(true);
    let answer = service.ask_ok("/complete", &request).await;
    let top = &answer["blanks"][0]["suggestions"][0];
    let share = top["share"].as_f64().unwrap();

    let unknown =
        json!({"outfit": blanked(outfit), "method": "gsu", "k": 250, "lift": true, "filters": filters});
    let unknown = service.ask_ok("/complete", &unknown).await;
    let suggestions = unknown["blanks"][0]["suggestions"].as_array().unwrap();
    assert!(suggestions.iter().all(|suggestion| (suggestion["lift"].as_f64().unwrap() - 1.0).abs() < 1e-9));
    let same = suggestions.iter().find(|suggestion| suggestion["article"]["id"] == top["article"]["id"]);
    let expected = share / same.unwrap()["share"].as_f64().unwrap();
    assert!((top["lift"].as_f64().unwrap() / expected - 1.0).abs() < 1e-3);

    let mut reasons = 0;
    for suggestion in answer["blanks"][0]["suggestions"].as_array().unwrap() {
        for reason in suggestion["reasons"].as_array().unwrap() {
            reasons += 1;
            let factor = reason["factor"].as_f64().unwrap();
            assert!(factor >= 1.1 || factor <= 1.0 / 1.1, "only noticeable reasons: {factor}");
            assert!(reason["feature"].is_object() != reason["slot"].is_number());
        }
    }
    assert!(reasons > 0, "there is a reason");
    // A reason is the effect of leaving something out: the request without that article gives the same.
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap();
    let by_article = suggestions.iter().find_map(|suggestion| {
        let reasons = suggestion["reasons"].as_array().unwrap();
        reasons.iter().find(|reason| reason["slot"].is_number()).map(|reason| (suggestion, reason))
    });
    let (suggestion, reason) = by_article.expect("an article is a reason");
    let slot = usize::try_from(reason["slot"].as_u64().unwrap()).unwrap();
    let mut without = blanked(outfit);
    assert_eq!(reason["article"], without[slot]);
    let removed = without.remove(slot);
    let mut request = base.clone();
    // What is worn is not suggested.
    request["filters"]["exclude"] = json!([removed]);
    request["outfit"] = json!(without);
    request["k"] = json!(250);
    let found = service.ask_ok("/complete", &request).await;
    let found = found["blanks"][0]["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|other| other["article"]["id"] == suggestion["article"]["id"])
        .unwrap()["share"]
        .as_f64()
        .unwrap();
    let expected = suggestion["share"].as_f64().unwrap() / found;
    assert!((reason["factor"].as_f64().unwrap() / expected - 1.0).abs() < 1e-3);
}

#[apply(on_sqlite)]
async fn an_outfit_stays_within_its_budget(Demo(service): Demo) {
    let price = |article: &Value| article["price"].as_f64().unwrap();
    let anchor = price(&service.json("/articles/a-00134").await);
    let mut nothing = 0;
    for room in [0.5, 10.0, 60.0, 90.0, 150.0, 400.0, 5000.0] {
        let total = anchor + room;
        let request = json!({"customer": "c-014871", "outfit": ["a-00134", null, null, null], "k": 20, "sets": 16,
            "filters": {"price": {"total": total}}});
        let answer = service.ask_ok("/complete", &request).await;
        let sets = answer["sets"].as_array().map_or(&[][..], Vec::as_slice);
        for set in sets {
            let articles = set["articles"].as_array().unwrap();
            assert_eq!(articles.len(), 3);
            let sum: f64 = articles.iter().map(|filled| price(&filled["article"])).sum();
            assert!(anchor + sum <= total + 1e-9, "{sum} and {anchor} are above {total}");
        }
        let mut suggested = 0;
        for blank in answer["blanks"].as_array().unwrap() {
            for suggestion in blank["suggestions"].as_array().unwrap() {
                suggested += 1;
                assert!(anchor + price(&suggestion["article"]) <= total);
            }
        }
        if suggested == 0 {
            nothing += 1;
            assert!(sets.is_empty());
            assert_eq!(answer["warnings"][0]["code"], "nothing-admissible", "{answer:#}");
        } else {
            assert!(!sets.is_empty(), "{room}");
        }
    }
    assert!((1..5).contains(&nothing), "{nothing} of the budgets are too small");
    let request = json!({"outfit": ["a-00134", null], "filters": {"price": {"total": -1}}});
    let (status, problem) = service.ask("/complete", &request).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/filters/price/total")));
}

/// Both blanks have the same cheapest article.
#[apply(on_sqlite)]
async fn what_one_blank_takes_is_not_kept_for_another(Demo(service): Demo) {
    let stored = ponchos(&service, &[json!({"price": 10}), json!({"price": 20}), json!({"price": 30})]).await;
    for (total, suggested, sets) in [(25, 0, 0), (30, 2, 1), (45, 3, 2)] {
        let filters = json!({"types": {"0": ["poncho"], "1": ["poncho"]}, "price": {"total": total}});
        let request = json!({"outfit": [null, null], "k": 9, "sets": 9, "filters": filters});
        let answer = service.ask_ok("/complete", &request).await;
        for blank in answer["blanks"].as_array().unwrap() {
            let mut found = ids(blank);
            found.sort_unstable();
            let mut expected: Vec<&str> = stored[..suggested].iter().map(String::as_str).collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{total}: {answer:#}");
        }
        assert_eq!(answer["sets"].as_array().map_or(0, Vec::len), sets, "{total}");
        assert_eq!(answer["warnings"].to_string().contains("costs 5.00 or less"), sets == 0, "{answer:#}");
    }
}

#[apply(on_sqlite)]
async fn diversity_changes_the_order(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let ask = async |diversity: f64| {
        let request = json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit), "k": 10, "diversity": diversity});
        let answer = service.ask_ok("/complete", &request).await;
        let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().clone();
        let types: HashSet<String> = suggestions.iter().map(|s| s["article"]["type"].to_string()).collect();
        (suggestions.len(), types.len())
    };
    let (plain, varied) = (ask(0.0).await, ask(0.9).await);
    assert_eq!((plain.0, varied.0), (10, 10));
    assert!(varied.1 > plain.1, "more types: {plain:?} {varied:?}");
}

#[apply(on_sqlite)]
async fn articles_missing_from_catalogue_or_release_give_warnings(Demo(service): Demo) {
    let now = Timestamp::from_millis(2);
    let attributes = json!({"price": 10}).as_object().unwrap().clone();
    let new = Article::new(ArticleId::new("brand-new").unwrap(), "coat", attributes).unwrap();
    service.store.articles().put(&new, now).await.unwrap();
    let outfit = &outfits()[0];
    let gone = &outfit.articles()[0];
    let request = json!({"outfit": [gone.as_str(), "brand-new", null, outfit.articles()[2].as_str()], "method": "gsu", "k": 250});
    let before = service.ask("/complete", &request).await;
    assert_eq!(before.0, 422, "this process has not read it yet");
    assert!(service.store.articles().delete(gone, now).await.unwrap());
    service.releases.refresh().await.unwrap();

    let answer = service.ask_ok("/complete", &request).await;
    let codes: Vec<&str> =
        answer["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["article-not-in-catalogue", "article-not-in-release"]);
    assert_eq!(answer["blanks"][0]["slot"], 2, "slots are those of the request");
    let all = service
        .ask_ok(
            "/complete",
            &json!({"outfit": [null], "method": "gsu", "k": 250, "filters": {"types": {"0": ["coat"]}}}),
        )
        .await;
    assert!(
        !ids(&all["blanks"][0]).contains(&gone.as_str()) && !ids(&all["blanks"][0]).contains(&"brand-new")
    );

    // Changes over HTTP are visible at once.
    let id = ids(&all["blanks"][0])[0].to_owned();
    service.delete(&format!("/articles/{id}")).is(204).await;
    let after = service
        .ask_ok(
            "/complete",
            &json!({"outfit": [null], "method": "gsu", "k": 250, "filters": {"types": {"0": ["coat"]}}}),
        )
        .await;
    assert!(!ids(&after["blanks"][0]).contains(&id.as_str()));
}

#[apply(on_sqlite)]
async fn a_batch_answers_each_item(Demo(service): Demo) {
    let outfits = outfits();
    let good = |outfit: &Outfit| json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit)});
    let items = json!({"items": [good(&outfits[0]), {"outfit": [null], "k": 0}, 7, good(&outfits[1])]});
    let answer = service.ask_ok("/complete/batch", &items).await;
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 4);
    assert_eq!(items[1]["status"], 422);
    assert_eq!(items[1]["errors"][0]["pointer"], "/k");
    assert_eq!(items[2]["code"], "invalid");
    for (place, outfit) in [(0, &outfits[0]), (3, &outfits[1])] {
        let single = service.ask_ok("/complete", &good(outfit)).await;
        assert_eq!(ids(&items[place]["blanks"][0]), ids(&single["blanks"][0]));
    }
    // An item that is refused does not count.
    for wrong in [
        json!({"outfit": [null], "k": 30_000}),
        json!({"outfit": [null], "sets": 30_000}),
        json!({"outfit": vec![Value::Null; 20_000]}),
    ] {
        let items = json!({"items": [good(&outfits[0]), wrong]});
        let answer = service.ask_ok("/complete/batch", &items).await;
        assert!(answer["items"][0]["blanks"].is_array());
        assert_eq!(answer["items"][1]["status"], 422);
    }
    let many = vec![json!({"outfit": [null, null, null], "k": 250}); 27];
    let (status, problem) = service.ask("/complete/batch", &json!({"items": many})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/items")));
    assert!(problem["detail"].as_str().unwrap().contains("this one for 20250"), "{problem}");
    // More questions than the queue holds are answered, too.
    let all = vec![json!({"outfit": [null, null, null, null, null, null, null, null], "k": 5}); 256];
    let answer = service.ask_ok("/complete/batch", &json!({"items": all})).await;
    let answered = answer["items"].as_array().unwrap().iter().filter(|item| item["blanks"].is_array());
    assert_eq!(answered.count(), 256);
    let (status, problem) = service.ask("/complete/batch", &json!({"items": []})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/items")));
}

#[apply(on_sqlite)]
async fn an_overloaded_method_refuses_a_batch_whole(db: TestDatabase) {
    // With models of its own, whose queues no other test fills, and time for all of them on a slow machine.
    crate::web::fill(&db).await;
    let service = Service::start_with(&db, Limits { deadline_ms: 100_000, ..Limits::default() }).await;
    let live = service.releases.serve("demo").await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(100);
    let fill =
        |method: Method| [512, 412].map(|count| live.serving.reserve(method, count, deadline).unwrap());
    let items = |method: Option<&str>| {
        let item = json!({"features": {}, "outfit": [null], "method": method, "k": 1});
        json!({"items": [item.clone(), 7, item]})
    };
    let ask = |method, count: usize| {
        let mut body = items(method);
        body["items"] = body["items"].as_array().unwrap().iter().cycle().take(count).cloned().collect();
        if method.is_none() {
            for item in body["items"].as_array_mut().unwrap() {
                item.as_object_mut().map(|item| item.remove("method"));
            }
        }
        service.send("/complete/batch", body)
    };
    for (full, named) in [(live.default_method(), None), (Method::None, Some("none"))] {
        let room = fill(full);
        let refused = ask(named, 200).await;
        assert_eq!(refused.status(), 429, "{full}");
        // By the pace of this machine.
        assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
        let problem: Value = refused.json();
        assert_eq!(problem["code"], "queue-full", "{problem}");
        // A smaller one is answered, and so is one request.
        for count in [30, 3] {
            let answer: Value = ask(named, count).await.json();
            let answered = answer["items"].as_array().unwrap().iter();
            let statuses: Vec<_> = answered.map(|item| item["status"].as_u64().unwrap_or(200)).collect();
            assert_eq!(
                statuses.iter().filter(|status| **status == 200).count(),
                count / 3 * 2,
                "{statuses:?}"
            );
            assert!(statuses.iter().all(|status| [200, 422].contains(status)), "{statuses:?}");
        }
        if full != Method::None {
            assert_eq!(ask(Some("none"), 200).await.status(), 200, "another method has room");
        }
        drop(room);
        ask(named, 200).is(200).await;
    }
}

#[apply(on_sqlite)]
async fn an_unknown_customer_with_features_is_a_warning(Demo(service): Demo) {
    let outfit = blanked(&outfits()[0]);
    let visitor =
        json!({"features": {"gender": "female", "age": 34}, "outfit": outfit, "method": "gsu", "k": 3});
    let mut named = visitor.clone();
    named["customer"] = json!("nobody");
    let [answer, expected] =
        [service.ask_ok("/complete", &named).await, service.ask_ok("/complete", &visitor).await];
    assert_eq!(answer["blanks"], expected["blanks"]);
    let warned = |place: &Value| {
        let warnings = place["warnings"].as_array().unwrap();
        warnings.iter().filter(|warning| warning["code"] == "unknown-customer").count()
    };
    assert_eq!((warned(&answer), warned(&expected)), (1, 0));
    let body =
        json!({"customer": "nobody", "features": {"age": 34}, "outfit": outfit, "methods": ["none", "gsu"]});
    let compared = service.ask_ok("/compare", &body).await;
    assert_eq!(compared["columns"].as_array().unwrap().iter().map(warned).collect::<Vec<_>>(), [1, 1]);
    // The presence of `features` decides, not what is in them.
    for features in [json!({}), json!({"gender": null}), json!({"mood": "gloomy"})] {
        let body = json!({"customer": "nobody", "features": features, "outfit": outfit});
        assert_eq!(warned(&service.ask_ok("/complete", &body).await), 1, "{features}");
    }
    let (status, refused) =
        service.ask("/complete", &json!({"customer": "nobody", "features": null, "outfit": outfit})).await;
    assert_eq!((status, refused["errors"][0]["pointer"].as_str()), (422, Some("/features")), "{refused}");
    let (status, refused) = service.ask("/complete", &json!({"customer": "nobody", "outfit": outfit})).await;
    assert_eq!((status, refused["errors"][0]["pointer"].as_str()), (422, Some("/customer")));
}
