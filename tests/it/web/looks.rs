//! `/looks`, and `/articles/{id}/looks`.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Demo, Service};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

/// A blouse, a coat, trousers and ballerinas.
const ARTICLES: [&str; 4] = ["a-00134", "a-01243", "a-00568", "a-00259"];

fn look(more: &Value) -> Value {
    let mut look = json!({"title": "Autumn office", "articles": ARTICLES, "state": "published"});
    look.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    look
}

impl Service {
    async fn look(&self, name: &str, body: &Value) -> Value {
        let answer = self.put(&format!("/looks/{name}"), body).await;
        let (status, text) = (answer.status(), answer.text());
        assert!([200, 201].contains(&status), "{body}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The looks of a product page.
    async fn looks_with(&self, article: &str, query: &str) -> Vec<Value> {
        self.json(&format!("/articles/{article}/looks?{query}")).await["looks"].as_array().unwrap().clone()
    }

    async fn sell_out(&self, article: &str) {
        let request = self.call(Method::PATCH, format!("/articles/{article}"));
        request.json(&json!({"in_stock": false})).is(200).await;
    }
}

fn ids(look: &Value) -> Vec<&str> {
    look["articles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|piece| piece["article"]["id"].as_str().unwrap())
        .collect()
}

fn names(looks: &[Value]) -> Vec<&str> {
    looks.iter().map(|look| look["look"].as_str().unwrap_or("-")).collect()
}

#[apply(contract)]
async fn looks_are_stored_changed_and_deleted(Demo(service): Demo) {
    let body = look(&json!({"ends_at": "2099-01-01T00:00:00+01:00", "tags": ["office"], "order": 2}));
    let added = service.put("/looks/Autumn%20office", &body).is(201).await;
    let version = added.header("etag").to_owned();
    let added: Value = added.json();
    assert_eq!(added["warnings"], json!([]));
    assert_eq!(added["look"]["ends_at"], "2098-12-31T23:00:00Z", "in UTC");
    let read = service.get("/looks/Autumn%20office").await;
    assert_eq!(read.header("etag"), version);
    assert_eq!(read.json(), added["look"]);
    let again = service.get("/looks/Autumn%20office");
    again.header("if-none-match", &version).is(304).await;
    let patch =
        |change, version: &str| service.patch("/looks/Autumn%20office", &change).header("if-match", version);
    let changed = patch(json!({"state": "draft", "tags": null}), &version).ok().await;
    assert_eq!((&changed["look"]["state"], changed["look"].get("tags")), (&json!("draft"), None));
    assert_eq!(patch(json!({"state": "published"}), &version).await.status(), 412, "it has changed");
    let tried = service.put("/looks/tried?dry_run=true", &body).await;
    assert!(tried.is_refused(), "looks have no trial: {}", tried.status());
    assert_eq!(service.get("/looks/tried").await.status(), 404, "so nothing is stored");
    service.look("b", &json!({"articles": ["a-00134", "unheard-of"]})).await;
    let page = service.json("/looks?n=1").await;
    assert_eq!(page["items"][0]["name"], "Autumn office");
    let next = service.json(&format!("/looks?cursor={}", page["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&next["items"][0]["name"], next["items"].as_array().unwrap().len()), (&json!("b"), 1));
    service.delete("/looks/b").is(204).await;
    service.delete("/looks/b").is(404).await;
    let log = service.log(4).await;
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["look.delete", "look.put", "look.put", "look.put"]);
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
        let answer = service.put("/looks/wrong", &look(&wrong)).await;
        assert_eq!(answer.status(), 422, "{wrong}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

#[apply(on_sqlite)]
async fn a_product_page_shows_published_looks_then_outfits(Demo(service): Demo) {
    let outfits = service.looks_with("a-00134", "").await;
    assert_eq!(names(&outfits), ["-"; 3], "nothing is published");
    for outfit in &outfits {
        assert_eq!((ids(outfit)[0], ids(outfit).len()), ("a-00134", 4));
        let prices = outfit["articles"].as_array().unwrap().iter();
        let sum: f64 = prices.map(|piece| piece["article"]["price"].as_f64().unwrap()).sum();
        assert!((outfit["total"].as_f64().unwrap() - sum).abs() < 0.005, "{outfit}");
    }
    for (at, one) in outfits.iter().enumerate() {
        for other in &outfits[..at] {
            let same = ids(one)[1..].iter().filter(|id| ids(other).contains(id)).count();
            assert!(same <= 1, "{:?} {:?}", ids(one), ids(other));
        }
    }
    service.look("second", &look(&json!({"order": 2}))).await;
    service
        .look("first", &json!({"articles": ["a-00568", "a-00134"], "order": 1, "state": "published"}))
        .await;
    service.look("draft", &look(&json!({"state": "draft"}))).await;
    service.look("past", &look(&json!({"ends_at": "2020-01-01T00:00:00Z"}))).await;
    service.look("men", &look(&json!({"when": {"features": {"gender": ["male"]}}}))).await;
    let looks = service.looks_with("a-00134", "").await;
    assert_eq!(names(&looks), ["first", "second", "-"]);
    assert_eq!(ids(&looks[0]), ["a-00568", "a-00134"], "in the editor's order");
    assert_eq!((&looks[1]["title"], ids(&looks[1])), (&json!("Autumn office"), ARTICLES.to_vec()));
    assert_eq!(names(&service.looks_with("a-00134", "n=1").await), ["first"]);
    assert_eq!(names(&service.looks_with("a-01243", "n=1").await), ["second"]);
    // For a customer, and within a total.
    service.put("/customers/him", &json!({"features": {"gender": "male"}})).is(201).await;
    let his = service.looks_with("a-00134", "customer=him&n=9").await;
    assert!(!names(&his).contains(&"second"), "its articles are women's: {:?}", names(&his));
    let cheap = service.looks_with("a-00134", "total_max=110&n=9").await;
    assert_eq!(names(&cheap)[0], "first");
    assert!(!names(&cheap).contains(&"second") && cheap.len() > 1, "{:?}", names(&cheap));
    assert!(cheap.iter().all(|look| look["total"].as_f64().unwrap() <= 110.0));
    // Reasons are given for what the method chose.
    let explained = service.looks_with("a-00134", "customer=c-000010&explain=true&n=3").await;
    let last = explained.last().unwrap();
    assert!(
        last["articles"][0].get("reasons").is_none() && last["articles"][1]["reasons"].is_array(),
        "{last}"
    );
    let given = last["articles"].as_array().unwrap().iter();
    assert!(given.filter_map(|piece| piece["reasons"].as_array()).any(|reasons| !reasons.is_empty()));
    for wrong in ["n=17", "n=0", "total_max=-1", "customer=nobody", "size=3"] {
        assert_eq!(service.get(&format!("/articles/a-00134/looks?{wrong}")).await.status(), 422, "{wrong}");
    }
    service.get("/articles/none/looks").is(404).await;
}

#[apply(on_sqlite)]
async fn rules_and_stock_hold_in_looks_on_every_replica(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let replica = Service::start(&db).await;
    replica.serve_demo().await;
    service.look("replaced", &look(&json!({"order": 1}))).await;
    service
        .look(
            "withheld",
            &look(&json!({"order": 2, "if_missing": "withhold", "articles": ["a-01243", "a-00134"]})),
        )
        .await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(names(&service.looks_with("a-00134", "n=2").await), ["replaced", "withheld"]);
    }
    service.sell_out("a-01243").await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let looks = service.looks_with("a-00134", "n=2").await;
        assert_eq!(names(&looks), ["replaced", "-"]);
        let piece = &looks[0]["articles"][1];
        assert_eq!(piece["replaces"], "a-01243");
        assert_eq!(
            (&piece["article"]["type"], &piece["article"]["in_stock"]),
            (&json!("coat"), &json!(true))
        );
        assert_eq!(looks[0]["articles"][2]["article"]["id"], "a-00568", "the others stay");
        assert!(looks[0]["articles"][2].get("replaces").is_none());
    }
    // What a rule excludes or keeps apart is not shown.
    let never = json!({"effect": "never-together", "articles": {"ids": ["a-00568"]}, "others": {"ids": ["a-00259"]}, "state": "active"});
    service.put("/rules/never", &never).is(201).await;
    assert_eq!(names(&service.looks_with("a-00134", "n=1").await), ["-"]);
    service.delete("/rules/never").is(204).await;
    let gone = json!({"effect": "exclude", "articles": {"ids": ["a-00259"]}, "state": "active"});
    service.put("/rules/gone", &gone).is(201).await;
    let looks = service.looks_with("a-00134", "n=1").await;
    assert_eq!(looks[0]["articles"][3]["replaces"], "a-00259", "{looks:?}");
    for article in ["a-00568", "a-00259"] {
        service.sell_out(article).await;
    }
    assert_eq!(names(&service.looks_with("a-00134", "n=1").await), ["-"], "nothing of the editor's is left");
}

#[apply(on_sqlite)]
async fn answers_for_everybody_are_cached(Demo(service): Demo) {
    let first = service.get("/articles/a-00134/looks").await;
    let tag = first.header("etag").to_owned();
    assert!(first.header("cache-control").starts_with("public, max-age="), "{first:?}");
    let (first, again) = (first.text(), service.get("/articles/a-00134/looks").await);
    assert_eq!(again.text(), first, "the same completion ids");
    let ask = |query: &str, tag: &str| {
        service.get(format!("/articles/a-00134/looks{query}")).header("if-none-match", tag)
    };
    ask("", &tag).is(304).await;
    let own = service.get("/articles/a-00134/looks?customer=c-000010").await;
    assert_eq!(own.header("cache-control"), "private, no-cache");
    assert_eq!(ask("?customer=c-000010", own.header("etag")).await.status(), 304, "though its ids differ");
    service.look("new", &look(&json!({}))).await;
    let changed = ask("", &tag).ok().await;
    assert_eq!(changed["looks"][0]["look"], "new");
    // An answer ends with a look's time.
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() + 1500;
    let soon = atelier_core::util::calendar::moment(i64::try_from(soon).unwrap(), 1000, true);
    service.look("new", &look(&json!({"ends_at": soon}))).await;
    let until = service.get("/articles/a-00134/looks").await;
    assert!(["public, max-age=0", "public, max-age=1"].contains(&until.header("cache-control")), "{until:?}");
    super::until!(names(&service.looks_with("a-00134", "").await) == ["-"; 3]);
    // Feedback on a published look is the look's, on the others the method's.
    service.look("new", &look(&json!({}))).await;
    let looks = service.looks_with("a-00134", "n=2").await;
    for (at, method) in ["look", "match"].into_iter().enumerate() {
        let piece = &looks[at]["articles"][2];
        let event = json!([{
            "id": format!("e{at}"), "completion_id": looks[at]["completion_id"], "kind": "accepted",
            "slot": piece["slot"], "article": piece["article"]["id"],
        }]);
        let answer = service.ask_ok("/feedback", &event).await;
        assert_eq!(answer[0]["recorded"], true, "{answer}");
        let counts = service.json("/feedback/counts").await;
        let methods: Vec<&Value> =
            counts["items"].as_array().unwrap().iter().map(|count| &count["method"]).collect();
        assert!(methods.contains(&&json!(method)), "{counts}");
    }
}

#[apply(on_sqlite)]
async fn totals_are_of_the_variants_that_the_customer_needs(Demo(service): Demo) {
    let variants = json!([
        {"id": "v-s", "size": "S", "price": 50.1, "stock": 3}, {"id": "v-m", "size": "M", "price": 10.1, "stock": 3},
    ]);
    let blouse = json!({"type": "blouse", "gender": "women", "variants": variants});
    service.put("/articles/v", &blouse).is(201).await;
    let body = json!({"articles": ["v-s", "a-00568", "a-00259"], "state": "published"});
    service.look("sizes", &body).await;
    service.put("/customers/m", &json!({"features": {"gender": "female", "top_size": "M"}})).is(201).await;
    let total = async |query: &str| service.looks_with("v", query).await[0].clone();
    // Trousers of 47.90 and ballerinas of 37.90.
    let found = total("customer=m&n=1").await;
    assert_eq!((&found["look"], &found["total"]), (&json!("sizes"), &json!(95.9)), "{found}");
    assert_eq!(found["articles"][0]["variant"]["id"], "v-m");
    assert_eq!(total("customer=m&n=1&total_max=95.9").await["look"], "sizes", "to the cent");
    assert_ne!(total("customer=m&n=1&total_max=95.89").await["look"], "sizes");
    // A look of one article under two names is none.
    let twice =
        service.look("twice", &json!({"articles": ["v-s", "v-m"], "state": "published", "order": 0})).await;
    assert_eq!(twice["warnings"][0]["code"], "same-article", "{twice}");
    assert!(!names(&service.looks_with("v", "n=9").await).contains(&"twice"));
    service.get("/articles/v/looks?n=5&explain=true").is(422).await;
}

#[apply(on_sqlite)]
async fn everybodys_feedback_on_a_shared_answer_counts(Demo(service): Demo) {
    service.look("new", &look(&json!({}))).await;
    let shown = &service.looks_with("a-00134", "n=1").await[0];
    for (at, customer) in ["c-000010", "c-000867", "c-000867", "", ""].into_iter().enumerate() {
        for (slot, article) in ARTICLES.into_iter().enumerate().skip(1) {
            let event = json!([{
                "id": format!("e{at}-{slot}"), "completion_id": shown["completion_id"], "kind": "accepted", "slot": slot,
                "article": article, "customer": if customer.is_empty() { Value::Null } else { customer.into() },
            }]);
            let answer = service.ask_ok("/feedback", &event).await;
            assert_eq!(answer[0]["recorded"], json!(at != 2), "{customer}, {at}: {answer}");
        }
    }
    let counts = service.json("/feedback/counts").await;
    assert_eq!(counts["items"][0]["accepted"], 12, "{counts}");
    let outfits = service.get("/feedback/outfits.jsonl").await.text();
    assert_eq!(outfits.lines().count(), 2, "an outfit a customer: {outfits}");
}

#[apply(on_sqlite)]
async fn a_customers_name_is_no_title(Demo(service): Demo) {
    let browser = service.signed_in(atelier_core::domain::Role::Merchandiser).await;
    let saved = |customer: &str| json!({"customer": customer, "articles": ARTICLES, "name": "Anna, wedding"});
    let (_, saved) = service.ask("/outfits", &saved("c-000010")).await;
    let (seq, name) = (saved["id"].to_string(), format!("/looks/outfit-{}", saved["id"]));
    browser.post("/merchandising/looks/outfit", &[("outfit", &seq)]).is(303).await;
    let look = service.json(&name).await;
    assert_eq!((look.get("title"), &look["state"]), (None, &json!("published")), "{look}");
    service.patch(&name, json!({"title": "Wedding"})).is(200).await;
    browser.post("/merchandising/looks/outfit", &[("outfit", &seq)]).is(303).await;
    assert_eq!(service.json(&name).await["title"], "Wedding");
}
