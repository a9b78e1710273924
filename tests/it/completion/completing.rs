//! `/complete` and `/complete/batch` on the demo release.

use std::{
    borrow::Borrow,
    collections::HashSet,
    time::{Duration, Instant},
};

use atelier::config::Limits;
use atelier_core::domain::{Article, Method, Outfit};
use serde_json::{Value, json};

use crate::harness::{
    Demo, NOW, Service, TestDatabase, Unconditional, apply, article, each, ids,
    json::{codes, list, number, text, with},
    on_sqlite, outfits, pick, rows,
};

impl Service {
    pub async fn complete(&self, request: impl Borrow<Value>) -> Value {
        self.ask_ok("/complete", request).await
    }

    /// The suggestions for the first blank.
    pub async fn suggest(&self, request: impl Borrow<Value>) -> Value {
        self.complete(request).await["blanks"][0]["suggestions"].take()
    }
}

/// The outfit with its second article blanked.
fn blanked(outfit: &Outfit) -> Vec<Value> {
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    slots[1] = Value::Null;
    slots
}

/// A request about an outfit of a customer.
fn question(outfit: &Outfit, more: impl Borrow<Value>) -> Value {
    with(json!({"customer": outfit.customer.as_str(), "outfit": blanked(outfit)}), more)
}

#[apply(on_sqlite)]
async fn suggests_for_a_blank(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let asked = json!({"method": "gsu", "k": 7, "probability": true});
    let answer = service.complete(question(outfit, asked)).await;
    let said = pick(&answer, "release method device warnings timing/questions");
    assert_eq!(said, json!(["demo", "gsu", "cpu", [], 1]));
    assert!(text(&answer["completion_id"]).len() > 40);
    assert!(number(&answer["timing"]["inference_ms"]) > 0.0);
    let [blank] = list(&answer["blanks"]) else { panic!("{answer}") };
    assert_eq!(blank["slot"], 1);
    let suggestions = list(&blank["suggestions"]);
    assert_eq!(suggestions.len(), 7);
    let mut before = 1.0;
    for (place, suggestion) in suggestions.iter().enumerate() {
        assert_eq!(suggestion["rank"], place + 1);
        let (probability, share) = (number(&suggestion["probability"]), number(&suggestion["share"]));
        assert!(probability > 0.0 && probability <= before && share >= probability && share <= 1.0);
        assert!(suggestion["article"]["type"].is_string() && suggestion["article"]["price"].is_number());
        assert!(suggestion.get("lift").is_none() && suggestion.get("reasons").is_none());
        before = probability;
    }
    let worn = blanked(outfit);
    assert!(!ids(&blank["suggestions"]).iter().any(|id| worn.contains(&json!(id))));

    // The order of the slots does not matter; and 7.0 is an integer, too.
    let reversed: Vec<Value> = blanked(outfit).into_iter().rev().collect();
    let asked = question(outfit, json!({"outfit": reversed, "method": "gsu", "k": 7.0}));
    let again = service.suggest(asked).await;
    assert_eq!(ids(&again), ids(&blank["suggestions"]));
    // Without `probability`, the other articles are not looked at. Shares are the same.
    for (alone, beside) in list(&again).iter().zip(suggestions) {
        assert!(alone.get("probability").is_none(), "{alone}");
        assert!((number(&alone["share"]) - number(&beside["share"])).abs() < 1e-5);
    }

    // Without a blank, one more article is suggested; without a stored customer, features are enough.
    let visitor =
        json!({"outfit": [outfit.articles()[0].as_str()], "features": {"gender": "female", "age": 30}});
    let answer = service.complete(visitor).await;
    assert_eq!(answer["blanks"][0]["slot"], 1);
    assert_eq!(list(&answer["blanks"][0]["suggestions"]).len(), 5, "the default is five");
    assert_eq!(codes(&answer["warnings"])[0], "short-outfit");
}

