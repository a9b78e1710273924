//! `/looks`, and `/articles/{id}/looks`.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use atelier_core::{domain::Role, util::calendar};
use serde_json::{Value, json};

use crate::harness::{
    Demo, Html, Replicated, Service, apply, assert_has, contract, each, ids,
    json::{list, number, with},
    on_sqlite, pick, until,
};

/// A blouse, a coat, trousers and ballerinas.
const ARTICLES: [&str; 4] = ["a-00134", "a-01243", "a-00568", "a-00259"];

fn look(more: &Value) -> Value {
    with(json!({"title": "Autumn office", "articles": ARTICLES, "state": "published"}), more)
}

impl Service {
    /// Stores a published look of the four articles, unless it says otherwise.
    async fn look(&self, name: &str, more: Value) -> Value {
        let answer = self.put(format!("/looks/{name}"), look(&more)).await;
        assert!(answer.is_ok(), "{}: {}", answer.request, answer.text());
        answer.json()
    }

    /// The looks of a product page.
    async fn looks_with(&self, article: &str, query: &str) -> Vec<Value> {
        self.json(format!("/articles/{article}/looks?{query}")).await["looks"].as_array().unwrap().clone()
    }

    /// The names of the looks of the blouse's page; what a method chose has none.
    async fn names(&self, query: &str) -> Vec<String> {
        let looks = self.looks_with("a-00134", query).await;
        looks.iter().map(|look| look["look"].as_str().unwrap_or("-").to_owned()).collect()
    }

    async fn sell_out(&self, article: &str) {
        self.patch(format!("/articles/{article}"), json!({"in_stock": false})).is(200).await;
    }
}

/// What every kind of document has is asked of rules.
#[apply(contract)]
async fn looks_are_stored_and_listed(Demo(service): Demo) {
    let ends_at = json!({"ends_at": "2099-01-01T00:00:00+01:00", "tags": ["office"], "order": 2});
    let added = service.put("/looks/Autumn%20office", look(&ends_at)).is(201).await.json();
    assert_has(&added, json!({"warnings": [], "look": {"ends_at": "2098-12-31T23:00:00Z"}}));
    assert_eq!(service.json("/looks/Autumn%20office").await, added["look"]);
    let changed = service.patch("/looks/Autumn%20office", json!({"state": "draft", "tags": null})).ok().await;
    assert_has(&changed, json!({"look": {"state": "draft", "tags": null}}));
    let tried = service.put("/looks/tried?dry_run=true", look(&ends_at)).await;
    assert!(tried.is_refused(), "looks have no trial: {}", tried.status());
    service.get("/looks/tried").is(404).await;
    service.look("b", json!({"articles": ["a-00134", "unheard-of"]})).await;
    let page = service.json("/looks?n=1").await;
    assert_has(&page, json!({"items": [{"name": "Autumn office"}]}));
    let next = service.json(format!("/looks?cursor={}", page["next_cursor"].as_str().unwrap())).await;
    assert_has(&next, json!({"items": [{"name": "b"}]}));
    service.delete("/looks/b").is(204).await;
    let [first, second] = ["look.put Autumn office"; 2];
    assert_eq!(service.actions(4).await, ["look.delete b", "look.put b", first, second]);
    for (wrong, pointer) in [
        (json!({"articles": ["a-00134"]}), "/articles"),
        (json!({"articles": ["a-00134", "a-00134"]}), "/articles/1"),
        (json!({"pictures": ["javascript:alert(1)"]}), "/pictures/0"),
        (json!({"title": "x".repeat(129)}), "/title"),
        (json!({"order": 1_000_001}), "/order"),
        (json!({"starts_at": "2027-01-01T00:00:00Z", "ends_at": "2027-01-01T00:00:00Z"}), "/ends_at"),
        (json!({"when": {"features": {"gender": []}}}), "/when/features/gender"),
        (json!({"when": {"methods": ["gsu"]}}), "/when/methods"),
        (json!({"name": "other"}), "/name"),
    ] {
        service.put("/looks/wrong", look(&wrong)).await.assert_problem(422, &[pointer]);
    }
}