#[apply(on_sqlite)]
async fn filters_apply_before_suggestions_are_chosen(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let ask = async |filters: Value| {
        service.complete(question(outfit, json!({"k": 250, "filters": filters}))).await["blanks"][0].take()
    };
    let all = ids(&ask(json!({})).await["suggestions"]);
    assert_eq!(all.len(), 250, "as many as exist");
    let without = ids(&ask(json!({"exclude": [all[0]]})).await["suggestions"]);
    assert_eq!(without[..249], all[1..], "the next ones move up");

    let filters =
        json!({"types": {"1": ["coat", "jeans"]}, "price": {"min": 20, "max": 90}, "in_stock": true});
    let typed = ask(filters).await;
    for suggestion in list(&typed["suggestions"]) {
        let article = &suggestion["article"];
        assert!(["coat", "jeans"].contains(&text(&article["type"])), "{article}");
        assert!((20.0..=90.0).contains(&number(&article["price"])), "{article}");
        assert_ne!(article["in_stock"], false);
    }
    let found = list(&typed["suggestions"]).len();
    assert!(found > 0 && typed["admissible"] == found, "all of them are suggested: {}", typed["admissible"]);
    let nothing = ask(json!({"price": {"max": 0}})).await;
    assert_eq!((&nothing["suggestions"], &nothing["admissible"]), (&json!([]), &json!(0)));
}

/// The engine's sum of probabilities is rounded.
#[apply(on_sqlite)]
async fn all_admissible_articles_have_a_share_of_one(Demo(service): Demo) {
    let coats = |excluded: &[String]| {
        let filters = json!({"types": {"0": ["coat"]}, "fit": false, "in_stock": false, "exclude": excluded});
        service.suggest(json!({"outfit": [null, "a-00315"], "k": 250, "filters": filters}))
    };
    let shares = |coats: &Value| list(coats).iter().map(|one| number(&one["share"])).collect::<Vec<_>>();
    let all = coats(&[]).await;
    let (found, sum) = (ids(&all), shares(&all).iter().sum::<f64>());
    assert!((11..250).contains(&found.len()) && (sum - 1.0).abs() < 1e-12, "{found:?} {sum}");
    for alone in 0..10 {
        let others = [&found[..alone], &found[alone + 1..]].concat();
        assert_eq!(shares(&coats(&others).await), [1.0], "{}", found[alone]);
    }
}

/// What was made of a profile for one request serves the next, while all that it was made of stays as it is.
#[apply(on_sqlite)]
async fn a_changed_profile_article_or_release_counts_at_once(db: TestDatabase) {
    let folder = crate::outfits::api::folder_with_schema(|schema| {
        let of_gender =
            schema.lines().find(|line| line.starts_with("requires = {attribute = \"gender\"")).unwrap();
        schema.replace(of_gender, "")
    });
    crate::harness::fill(&db).await;
    let service = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", json!({})).await;
    let features = json!({"features": {"gender": "female", "nogo_materials": ["leather"]}});
    service.put("/customers/kept", features).is(201).await;
    let boots = async |own: Value| {
        let request = json!({"customer": "kept", "outfit": [null], "k": 250, "features": own,
            "filters": {"types": {"0": ["boot"]}}});
        let found = ids(&service.suggest(&request).await);
        assert_eq!(ids(&service.suggest(request).await), found);
        found
    };
    assert_eq!(boots(json!({})).await.len(), 11, "neither of leather nor for men");
    let no_suede = json!({"nogo_materials": ["suede"]});
    let mut found = boots(no_suede.clone()).await;
    assert_eq!(found.len(), 19, "the request's own features");
    service.patch("/customers/kept", json!({"features": no_suede})).is(200).await;
    assert_eq!(boots(json!({})).await, found, "another no-go");
    for (change, left) in [(json!({"material": "suede"}), 18), (json!({"gender": "men"}), 17)] {
        service.patch(format!("/articles/{}", found.last().unwrap()), &change).is(200).await;
        found = boots(json!({})).await;
        assert_eq!(found.len(), left, "{change}");
    }
    service.ask_ok("/releases/next/activate", json!({})).await;
    let all = boots(json!({})).await;
    assert_eq!(all.len(), 26, "gender requires nothing");
    service.delete(format!("/articles/{}", all[0])).is(204).await;
    assert_eq!(boots(json!({})).await, all[1..], "one is deleted");
}