#[apply(on_sqlite)]
async fn a_product_page_shows_published_looks_then_outfits(Demo(service): Demo) {
    let outfits = service.looks_with("a-00134", "").await;
    assert_eq!(service.names("").await, ["-"; 3], "nothing is published");
    for (at, outfit) in outfits.iter().enumerate() {
        let own = ids(&outfit["articles"]);
        assert_eq!((&*own[0], own.len()), ("a-00134", 4));
        let sum: f64 = list(&outfit["articles"]).iter().map(|piece| number(&piece["article"]["price"])).sum();
        assert!((number(&outfit["total"]) - sum).abs() < 0.005, "{outfit}");
        for other in &outfits[..at] {
            let other = ids(&other["articles"]);
            let same = own[1..].iter().filter(|id| other.contains(id)).count();
            assert!(same <= 1, "{own:?} {other:?}");
        }
    }
    for (name, more) in [
        ("second", json!({"order": 2})),
        ("first", json!({"articles": ["a-00568", "a-00134"], "order": 1})),
        ("draft", json!({"state": "draft"})),
        ("past", json!({"ends_at": "2020-01-01T00:00:00Z"})),
        ("men", json!({"when": {"features": {"gender": ["male"]}}})),
    ] {
        service.look(name, more).await;
    }
    assert_eq!(service.names("").await, ["first", "second", "-"]);
    let looks = service.looks_with("a-00134", "").await;
    assert_eq!(ids(&looks[0]["articles"]), ["a-00568", "a-00134"], "in the editor's order");
    assert_eq!(looks[1]["title"], "Autumn office");
    assert_eq!(ids(&looks[1]["articles"]), ARTICLES);
    assert_eq!(service.names("n=1").await, ["first"]);
    assert_eq!(service.looks_with("a-01243", "n=1").await[0]["look"], "second");
    // For a customer, and within a total.
    service.put("/customers/him", json!({"features": {"gender": "male"}})).is(201).await;
    let his = service.names("customer=him&n=9").await;
    assert!(!his.contains(&"second".into()), "its articles are women's: {his:?}");
    let cheap = service.looks_with("a-00134", "total_max=110&n=9").await;
    assert!(cheap.len() > 1 && cheap[0]["look"] == "first", "{cheap:?}");
    assert!(cheap.iter().all(|look| look["look"] != "second" && look["total"].as_f64().unwrap() <= 110.0));
    // Reasons are given for what the method chose.
    let explained = service.looks_with("a-00134", "customer=c-000010&explain=true&n=3").await;
    let last = explained.last().unwrap();
    let given: Vec<_> = list(&last["articles"]).iter().map(|piece| piece["reasons"].as_array()).collect();
    assert!(given[0].is_none() && given[1].is_some(), "{last}");
    assert!(given.into_iter().flatten().any(|reasons| !reasons.is_empty()), "{last}");
    for wrong in ["n=17", "total_max=-1", "customer=nobody", "n=5&explain=true"] {
        service.get(format!("/articles/a-00134/looks?{wrong}")).is(422).await;
    }
}

#[apply(on_sqlite)]
async fn rules_and_stock_hold_in_looks_on_every_replica(Replicated(service, replica): Replicated) {
    service.look("replaced", json!({"order": 1})).await;
    let withheld = json!({"order": 2, "if_missing": "withhold", "articles": ["a-01243", "a-00134"]});
    service.look("withheld", withheld).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(service.names("n=2").await, ["replaced", "withheld"]);
    }
    service.sell_out("a-01243").await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(service.names("n=2").await, ["replaced", "-"]);
        let coat = json!({"replaces": "a-01243", "article": {"type": "coat", "in_stock": true}});
        let trousers = json!({"replaces": null, "article": {"id": "a-00568"}});
        let looks = service.looks_with("a-00134", "n=1").await;
        assert_has(&looks[0], json!({"articles": [{}, coat, trousers, {}]}));
    }
    // What a rule excludes or keeps apart is not shown.
    let never = json!({"effect": "never-together", "articles": {"ids": ["a-00568"]}, "others": {"ids": ["a-00259"]}, "state": "active"});
    service.put("/rules/never", never).is(201).await;
    assert_eq!(service.names("n=1").await, ["-"]);
    service.delete("/rules/never").is(204).await;
    let gone = json!({"effect": "exclude", "articles": {"ids": ["a-00259"]}, "state": "active"});
    service.put("/rules/gone", gone).is(201).await;
    let looks = service.looks_with("a-00134", "n=1").await;
    assert_eq!(looks[0]["articles"][3]["replaces"], "a-00259", "{looks:?}");
    for article in ["a-00568", "a-00259"] {
        service.sell_out(article).await;
    }
    assert_eq!(service.names("n=1").await, ["-"], "nothing of the editor's is left");
}

#[apply(on_sqlite)]
async fn answers_for_everybody_are_cached(Demo(service): Demo) {
    let path = "/articles/a-00134/looks";
    let ask = |path: &str, tag: &str| service.get(path).header("if-none-match", tag);
    let mut tag = String::new();
    for path in ["/articles/a-00134/similar", path] {
        let first = service.get(path).await;
        assert!(first.header("cache-control").starts_with("public, max-age="), "{first:?}");
        assert_eq!(service.get(path).await.text(), first.text(), "the same completion ids");
        first.header("etag").clone_into(&mut tag);
        ask(path, &tag).is(304).await;
        let of_customer = format!("{path}?customer=c-000010");
        let own = service.get(&of_customer).await;
        assert_eq!(own.header("cache-control"), "private, no-cache");
        // Though its ids differ.
        ask(&of_customer, own.header("etag")).is(304).await;
    }
    service.look("new", json!({})).await;
    assert_eq!(ask(path, &tag).ok().await["looks"][0]["look"], "new");
    // An answer ends with a look's time.
    let soon = SystemTime::now() + Duration::from_secs(2);
    service.look("new", json!({"ends_at": calendar::rfc3339(soon)})).await;
    let ending = service.get(path).await.header("cache-control").to_owned();
    assert!(["public, max-age=0", "public, max-age=1"].contains(&&*ending), "{ending}");
    until!(service.names("").await == ["-"; 3]);
    // Feedback on a published look is the look's, on the others the method's.
    service.look("new", json!({})).await;
    let looks = service.looks_with("a-00134", "n=2").await;
    for (shown, method) in looks.iter().zip(["look", "match"]) {
        let piece = &shown["articles"][2];
        let event = json!([{"id": method, "completion_id": shown["completion_id"], "kind": "accepted",
            "slot": piece["slot"], "article": piece["article"]["id"]}]);
        assert_has(&service.ask_ok("/feedback", event).await, json!([{"recorded": true}]));
        let counted = each(&service.json("/feedback/counts").await["items"], "method");
        assert!(list(&counted).contains(&json!(method)), "{counted}");
    }
}

#[apply(on_sqlite)]
async fn totals_are_of_the_variants_that_the_customer_needs(Demo(service): Demo) {
    let variants = json!([
        {"id": "v-s", "size": "S", "price": 50.1, "stock": 3}, {"id": "v-m", "size": "M", "price": 10.1, "stock": 3},
    ]);
    let blouse = json!({"type": "blouse", "gender": "women", "variants": variants});
    service.put("/articles/v", blouse).is(201).await;
    service.look("sizes", json!({"articles": ["v-s", "a-00568", "a-00259"]})).await;
    service.put("/customers/m", json!({"features": {"gender": "female", "top_size": "M"}})).is(201).await;
    let first = async |query: &str| service.looks_with("v", query).await[0].clone();
    // Trousers of 47.90 and ballerinas of 37.90.
    let pieces = json!([{"variant": {"id": "v-m"}}, {}, {}]);
    let expected = json!({"look": "sizes", "total": 95.9, "articles": pieces});
    assert_has(&first("customer=m&n=1").await, expected);
    assert_eq!(first("customer=m&n=1&total_max=95.9").await["look"], "sizes", "to the cent");
    assert_ne!(first("customer=m&n=1&total_max=95.89").await["look"], "sizes");
    // A look of one article under two names is none.
    let twice = service.look("twice", json!({"articles": ["v-s", "v-m"], "order": 0})).await;
    assert_has(&twice, json!({"warnings": [{"code": "same-article"}]}));
    assert!(service.looks_with("v", "n=9").await.iter().all(|look| look["look"] != "twice"));
}