/// Stores articles of the demo release with other attributes, all of one type.
async fn ponchos(service: &Service, attributes: &[Value]) -> Vec<String> {
    let demo: Vec<Article> = rows();
    for (article, attributes) in demo.iter().zip(attributes) {
        let body = with(attributes.clone(), json!({"type": "Poncho"}));
        service.put(format!("/articles/{}", article.id), body).is(200).await;
    }
    demo.iter().take(attributes.len()).map(|article| article.id.to_string()).collect()
}

#[apply(on_sqlite)]
async fn a_no_go_sees_each_word_of_an_article_in_any_spelling(Demo(service): Demo) {
    let materials = [
        json!(" LEDER "),
        json!("Nylon, Le\u{ad}der"),
        json!([["Wolle", {"name": "Leder"}]]),
        json!({"leder": 80, "nylon": 20}),
        json!("Lederimitat"),
        json!(1200),
    ];
    let stored = ponchos(&service, &materials.map(|material| json!({"material": material}))).await;
    for (no_gos, is_on, passing) in [
        (json!(["leder"]), true, &[4, 5][..]),
        (json!(["Le\u{200e}DER/Seide"]), true, &[4, 5]),
        (json!(["nylon"]), true, &[0, 2, 4, 5]),
        (json!(["ｌｅｄｅｒ", 1200]), true, &[4]),
        (json!(["leder"]), false, &[0, 1, 2, 3, 4, 5]),
    ] {
        let filters = json!({"types": {"0": ["Ponc\u{2063}ho"]}, "no_gos": is_on});
        let features = json!({"nogo_materials": no_gos});
        let request = json!({"outfit": [null], "k": 250, "filters": filters, "features": features});
        let found: HashSet<String> = ids(&service.suggest(request).await).into_iter().collect();
        let expected = passing.iter().map(|place| stored[*place].clone()).collect();
        assert_eq!(found, expected, "{no_gos}");
    }
}

/// The spellings themselves are a table of `no_go` in the core.
#[apply(on_sqlite)]
async fn a_no_go_is_found_in_longer_texts_and_by_synonyms(Demo(service): Demo) {
    let materials = [
        "leather-nylon",
        "real leathers",
        "leather's",
        "leather™",
        "leatherNylon",
        "80leather20nylon",
        "le\u{336}ather",
        "Léather",
        "faux leather",
        "leatherette",
        "grey wool",
        "light-blue",
        "Cotton, T400",
        "soft élastomultiesters",
    ];
    let stored = ponchos(&service, &materials.map(|material| json!({"material": material}))).await;
    for (no_go, passing) in [
        ("leather", &[8, 9, 10, 11, 12, 13][..]),
        ("faux-leather", &[0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]),
        // `grey, gray` are the same to the shop.
        ("gray", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13]),
        ("Elastomultiester", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ("t400", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ] {
        let request = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["poncho"]}},
            "features": {"nogo_materials": [no_go]}});
        let found: HashSet<String> = ids(&service.suggest(request).await).into_iter().collect();
        let expected = passing.iter().map(|place| stored[*place].clone()).collect();
        assert_eq!(found, expected, "{no_go}");
    }
    // A changed article counts at once.
    service.patch(format!("/articles/{}", stored[8]), json!({"material": "softLeather"})).is(200).await;
    let request = json!({"outfit": [null], "k": 250, "filters": {"types": {"0": ["poncho"]}},
        "features": {"nogo_materials": ["leather"]}});
    assert_eq!(ids(&service.suggest(request).await).len(), 5);
    // Types, too, one way only: `shoe` is each of its kinds, and a boot is no other shoe.
    for (types, no_go, left) in [
        ("shoes", "shoe", false),
        ("boot", "shoes", false),
        ("sneaker", "boot", true),
        ("pumps", "heel", false),
    ] {
        let request = json!({"outfit": [null], "k": 1, "filters": {"types": {"0": [types]}, "fit": false},
            "features": {"nogo_types": [no_go]}});
        let found = service.ask_ok("/complete", request).await;
        assert_eq!(found["blanks"][0]["admissible"] != 0, left, "{types} without {no_go}");
    }
}

#[apply(on_sqlite)]
async fn a_no_go_that_names_nothing_is_warned_of(Demo(service): Demo) {
    service.put("/articles/brand-new", json!({"type": "coat", "material": "Loden"})).await;
    let ask = async |filters: Value| {
        let request = json!({"outfit": [null, null, null, null], "filters": filters, "k": 1,
                             "features": {"nogo_materials": ["lether/wool", "Wool", "loden"]}});
        let warnings = service.complete(request).await["warnings"].take();
        let of_no_gos = list(&warnings).iter().filter(|warning| warning["code"] == "no-go-without-articles");
        of_no_gos.map(|warning| text(&warning["detail"]).to_owned()).collect::<Vec<_>>()
    };
    let detail = "no article has the material \"lether\", so this no-go excludes nothing; check its spelling";
    assert_eq!(ask(json!({})).await, [detail]);
    assert!(ask(json!({"no_gos": false})).await.is_empty());
}

#[apply(on_sqlite)]
async fn completes_several_blanks_alone_and_as_sets(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let mut slots = blanked(outfit);
    slots[3] = Value::Null;
    let asked = json!({"outfit": slots, "k": 3, "sets": 4, "method": "gsu",
        "filters": {"types": {"1": ["jeans", "trousers", "skirt", "dress", "chinos"]}}});
    let answer = service.complete(question(outfit, asked)).await;
    assert_eq!(each(&answer["blanks"], "slot"), json!([1, 3]));
    assert_eq!(list(&answer["sets"]).len(), 4);
    let (mut before, mut seen) = (1.0, HashSet::new());
    for set in list(&answer["sets"]) {
        let probability = number(&set["probability"]);
        assert!(probability > 0.0 && probability <= before);
        before = probability;
        assert_eq!(each(&set["articles"], "slot"), json!([1, 3]), "{set}");
        let articles = ids(&set["articles"]);
        assert!(articles[0] != articles[1] && seen.insert(articles), "twice: {set}");
    }
    // A set's probability is the product of asking one blank after the other.
    let best = &answer["sets"][0];
    let probability = async |slots: Vec<Value>, article: String| {
        let asked = json!({"outfit": slots, "method": "gsu", "k": 250, "probability": true});
        let suggestions = service.suggest(question(outfit, asked)).await;
        let found = list(&suggestions).iter().find(|one| one["article"]["id"] == article);
        number(&found.unwrap()["probability"])
    };
    let [first, second] = <[String; 2]>::try_from(ids(&best["articles"])).unwrap();
    let alone = probability(slots.clone(), first.clone()).await;
    slots[1] = json!(first);
    let product = alone * probability(slots, second).await;
    assert!((number(&best["probability"]) / product - 1.0).abs() < 1e-3, "{product}: {best}");
}

#[apply(on_sqlite)]
async fn sets_are_distinct_if_asked_for(Demo(service): Demo) {
    for distinct in [false, true] {
        let request = json!({"customer": "c-014871", "outfit": ["a-00134", null, null, null], "k": 1, "sets": 16,
            "distinct_sets": distinct});
        let answer = service.complete(request).await;
        let sets: Vec<Vec<String>> = list(&answer["sets"]).iter().map(|set| ids(&set["articles"])).collect();
        let same = |set: &[String], other: &[String]| set.iter().filter(|id| other.contains(id)).count();
        let alike = (1..sets.len()).any(|place| sets[..place].iter().any(|set| same(set, &sets[place]) > 1));
        assert!(alike != distinct && sets.len() > 8, "{distinct}: {sets:?}");
    }
}