#[apply(on_sqlite)]
async fn everybodys_feedback_on_a_shared_answer_counts(Demo(service): Demo) {
    service.look("new", json!({})).await;
    let shown = &service.looks_with("a-00134", "n=1").await[0];
    let [first, second] = ["c-000010", "c-000867"].map(Value::from);
    for (at, customer) in [&first, &second, &second, &Value::Null, &Value::Null].into_iter().enumerate() {
        for (slot, article) in ARTICLES.into_iter().enumerate().skip(1) {
            let event = json!([{"id": format!("e{at}-{slot}"), "completion_id": shown["completion_id"],
                "kind": "accepted", "slot": slot, "article": article, "customer": customer}]);
            let answer = service.ask_ok("/feedback", event).await;
            assert_eq!(answer[0]["recorded"], at != 2, "{customer}, {at}: {answer}");
        }
    }
    let counts = service.json("/feedback/counts").await;
    assert_eq!(counts["items"][0]["accepted"], 12, "{counts}");
    let outfits = service.get("/feedback/outfits.jsonl").await.text();
    assert_eq!(outfits.lines().count(), 2, "an outfit a customer: {outfits}");
}

#[apply(on_sqlite)]
async fn a_customers_name_is_no_title(Demo(service): Demo) {
    let browser = service.signed_in(Role::Merchandiser).await;
    let saved = json!({"customer": "c-000010", "articles": ARTICLES, "name": "Anna, wedding"});
    let saved = service.send("/outfits", saved).is(201).await.json()["id"].to_string();
    let form = async || browser.page(format!("/merchandising/look?outfit={saved}")).await;
    form().await.lacks(["Anna"]).has([format!("value=\"outfit-{saved}\""), "id=\"title\" value=\"\"".into()]);
    let stored = json!({"title": "Wedding", "articles": ["a-00134", "a-00259"]});
    service.put(format!("/looks/outfit-{saved}"), stored).is(201).await;
    form().await.has(["id=\"title\" value=\"Wedding\"", "value=\"a-00568\" checked"]);
    browser.get("/merchandising/look?outfit=9999").is(404).await;
}