#[apply(on_sqlite)]
async fn lift_and_reasons_are_computed(Demo(service): Demo) {
    let outfit = &outfits()[0];
    // With and without the customer the same articles are admissible.
    let base = json!({"method": "gsu", "k": 250, "filters": {"no_gos": false, "fit": false}});
    let asked = question(outfit, with(base.clone(), json!({"k": 5, "lift": true, "explain": true})));
    let suggestions = service.suggest(asked).await;
    let share_of = |suggestions: &Value, article: &Value| {
        let found = list(suggestions).iter().find(|one| one["article"]["id"] == *article);
        number(&found.unwrap()["share"])
    };
    let top = &suggestions[0];
    let unknown = json!({"outfit": blanked(outfit), "lift": true});
    let unknown = service.suggest(with(base.clone(), unknown)).await;
    assert!(list(&unknown).iter().all(|suggestion| (number(&suggestion["lift"]) - 1.0).abs() < 1e-9));
    let expected = number(&top["share"]) / share_of(&unknown, &top["article"]["id"]);
    assert!((number(&top["lift"]) / expected - 1.0).abs() < 1e-3);

    let reasons: Vec<(&Value, &Value)> = list(&suggestions)
        .iter()
        .flat_map(|suggestion| list(&suggestion["reasons"]).iter().map(move |reason| (suggestion, reason)))
        .collect();
    for (_, reason) in &reasons {
        let factor = number(&reason["factor"]);
        assert!(factor >= 1.1 || factor <= 1.0 / 1.1, "only noticeable reasons: {factor}");
        assert!(reason["feature"].is_object() != reason["slot"].is_number());
    }
    // A reason is the effect of leaving something out: the request without that article gives the same.
    let by_article = reasons.iter().find(|(_, reason)| reason["slot"].is_number());
    let (suggestion, reason) = by_article.expect("an article is a reason");
    let mut without = blanked(outfit);
    let removed = without.remove(usize::try_from(reason["slot"].as_u64().unwrap()).unwrap());
    assert_eq!(reason["article"], removed);
    // What is worn is not suggested.
    let filters = json!({"no_gos": false, "fit": false, "exclude": [removed]});
    let asked = question(outfit, with(base, json!({"outfit": without, "filters": filters})));
    let share = share_of(&service.suggest(asked).await, &suggestion["article"]["id"]);
    let expected = number(&suggestion["share"]) / share;
    assert!((number(&reason["factor"]) / expected - 1.0).abs() < 1e-3);
}

#[apply(on_sqlite)]
async fn an_outfit_stays_within_its_budget(Demo(service): Demo) {
    let price = |of: &Value| number(&of["article"]["price"]);
    let anchor = number(&service.json("/articles/a-00134").await["price"]);
    let mut nothing = 0;
    for room in [0.5, 10.0, 60.0, 90.0, 150.0, 400.0, 5000.0] {
        let filters = json!({"price": {"total": anchor + room}});
        let asked =
            json!({"customer": "c-014871", "outfit": ["a-00134", null, null, null], "k": 20, "sets": 16});
        let answer = service.complete(with(asked, json!({"filters": filters}))).await;
        let sets = answer["sets"].as_array().map_or(&[][..], Vec::as_slice);
        for set in sets.iter().map(|set| list(&set["articles"])) {
            let sum: f64 = set.iter().map(price).sum();
            assert!(set.len() == 3 && sum <= room + 1e-9, "{sum} is above {room}");
        }
        let mut suggested = list(&answer["blanks"]).iter().flat_map(|blank| list(&blank["suggestions"]));
        let is_empty = suggested.clone().next().is_none();
        assert!(suggested.all(|one| price(one) <= room + 1e-9), "{room}: {answer:#}");
        assert_eq!(sets.is_empty(), is_empty, "{room}");
        if is_empty {
            nothing += 1;
            assert_eq!(codes(&answer["warnings"])[0], "nothing-admissible", "{answer:#}");
        }
    }
    assert!((1..5).contains(&nothing), "{nothing} of the budgets are too small");
}

#[apply(on_sqlite)]
async fn the_cheapest_article_of_two_blanks_is_paid_for_once(Demo(service): Demo) {
    let stored = ponchos(&service, &[10, 20, 30].map(|price| json!({"price": price}))).await;
    for (total, suggested, sets) in [(25, 0, 0), (30, 2, 1), (45, 3, 2)] {
        let filters = json!({"types": {"0": ["poncho"], "1": ["poncho"]}, "price": {"total": total}});
        let request = json!({"outfit": [null, null], "k": 9, "sets": 9, "filters": filters});
        let answer = service.complete(request).await;
        for blank in list(&answer["blanks"]) {
            let mut found = ids(&blank["suggestions"]);
            found.sort_by_key(|id| stored.iter().position(|other| other == id));
            assert_eq!(found, stored[..suggested], "{total}: {answer:#}");
        }
        assert_eq!(answer["sets"].as_array().map_or(0, Vec::len), sets, "{total}");
        assert_eq!(answer["warnings"].to_string().contains("costs 5.00 or less"), sets == 0, "{answer:#}");
    }
}

#[apply(on_sqlite)]
async fn diversity_brings_more_types(Demo(service): Demo) {
    let outfit = &outfits()[0];
    let types = async |diversity: f64| {
        let suggestions = service.suggest(question(outfit, json!({"k": 10, "diversity": diversity}))).await;
        assert_eq!(list(&suggestions).len(), 10);
        list(&suggestions).iter().map(|one| one["article"]["type"].to_string()).collect::<HashSet<_>>().len()
    };
    let (plain, varied) = (types(0.0).await, types(0.9).await);
    assert!(varied > plain, "{plain} {varied}");
}

#[apply(on_sqlite)]
async fn articles_missing_from_catalogue_or_release_give_warnings(Demo(service): Demo) {
    service.store.articles().set(&article("brand-new", "coat", json!({})), NOW).await.unwrap();
    let outfit = outfits()[0].articles().to_vec();
    let gone = outfit[0].as_str();
    let request = json!({"outfit": [gone, "brand-new", null, outfit[2].as_str()], "method": "gsu", "k": 250});
    assert_eq!(service.ask("/complete", &request).await.0, 422, "this process has not read it yet");
    assert!(service.store.articles().remove(&outfit[0], NOW).await.unwrap());
    service.releases.refresh().await.unwrap();
    let answer = service.complete(&request).await;
    assert_eq!(codes(&answer["warnings"]), ["article-not-in-catalogue", "article-not-in-release"]);
    assert_eq!(answer["blanks"][0]["slot"], 2, "slots are those of the request");

    let coats = json!({"outfit": [null], "method": "gsu", "k": 250, "filters": {"types": {"0": ["coat"]}}});
    let found = ids(&service.suggest(coats).await);
    assert!(!found.iter().any(|id| id == gone || id == "brand-new"), "{found:?}");
}