#[apply(on_sqlite)]
async fn a_saved_outfit_becomes_a_look(Demo(service): Demo) {
    let other =
        json!({"title": "Other", "articles": ["a-00134", "a-00259"], "state": "published", "order": 5});
    service.put("/looks/other", other).is(201).await;
    let body = json!({"articles": ["a-00134", "a-00568", "a-00259", "a-01130"], "name": "Autumn office"});
    let seq = service.send("/outfits", body).is(201).await.json()["id"].to_string();
    let (page, name) = (format!("/studio/outfits/{seq}"), format!("outfit-{seq}"));
    service.signed_in(Role::Stylist).await.page(&page).await.lacks(["publish-button"]);
    let merchandiser = service.signed_in(Role::Merchandiser).await;
    merchandiser.page(page).await.has(["publish-button"]);
    // Its form is filled, and nothing is shown before it is stored.
    let form = merchandiser.page(format!("/merchandising/look?outfit={seq}")).await;
    form.has(["value=\"Autumn office\"", "The product pages of its 4 articles show it to all customers."]);
    let shown = async || each(&service.json("/articles/a-00134/looks").await["looks"], "title");
    assert_eq!(shown().await, json!(["Other", null, null]));
    let mut fields = vec![("name", &*name), ("version", ""), ("title", "Autumn office"), ("state", "draft")];
    fields.extend(["a-00134", "a-00568", "a-00259", "a-01130"].map(|id| ("articles", id)));
    // The pressed button counts, not the state that the form had.
    let published = [&fields[..], &[("state", "published")]].concat();
    let moved = [&fields[..], &[("up", "a-00568")]].concat();
    let moved = merchandiser.post("/merchandising/look", &moved).is(200).await.text();
    let first = |id| moved.find(&format!("value=\"{id}\" checked")).unwrap();
    assert!(first("a-00568") < first("a-00134"), "moved up");
    for (path, fields, expected) in [
        ("/merchandising/look", &published[..], json!(["Autumn office", "Other", null])),
        ("/merchandising/looks", &[("name", &name), ("order", "9")], json!(["Other", "Autumn office", null])),
    ] {
        merchandiser.change(path, fields).await;
        assert_eq!(shown().await, expected, "{fields:?}");
    }
    assert_eq!(service.actions(2).await, [&*format!("look.put {name}"); 2]);
    // Its own form says what another state changes.
    let form = merchandiser.page(format!("/merchandising/look?name={name}")).await;
    form.has(["It starts at once and ends never.", ">Unpublish</button>"]);
    let version = form.between("name=\"version\" value=\"", "\"");
    let draft = [&fields[..], &[("version", &*version)]].concat();
    let done = merchandiser.change("/merchandising/look", &draft).await;
    assert_eq!(shown().await, json!(["Other", null, null]));
    let page = merchandiser.page(done).await;
    page.has([format!("{name} is stored. It is draft now.")]);
    let entry = page.between("name=\"undo\" value=\"", "\"");
    merchandiser.change("/merchandising/looks/undo", &[("undo", &entry)]).await;
    assert_eq!(shown().await, json!(["Other", "Autumn office", null]));
}

#[apply(on_sqlite)]
async fn a_look_is_edited_in_a_form(Demo(service): Demo) {
    let merchandiser = service.signed_in(Role::Merchandiser).await;
    let path = "/looks/Rain%20%26%20office";
    let mut form = BTreeMap::from([
        ("name", "Rain & office"),
        ("title", "Rain"),
        ("articles", "a-00134\na-00259"),
        ("pictures", "javascript:alert(1)"),
        ("order", "first"),
        ("note", "The rack at the door"),
        ("state", "published"),
        ("version", ""),
    ]);
    let store = |form: &BTreeMap<&str, &str>| {
        let fields: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, *value)).collect();
        merchandiser.post("/merchandising/look", &fields)
    };
    let wrong = "id=\"order-wrong\">expected a whole number, found &#34;first&#34;";
    store(&form).is(422).await.text().has([wrong, ">The rack at the door<"]);
    form.insert("order", "3");
    store(&form).is(422).await.text().has(["id=\"pictures-wrong\">no. 1: expected an address that begins"]);
    form.insert("pictures", "/looks/rain.jpg");
    store(&form).is(303).await;
    assert_eq!(service.json("/articles/a-00134/looks").await["looks"][0]["title"], "Rain");

    // An article that the shop has not is named on the look's page; another version is not overwritten.
    let html = merchandiser.page("/merchandising/look?name=Rain+%26+office").await;
    html.has(["id=\"order\" value=\"3\""]);
    let version = html.between("name=\"version\" value=\"", "\"");
    let articles = "a-00134\na-00259\nnowhere";
    form.extend([("version", &*version), ("articles", articles), ("if_missing", "withhold")]);
    let page = merchandiser.page(store(&form).is(303).await.header("location")).await;
    page.has(["the catalogue has no article &#34;nowhere&#34;"]);
    let expected = json!(["nowhere", "withhold", "/looks/rain.jpg", 3]);
    assert_eq!(pick(&service.json(path).await, "articles/2 if_missing pictures/0 order"), expected);
    form.insert("title", "Mine");
    store(&form).is(422).await.text().has(["changed or deleted in the meantime", "value=\"Mine\""]);
    assert_eq!(service.json(path).await["title"], "Rain");
}