#[apply(on_sqlite)]
async fn a_batch_answers_each_item(Demo(service): Demo) {
    let outfits = outfits();
    let good = |outfit: &Outfit| question(outfit, json!({}));
    let batch = |items: Value| service.send("/complete/batch", json!({"items": items}));
    let answer =
        batch(json!([good(&outfits[0]), {"outfit": [null], "k": 0}, 7, good(&outfits[1])])).ok().await;
    let [one, wrong, none, other] = list(&answer["items"]) else { panic!("{answer}") };
    assert_eq!((&wrong["status"], &wrong["errors"][0]["pointer"]), (&json!(422), &json!("/k")));
    assert_eq!(none["code"], "invalid");
    for (item, outfit) in [(one, &outfits[0]), (other, &outfits[1])] {
        assert_eq!(ids(&item["blanks"][0]["suggestions"]), ids(&service.suggest(good(outfit)).await));
    }
    // An item that is refused does not count.
    for wrong in [
        json!({"outfit": [null], "k": 30_000}),
        json!({"outfit": [null], "sets": 30_000}),
        json!({"outfit": vec![Value::Null; 20_000]}),
    ] {
        let answer = batch(json!([good(&outfits[0]), wrong])).ok().await;
        assert!(answer["items"][0]["blanks"].is_array(), "{wrong}");
        assert_eq!(answer["items"][1]["status"], 422, "{wrong}");
    }
    let many = vec![json!({"outfit": [null, null, null], "k": 250}); 27];
    let problem = batch(json!(many)).await.assert_problem(422, &["/items"]);
    assert!(text(&problem["detail"]).contains("this one for 20250"), "{problem}");
    batch(json!([])).await.assert_problem(422, &["/items"]);
    // More questions than the queue holds are answered, too.
    let answer = batch(json!(vec![json!({"outfit": vec![Value::Null; 8], "k": 5}); 256])).ok().await;
    let answered = list(&answer["items"]).iter().filter(|item| item["blanks"].is_array());
    assert_eq!(answered.count(), 256);
}

#[apply(on_sqlite)]
async fn an_overloaded_method_refuses_a_batch_whole(db: TestDatabase) {
    // With models of its own, whose queues no other test fills, and time for all of them on a slow machine.
    crate::harness::fill(&db).await;
    let service = Service::start_with(&db, Limits { deadline_ms: 100_000, ..Limits::default() }).await;
    let live = service.releases.serve("demo").await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(100);
    let fill =
        |method: Method| [512, 412].map(|count| live.serving.reserve(method, count, deadline).unwrap());
    // A third of the items is wrong.
    let ask = |method: Option<&str>, count: usize| {
        let mut item = json!({"features": {}, "outfit": [null], "k": 1});
        if let Some(method) = method {
            item["method"] = json!(method);
        }
        let items: Vec<Value> = [item.clone(), json!(7), item].into_iter().cycle().take(count).collect();
        service.send("/complete/batch", json!({"items": items}))
    };
    for (full, named) in [(live.default_method(), None), (Method::None, Some("none"))] {
        let room = fill(full);
        let refused = ask(named, 200).await;
        let problem = refused.assert_problem(429, &[]);
        // By the pace of this machine.
        assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
        assert_eq!(problem["code"], "queue-full", "{problem}");
        // A smaller one is answered, and so is one request.
        for count in [30, 3] {
            let answer = ask(named, count).await.json();
            let mut statuses: Vec<_> =
                list(&answer["items"]).iter().map(|item| item["status"].as_u64().unwrap_or(200)).collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [vec![200; count / 3 * 2], vec![422; count / 3]].concat(), "{full}");
        }
        if full != Method::None {
            ask(Some("none"), 200).is(200).await; // Another method has room.
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
    let named = with(visitor.clone(), json!({"customer": "nobody"}));
    let warned = |place: &Value| codes(&place["warnings"]).contains(&"unknown-customer");
    let (answer, expected) = (service.complete(named).await, service.complete(visitor).await);
    assert_eq!(answer["blanks"], expected["blanks"]);
    assert_eq!((warned(&answer), warned(&expected)), (true, false));
    let body =
        json!({"customer": "nobody", "features": {"age": 34}, "outfit": outfit, "methods": ["none", "gsu"]});
    let compared = service.ask_ok("/compare", body).await;
    assert_eq!(list(&compared["columns"]).iter().map(warned).collect::<Vec<_>>(), [true, true]);
    // The presence of `features` decides, not what is in them.
    for features in [json!({}), json!({"gender": null}), json!({"mood": "gloomy"})] {
        let body = json!({"customer": "nobody", "features": features, "outfit": outfit});
        assert!(warned(&service.complete(body).await), "{features}");
    }
    let refused = json!({"customer": "nobody", "features": null, "outfit": outfit});
    service.send("/complete", refused).await.assert_problem(422, &["/features"]);
}
