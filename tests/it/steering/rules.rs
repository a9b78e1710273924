//! `/rules`, and what they do to suggestions.

use std::collections::{BTreeMap, BTreeSet};

use atelier::{
    completion::sample::Sample,
    people::Scope,
    platform::db::{Actor, Author, Entry},
};
use atelier_core::domain::{Article, Role, Timestamp};
use serde_json::{Value, json};

use crate::harness::{
    Demo, Guarded, Html, Replicated, Service, TestDatabase, apply, assert_has, contract, entries, ids,
    json::{codes, text, with},
    on_sqlite, rows, until,
};

/// A blouse, trousers, shoes, and a blank.
fn request(k: usize) -> Value {
    json!({"features": {"gender": "female", "occasion": "office"}, "k": k, "method": "match",
        "outfit": ["a-00134", null, "a-00568", "a-00259"]})
}

/// With a customer, and a feature that is the outfit's.
fn own_request() -> Value {
    with(request(3), json!({"customer": "c-014871", "features": {"occasion": "office"}}))
}

impl Service {
    /// Stores a rule, which is active unless it says otherwise.
    async fn rule(&self, name: &str, body: Value) -> Value {
        let answer = self.put(format!("/rules/{name}"), with(json!({"state": "active"}), &body)).await;
        assert!(answer.is_ok(), "{}: {}", answer.request, answer.text());
        answer.json()
    }

    /// The articles that are suggested for the usual request.
    async fn best(&self, k: usize) -> Vec<String> {
        ids(&self.suggest(request(k)).await)
    }
}

fn named(list: &[String]) -> Value {
    json!({"ids": list})
}

fn exclude(articles: impl Into<Value>) -> Value {
    json!({"effect": "exclude", "articles": articles.into()})
}

fn at(list: &[String], places: &[usize]) -> Vec<String> {
    places.iter().map(|place| list[*place].clone()).collect()
}

/// Experiments and rules are read together: without the table of the ones, a change of the others is stored and cannot be applied.
#[apply(contract)]
async fn a_stored_change_succeeds_even_if_it_cannot_be_applied_yet(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let plain = service.best(5).await;
    service.rule("old", exclude(named(&plain[1..2]))).await;
    let mut raw = db.raw().await;
    sqlx::raw_sql("alter table experiments rename to away").execute(&mut raw).await.unwrap();

    service.rule("new", exclude(named(&plain[..1]))).await;
    service.delete("/rules/old").is(204).await;
    service.delete("/rules/old").is(404).await;
    let look = json!({"title": "Spring", "articles": ["a-00134", "a-00568"]});
    service.put("/looks/spring", look).is(201).await;
    let article = json!({"type": "scarf", "attributes": {"colour": "navy"}});
    service.put("/articles/late", article).is(201).await;
    let rows = json!({"id": "later", "type": "scarf", "attributes": {}}).to_string();
    service.lines("/articles/bulk", rows).is(200).await;
    let found = service.best(5).await;
    assert!(found.contains(&plain[0]) && !found.contains(&plain[1]), "{found:?}");

    sqlx::raw_sql("alter table away rename to experiments").execute(&mut raw).await.unwrap();
    sqlx::raw_sql("alter table rules rename to away").execute(&mut raw).await.unwrap();
    service.put("/holdout", json!({"share": 0.1})).is(200).await;
    service.put("/routing", json!({"default_method": "gsu"})).is(200).await;
    let arms =
        json!([{"name": "a", "method": "gsu", "share": 1}, {"name": "b", "method": "match", "share": 1}]);
    service.put("/experiments/autumn", json!({"arms": arms})).is(201).await;
    sqlx::raw_sql("alter table away rename to rules").execute(&mut raw).await.unwrap();
    service.releases.refresh().await.unwrap();
    let found = service.best(5).await;
    assert!(!found.contains(&plain[0]) && found.contains(&plain[1]), "{found:?}");
    assert_eq!(service.json("/routing").await["default_method"], "gsu");
}

#[apply(on_sqlite)]
async fn rules_move_suggestions_and_leave_shares(Demo(service): Demo) {
    let before = service.suggest(&request(20)).await;
    let plain = ids(&before);
    for (name, rule) in [
        ("gone", exclude(named(&plain[..2]))),
        ("Up & away", json!({"effect": "boost", "factor": 1000, "articles": named(&plain[15..16])})),
        ("down", json!({"effect": "bury", "factor": 0.001, "articles": named(&plain[2..3])})),
        ("third", json!({"effect": "pin", "rank": 3, "articles": named(&plain[10..12])})),
        ("draft", with(exclude(json!({"price": {"min": 0}})), json!({"state": "draft"}))),
    ] {
        service.rule(name, rule).await;
    }
    let found = service.suggest(&request(10)).await;
    assert_eq!(ids(&found), at(&plain, &[15, 3, 10, 4, 5, 6, 7, 8, 9, 11]), "the rest in its order");
    assert_eq!(found[2]["rules"], json!([{"name": "third", "effect": "pin"}]));
    assert_eq!(found[1].get("rules"), None);
    // To count ranks takes a pass.
    let explained = service.suggest(&with(request(10), json!({"explain": true}))).await;
    assert_eq!(ids(&explained), ids(&found));
    assert_eq!(explained[0]["rules"], json!([{"name": "Up & away", "effect": "boost", "rank_before": 14}]));
    assert_eq!(explained[2]["rules"], json!([{"name": "third", "effect": "pin", "rank_before": 9}]));
    // Shares are the model's own, among what is left.
    let share = |suggestions: &Value, id: &str| {
        let mut all = suggestions.as_array().unwrap().iter();
        all.find(|found| found["article"]["id"] == id).unwrap()["share"].as_f64().unwrap()
    };
    let left = 1.0 - share(&before, &plain[0]) - share(&before, &plain[1]);
    for id in ids(&found) {
        let (found, expected) = (share(&found, &id), share(&before, &id) / left);
        assert!((found / expected - 1.0).abs() < 1e-3, "{id}: {found} instead of {expected}");
    }
    // A batch answers the same; a request without rules as before.
    let batch = service.ask_ok("/complete/batch", json!({"items": [request(10)]})).await;
    assert_eq!(batch["items"][0]["blanks"][0]["suggestions"], found);
    assert_eq!(service.suggest(&with(request(20), json!({"rules": false}))).await, before);
    // With nothing left, the answer says that rules are the reason.
    service.rule("all", exclude(json!({"price": {"min": 0}}))).await;
    let answer = service.ask_ok("/complete", request(5)).await;
    answer["warnings"][0].to_string().has(["without `rules` (the shop's rules)"]);
}

#[apply(on_sqlite)]
async fn a_rule_applies_to_the_requests_articles_and_times_that_it_names(Demo(service): Demo) {
    let plain = service.best(3).await;
    let kind = service.json(format!("/articles/{}", plain[0])).await["type"].clone();
    let wide = exclude(json!({"types": [kind], "price": {"min": 0}}));
    for (more, expected) in [
        (json!({}), true),
        (json!({"when": {}}), true),
        (json!({"when": {"features": {"gender": [" FEMALE "]}}}), true),
        (json!({"when": {"features": {"gender": ["male", "female"], "occasion": ["wedding"]}}}), false),
        (json!({"when": {"features": {"style": ["x"]}}}), false),
        (json!({"when": {"numbers": {"age": {"min": 1}}}}), false),
        (json!({"when": {"methods": ["match"]}}), true),
        (json!({"when": {"methods": ["gsu", "none"]}}), false),
        (json!({"when": {"stores": ["zurich"]}}), false),
        (json!({"when": {"outfit": {"ids": ["a-00568"]}}}), true),
        (json!({"when": {"outfit": {"ids": ["a-00001"]}}}), false),
        (json!({"state": "off"}), false),
        (json!({"starts_at": "2020-01-01T00:00:00+01:00"}), true),
        (json!({"starts_at": "2999-01-01T00:00:00Z"}), false),
        (json!({"ends_at": "2020-01-01T00:00:00Z"}), false),
        (json!({"articles": named(&plain[..1])}), true),
        (json!({"articles": {"price": {"max": 0}}}), false),
        (json!({"articles": {"new": false}}), true),
        (json!({"articles": {"new": true}}), false),
        (json!({"articles": {"attributes": {"in_stock": ["True"]}, "numbers": {"price": {"min": 1}}}}), true),
        (json!({"articles": {"attributes": {"no such": ["x"]}}}), false),
    ] {
        service.rule("one", with(wide.clone(), &more)).await;
        assert_eq!(!service.best(3).await.contains(&plain[0]), expected, "{more}");
    }
}

#[apply(contract)]
async fn rules_are_read_changed_and_deleted(Demo(service): Demo) {
    let body = json!({"effect": "boost", "factor": 2, "articles": {"types": ["coats"], "attributes": {"brand": ["Tiber"]}},
        "starts_at": "2026-11-27T09:00:00+01:00", "owner": "Ada", "note": "Coats"});
    let dry = service.put("/rules/coats?dry_run=true", &body).ok().await;
    assert_eq!(service.json("/rules").await, json!({"rules": []}), "nothing is stored");
    let is_meant = |article: &Article| {
        article.kind() == "coat" && article.attribute("brand").is_some_and(|brand| brand == "Tiber")
    };
    let count = rows::<Article>().into_iter().filter(is_meant).count();
    assert!(count > 0);
    assert_has(&dry, json!({"article_count": count, "warnings": []}));
    let added = service.put("/rules/coats", &body).is(201).await;
    let version = added.header("etag").to_owned();
    assert_eq!(added.json(), dry);
    service.put("/rules/coats", &body).header("if-none-match", "*").is(412).await;
    let read = service.get("/rules/coats").await;
    assert_eq!(read.header("etag"), version);
    service.get("/rules/coats").header("if-none-match", &version).is(304).await;
    let starts_at = "2026-11-27T08:00:00Z";
    let expected = json!({"name": "coats", "state": "draft", "starts_at": starts_at, "priority": 0});
    assert_has(&read.json(), expected);
    assert_eq!(service.json("/rules").await["rules"], json!([read.json()]));
    // A patch merges; a version that is not current is refused, and so is a rule that would be wrong.
    let patch = |change| service.patch("/rules/coats", change);
    let change = json!({"state": "active", "note": null, "factor": 3});
    let changed = patch(change).header("if-match", &version).ok().await;
    assert_has(&changed["rule"], json!({"factor": 3.0, "owner": "Ada", "note": null}));
    patch(json!({"factor": 4})).header("if-match", &version).is(412).await;
    patch(json!({"effect": "pin"})).await.assert_problem(422, &["/factor", "/rank"]);
    let warned = exclude(json!({"types": ["coat"]}));
    let warned = with(warned, json!({"state": "draft", "when": {"features": {"no": ["x"]}}}));
    let warned = service.rule("other", warned).await;
    assert_has(&warned, json!({"warnings": [{"code": "unknown-feature"}, {"code": "excluded"}]}));
    service.delete("/rules/coats").is(204).await;
    service.delete("/rules/coats").is(404).await;
    let actions = ["rule.delete coats", "rule.put other", "rule.put coats", "rule.put coats"];
    assert_eq!(service.actions(4).await, actions);
    let changed = json!({"before": {"factor": 2.0}, "after": {"factor": 3.0}});
    assert_has(&json!(service.log(3).await[2].details), changed);
}

#[apply(on_sqlite)]
async fn an_invalid_rule_is_refused_with_pointers(Demo(service): Demo) {
    for (more, pointer) in [
        (json!({"name": "right"}), "/name"),
        (json!({"effect": "explode"}), "/effect"),
        (json!({"articles": {}}), "/articles"),
        (json!({"articles": []}), "/articles"),
        (json!({"articles": {"types": "coat"}}), "/articles/types"),
        (json!({"articles": {"types": ["coat", " "]}}), "/articles/types"),
        (json!({"articles": {"ids": vec!["a"; 5001]}}), "/articles/ids"),
        (json!({"articles": {"attributes": {"brand": []}}}), "/articles/attributes/brand"),
        (json!({"articles": {"price": {"min": 3, "max": 2}}}), "/articles/price"),
        (json!({"effect": "boost", "factor": 0.5}), "/factor"),
        (json!({"effect": "bury", "factor": 2}), "/factor"),
        (json!({"effect": "pin", "rank": 0}), "/rank"),
        (json!({"effect": "quota"}), "/least"),
        (json!({"effect": "pair"}), "/others"),
        (json!({"ends_at": "tomorrow"}), "/ends_at"),
        (json!({"ends_at": "9999-12-31T23:59:59-05:00"}), "/ends_at"),
        (json!({"starts_at": "2026-01-02T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z"}), "/ends_at"),
    ] {
        let body = with(exclude(json!({"new": true})), &more);
        service.put("/rules/wrong", body).await.assert_problem(422, &[pointer]);
    }
}

/// What can be active at one time is bounded, whenever it begins.
#[apply(contract)]
async fn at_most_a_hundred_rules_are_active_at_a_time(Demo(service): Demo) {
    let pin = |number: u32, more: Value| {
        with(json!({"effect": "pin", "rank": 1, "articles": {"ids": [format!("a-{number:05}")]}}), &more)
    };
    let year = |year: u32| json!({"starts_at": format!("{year}-01-01T00:00:00Z"), "ends_at": format!("{}-01-01T00:00:00Z", year + 1)});
    for number in 0..99 {
        service.rule(&format!("pin-{number}"), pin(number, json!({}))).await;
    }
    // Each year has room for one more, and a rule that is off takes none.
    for place in [2070, 2071] {
        service.rule(&format!("in-{place}"), pin(place, year(place))).await;
    }
    service.rule("off", pin(200, json!({"state": "off"}))).await;
    service.rule("over", pin(200, year(2020))).await;
    let refused = async |name: &str, body: Value, when: &str| {
        let body = with(json!({"state": "active"}), body);
        for query in ["", "?dry_run=true"] {
            let call = service.put(format!("/rules/{name}{query}"), &body);
            let problem = call.await.assert_problem(422, &["/state"]);
            let expected =
                format!("with this one 101 rules are active {when}, and at most 100 can be at the same time");
            assert!(text(&problem["errors"][0]["detail"]).starts_with(&expected), "{problem}");
        }
    };
    refused("more", pin(201, year(2071)), "at 2071-01-01T00:00:00Z").await;
    refused("always", pin(201, json!({})), "at 2070-01-01T00:00:00Z").await;
    service.rule("now", pin(201, json!({"ends_at": "2060-01-01T00:00:00Z"}))).await;
    refused("off", pin(200, json!({})), "now").await;
    service.patch("/rules/off", json!({"state": "active"})).await.assert_problem(422, &["/state"]);
    let browser = service.signed_in(Role::Merchandiser).await;
    let refusal = browser.post("/merchandising/state", &[("name", "off"), ("state", "active")]).await;
    refusal.text().has(["at most 100 can be at the same time"]);
    assert_eq!(service.json("/rules/off").await["state"], "off");
    // A rule that stays as active as it was can change, and one that leaves makes room.
    service.rule("pin-7", pin(7, json!({"priority": 3}))).await;
    service.patch("/rules/pin-8", json!({"state": "off"})).is(200).await;
    service.rule("off", pin(200, json!({"ends_at": "2060-01-01T00:00:00Z"}))).await;

    // A hundred pins for one rank: one has it, and the warnings about the others are few.
    let asked = with(
        request(1),
        json!({"outfit": ["a-00134", null, null, "a-00259"], "filters": {"fit": false, "no_gos": false}}),
    );
    let answer = service.ask_ok("/complete", asked).await;
    assert_eq!(answer["blanks"][0]["suggestions"][0]["rules"][0]["effect"], "pin");
    let warnings = codes(&answer["warnings"]);
    assert_eq!((warnings.len(), warnings[0], warnings[20]), (21, "rule-not-met", "more-warnings"));
    let first = text(&answer["warnings"][0]["detail"]);
    assert!(first.starts_with("slots 1, 2: pin"), "once for both: {first}");
    assert!(answer.to_string().len() < 8_000, "{} bytes", answer.to_string().len());
}

#[apply(on_sqlite)]
async fn rules_take_synonyms_as_searches_do(Demo(service): Demo) {
    // `shoe` finds boots and sneakers; of a group, other types of the catalogue stay other articles.
    for (name, is_excluded) in [("shoes", true), ("footwear", false), ("plimsoll", true)] {
        service.rule("synonyms", exclude(json!({"types": [name]}))).await;
        let found = service
            .ask_ok("/complete", with(request(20), json!({"filters": {"types": {"1": ["sneaker"]}}})))
            .await;
        assert_eq!(found["blanks"][0]["admissible"] == 0, is_excluded, "{name}");
    }
    service.rule("synonyms", exclude(json!({"types": ["chinos"]}))).await;
    let trousers = service
        .ask_ok("/complete", with(request(1), json!({"filters": {"types": {"1": ["trousers"]}}})))
        .await;
    assert_ne!(trousers["blanks"][0]["admissible"], 0, "both are types");
}

#[apply(contract)]
async fn changes_of_different_fields_never_meet(Demo(service): Demo) {
    service.rule("coats", json!({"effect": "boost", "factor": 2, "articles": {"types": ["coat"]}})).await;
    let patches = (0..8).map(|number| {
        let change = json!({"when": {"features": {format!("f{number}"): ["x"]}}});
        service.patch("/rules/coats", change).is(200)
    });
    futures_util::future::join_all(patches).await;
    // The same again is no change: the version stays, and the log has no entry.
    let read = service.get("/rules/coats").await;
    let rule = read.json();
    assert_eq!(rule["when"]["features"].as_object().unwrap().len(), 8, "{rule}");
    let again = service.put("/rules/coats", rule).is(200).await;
    assert_eq!(again.header("etag"), read.header("etag"));
    let puts = service.log(99).await.into_iter().filter(|entry| entry.action == "rule.put");
    assert_eq!(puts.count(), 9);
}

#[apply(on_sqlite)]
async fn a_merchandiser_turns_a_rule_on_and_off(Demo(service): Demo) {
    let plain = service.best(2).await;
    let rule = json!({"note": "Recalled", "state": "draft"});
    service.rule("a b&c", with(exclude(named(&plain[..1])), &rule)).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let click = async |fields: &[(&str, &str)]| {
        let answer = browser.post("/merchandising/state", fields).is(303).await;
        answer.header("location").to_owned()
    };
    for (state, best) in [("active", &plain[1..]), ("off", &plain[..1])] {
        // The page that reviews it changes nothing.
        let review = browser.page(format!("/merchandising/rule?name=a+b%26c&state={state}")).await;
        review.has(["Concerns all requests.", "a b&#38;c</button>"]);
        assert_ne!(service.best(1).await, best);
        let done = click(&[("name", "a b&c"), ("state", state)]).await;
        assert_eq!(service.best(1).await, best);
        let shown =
            ["Recalled", &format!("<td>{state}</td>"), &format!("a b&#38;c is stored. It is {state} now.")];
        browser.page(&done).await.has(shown);
    }
    let entry = &service.log(1).await[0];
    assert_eq!((&*entry.action, &entry.details["after"]["state"]), ("rule.put", &json!("off")));
    assert!(matches!(entry.actor, Actor::Person(_)));
    browser.post("/merchandising/state", &[("name", "gone"), ("state", "off")]).is(404).await;
    // What is to be said of a rule is shown before it counts.
    service.rule("odd", with(exclude(json!({"types": ["no|such"]})), json!({"state": "draft"}))).await;
    let state = async || service.json("/rules/odd").await["state"].clone();
    let page = click(&[("name", "odd"), ("state", "active")]).await;
    assert_eq!(page, "/merchandising/rule?name=odd&state=active");
    assert_eq!(state().await, "draft");
    browser.page(&page).await.has(["check the spelling", "value=\"active\"", "Turn on odd anyway"]);
    let warning = "none of the shop's articles meets `articles`; check the spelling";
    click(&[("name", "odd"), ("state", "active"), ("seen", warning)]).await;
    assert_eq!(state().await, "active");
}

#[apply(contract)]
async fn a_change_is_undone_for_a_minute_by_who_made_it(Demo(service): Demo) {
    service.rule("coats", exclude(json!({"types": ["coat"]}))).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let set = async |state: &str| {
        let fields = [("name", "coats"), ("state", state)];
        let done = browser.post("/merchandising/state", &fields).is(303).await.header("location").to_owned();
        (browser.page(&done).await.between("name=\"undo\" value=\"", "\""), done)
    };
    let undo = |entry: &str| browser.post("/merchandising/undo", &[("undo", entry)]);
    let state = async || service.json("/rules/coats").await["state"].clone();
    let (entry, _) = set("off").await;
    let other = service.signed_in(Role::Admin).await;
    let refused = other.post("/merchandising/undo", &[("undo", &entry)]).is(409).await;
    refused.text().has(["can undo your own change for a minute"]);
    undo(&entry).is(303).await;
    assert_eq!(state().await, "active");
    // It is undone once, and not after somebody changed it again.
    undo(&entry).is(409).await.text().has(["changed or deleted in the meantime, so nothing was stored"]);
    let (entry, page) = set("off").await;
    service.patch("/rules/coats", json!({"note": "By another"})).is(200).await;
    undo(&entry).is(409).await.text().has(["changed or deleted in the meantime"]);
    assert_eq!(state().await, "off");
    // A minute later nothing is offered, and an old page is refused.
    let made = &service.log(2).await[1];
    let now: Timestamp = service.state.clock.now().into();
    let author = Author { actor: made.actor, peer: None };
    let late = Entry::new("rule.put", "coats", json!(made.details));
    let late_at = Timestamp::from_millis(now.millis() - 60_000);
    service.store.by(author).audit().append(&late, late_at).await.unwrap();
    let seq = entries(&service.store, 1).await[0].seq.to_string();
    undo(&seq).is(409).await.text().has(["for a minute, and this one is older"]);
    browser.page(page.replace(&entry, &seq)).await.lacks(["id=\"undo\""]);
    // What was stored for the first time is deleted.
    let fields = [("name", "new"), ("effect", "exclude"), ("articles.types", "bag"), ("go", "store")];
    let done = browser.post("/merchandising/rule", &fields).is(303).await;
    let page = browser.page(done.header("location")).await;
    undo(&page.between("name=\"undo\" value=\"", "\"")).is(303).await;
    service.get("/rules/new").is(404).await;
}

#[apply(on_sqlite)]
async fn rows_of_conditions_are_added_and_removed_without_scripts(Demo(service): Demo) {
    let articles = json!({"attributes": {"brand": ["Linden|Tiber"]}, "numbers": {"margin": {"min": 0.4}}, "ids": ["a-00134"]});
    service.rule("odd", exclude(articles)).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let html = browser.page("/merchandising/rule?name=odd").await;
    html.has([
        "value=\"Linden|Tiber\" checked",
        "id=\"articles-numbers-0-min\" value=\"0.4\"",
        "value=\"a-00134\" checked",
    ]);
    // The catalogue's own words are suggested.
    html.has(["<option value=\"black\" label=\"colour\">"]);
    let version = html.between("name=\"version\" value=\"", "\"");
    let fields = [
        ("name", "odd"),
        ("version", &*version),
        ("effect", "exclude"),
        ("articles.attributes.0", "brand"),
        ("articles.attributes.0.is", "Linden|Tiber"),
        ("articles.attributes.0.is", "Linden"),
        ("articles.attributes.1", "colour"),
        ("articles.attributes.1.is", "navy"),
        // The name of its row is unticked.
        ("articles.numbers.0.min", "0.4"),
        ("articles.ids", ""),
        ("articles.ids.find", "boot"),
        ("state", "off"),
    ];
    let send = |go: &'static str| browser.post("/merchandising/rule", &[&fields[..], &[("go", go)]].concat());
    let more = send("more").is(200).await.text();
    more.has(["value=\"navy\" checked", "name=\"articles.attributes.2\"", "Tick the articles to add."]);
    more.lacks(["value=\"margin\" checked", "value=\"a-00134\" checked"]);
    assert_has(&service.json("/rules/odd").await, json!({"state": "active"}));
    // Rows that say too little, or the same twice.
    for (row, said) in [
        ([("numbers.0", ""), ("numbers.0.min", "20")], "numbers: a row has values but no name"),
        ([("numbers.0", "age"), ("numbers.1", "age")], "numbers: expected one row for age, found several"),
        ([("features.0", "gender"), ("features.0.is", "")], "give at least one value"),
    ] {
        let wrong = browser.post("/merchandising/rule", &[&fields[..], &row, &[("go", "store")]].concat());
        wrong.is(422).await.text().has([said]);
    }
    let seen = send("preview").is(200).await.text().between("name=\"seen\" value=\"", "\"");
    browser
        .post("/merchandising/rule", &[&fields[..], &[("go", "store"), ("seen", &seen)]].concat())
        .is(303)
        .await;
    let attributes = json!({"brand": ["Linden|Tiber", "Linden"], "colour": ["navy"]});
    assert_eq!(service.json("/rules/odd").await["articles"], json!({"attributes": attributes}));
}

/// What a browser sends of the form of a document.
fn form_of(html: &str) -> Vec<(String, String)> {
    let form = html.after("<form class=\"stack rule\"").split("</form>").next().unwrap();
    let mut fields = Vec::new();
    let mut selected = String::new();
    for tag in form.split('<').filter(|tag| !tag.starts_with("button")) {
        let name = tag.contains(" name=\"").then(|| tag.between(" name=\"", "\""));
        let is_off = tag.contains("type=\"checkbox\"") && !tag.contains(" checked");
        let value = || tag.between(" value=\"", "\"");
        match (tag.split(' ').next().unwrap(), name) {
            ("input", Some(name)) if !is_off && tag.contains(" value=") => fields.push((name, value())),
            ("textarea", Some(name)) => fields.push((name, tag.between(">", "<"))),
            ("select", Some(name)) => selected = name,
            ("option", _) if tag.contains(" selected") => fields.push((selected.clone(), value())),
            _ => {}
        }
    }
    fields
}

#[apply(contract)]
async fn what_a_program_stored_comes_back_from_its_form(Demo(service): Demo) {
    let browser = service.signed_in(Role::Merchandiser).await;
    let conditions = json!({"types": ["coat", "t-shirt"], "ids": ["a b", "c,d"], "price": {"min": 20, "max": 49.5},
        "attributes": {"brand": ["A, B", "C|D\nE"], "b: c|d": ["x:y"]}, "numbers": {"margin": {"max": 0.4}, "weight": {"min": -1}}, "new": false});
    let rich = json!({
        "effect": "pair", "articles": conditions, "others": {"types": ["bag"]}, "state": "off", "priority": 7,
        "starts_at": "2026-07-01T08:00:00Z", "ends_at": "2026-11-27T22:59:59Z", "owner": "Ada", "note": "One\nTwo",
        "when": {"features": {"gender": ["female"]}, "numbers": {"age": {"min": 20}}, "outfit": {"new": true},
            "methods": ["match", "gsu"], "stores": ["zurich", "basel"]},
    });
    let odd = json!({"effect": "exclude", "articles": {"types": [" coat"], "ids": ["a "], "attributes": {"brand": ["Linden "]}},
        "when": {"stores": [" zurich"], "features": {"gender": ["female "]}}, "note": "One\r\nTwo\n", "owner": " Ada "});
    let look = json!({
        "title": "Autumn, office", "note": "One\nTwo", "articles": ["a b", "c,d"], "pictures": ["/a.jpg", "https://b"],
        "season": "autumn", "tags": ["office", "rain|coat"], "order": 7, "if_missing": "withhold", "state": "published",
        "starts_at": "2026-07-01T08:00:00Z", "ends_at": "2026-11-27T22:59:59Z",
        "when": {"features": {"gender": ["female"]}, "numbers": {"age": {"min": 20}}, "stores": ["zurich", "basel"]},
    });
    let boost = json!({"effect": "boost", "factor": 2, "articles": {"attributes": {"brand": ["Linden"]}, "numbers": {"margin": {"min": 0.4}}},
        "when": {"features": {"gender": ["female"]}, "numbers": {"age": {"max": 30}}, "methods": ["match"]}});
    for (kind, body, words) in [
        (
            "rule",
            rich,
            "Where the outfit has one of the articles of type bag, puts the most likely of the articles of type coat or t-shirt and named",
        ),
        (
            "rule",
            odd,
            "Never suggests the articles of type coat and named a and with brand Linden. Concerns requests whose gender is female, and for the store zurich.",
        ),
        (
            "rule",
            boost,
            "Ranks the articles with brand Linden and with margin 0.4 or more as if they were 2 times as likely. Concerns requests \
            whose gender is female, and whose age is 30 or less, and to match.",
        ),
        ("look", look, "The product pages of its 2 articles show it to customers whose gender is female"),
    ] {
        let path = format!("/{kind}s/one");
        service.put(&path, body).await;
        let stored = service.get(&path).await;
        let html = browser.page(format!("/merchandising/{kind}?name=one")).await;
        html.has([words]);
        let mut fields = form_of(&html);
        let seen = if kind == "look" {
            Vec::new()
        } else {
            let sent: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            let preview = browser.post("/merchandising/rule", &[&sent[..], &[("go", "preview")]].concat());
            vec![("seen".to_owned(), preview.is(200).await.text().between("name=\"seen\" value=\"", "\""))]
        };
        fields.extend(seen);
        fields.push(("go".to_owned(), "store".to_owned()));
        let sent: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        browser.post(format!("/merchandising/{kind}"), &sent).is(303).await;
        let read = service.get(&path).await;
        assert_eq!(read.json(), stored.json());
        assert_eq!(read.header("etag"), stored.header("etag"), "nothing changed");
    }
}

#[apply(contract)]
async fn a_rule_is_told_previewed_and_stored_on_its_page(Demo(service): Demo) {
    let plain = service.best(3).await;
    service.suggest(&with(own_request(), json!({"customer": null}))).await;
    let sample = || format!("{:?}", service.releases.follower::<Sample>());
    // The sample takes one question in ten milliseconds.
    until!({
        service.suggest(&own_request()).await;
        sample().contains("c-014871")
    });
    service.rule("first", json!({"effect": "pin", "rank": 1, "articles": named(&plain[1..2])})).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let own_page = "/merchandising/rule?name=gone";
    let fields = [
        ("name", "gone"),
        ("effect", "exclude"),
        // Of other effects: the form hides it.
        ("factor", "2"),
        ("articles.ids", &plain[1]),
        ("state", "active"),
        ("starts_at", "2026-01-01T10:00"),
    ];
    let post = async |status: u16, more: &[(&str, &str)]| {
        browser.post("/merchandising/rule", &[&fields[..], more].concat()).is(status).await.text()
    };
    let html = post(200, &[("go", "preview")]).await;
    let told = format!("Never suggests the articles named {}.", plain[1]);
    let asked = "<dt>recent questions asked again</dt><dd>2</dd>";
    let contradiction = "rule &#34;first&#34; and this one contradict each other";
    let changed = "<dt>answers that change</dt><dd>1 (50 %)</dd>";
    html.has([&told, asked, changed, contradiction]);
    // Its contradictions are named before it is stored.
    post(200, &[("go", "store")]).await.has([contradiction]);
    service.get("/rules/gone").is(404).await;
    let warning = "rule \"first\" and this one contradict each other: one excludes the other's articles";
    let seen = [("go", "store"), ("seen", warning)];
    post(303, &seen).await;
    let stored = service.json("/rules/gone").await;
    assert_has(&stored, json!({"starts_at": "2026-01-01T10:00:00Z", "factor": null}));
    assert!(!service.best(3).await.contains(&plain[1]));
    // A new rule replaces none, and what is wrong is said by field.
    post(422, &seen).await.has(["the rule was added"]);
    let wrong = post(422, &[("go", "store"), ("articles.price.min", "cheap")]).await;
    wrong.has(["articles.price: expected a number, found &#34;cheap&#34;"]);
    // An earlier version is seen, and its form leads back.
    let patch = |change| service.patch("/rules/gone", change).is(200);
    patch(json!({"state": "off", "note": "Later"})).await;
    let versions = browser.page(own_page).await;
    versions.has(["<td>off<br>from 2026-01-01 1", "<td>active<br>from 2026-01-01 1"]);
    let earlier = versions.between("<a class=\"button small\" href=\"", "\"");
    let selected = "<option value=\"active\" selected>active</option>";
    browser.page(&earlier).await.has([selected]).lacks([">Later</textarea>"]);
    // Erasing a customer covers the sample.
    service.delete("/customers/c-014871").is(204).await;
    sample().lacks(["c-014871"]);
    // The address leads back to the rule after its preview.
    let version = async || browser.page(own_page).await.between("name=\"version\" value=\"", "\"");
    let old = version().await;
    let previewed = post(200, &[("go", "preview"), ("version", &old)]).await;
    previewed.has(["action=\"/merchandising/rule?name=gone\""]);
    // Deleting it, unless it was changed meanwhile.
    let delete =
        |version: &str| browser.post("/merchandising/rule/delete", &[("name", "gone"), ("version", version)]);
    patch(json!({"note": "Once more"})).await;
    delete(&old).is(409).await;
    service.get("/rules/gone").is(200).await;
    delete(&version().await).is(303).await;
    service.get("/rules/gone").is(404).await;
    // The list leads to its versions, and each can be stored again.
    let deleted = "This rule was deleted.";
    let list = browser.page("/merchandising").await;
    list.has(["Deleted rules", "<li><a href=\"/merchandising/rule?name=gone\">gone</a>"]);
    browser.page(own_page).await.has([deleted, ">Once more</textarea>"]);
    browser.page(&earlier).await.has([deleted]).lacks([">Once more</textarea>"]);
    post(303, &seen).await;
    browser.page("/merchandising").await.lacks(["Deleted rules"]);
    browser.page(own_page).await.lacks([deleted]);
    browser.get("/merchandising/rule?name=never").is(404).await;
    // An active rule is shown before it is stored, also if nothing speaks against it.
    let boost = [
        ("name", "more"),
        ("effect", "boost"),
        ("factor", "2"),
        ("articles.ids", &plain[0]),
        ("state", "active"),
        ("go", "store"),
    ];
    for (seen, status) in [("", 200), ("none", 303)] {
        service.get("/rules/more").is(404).await;
        browser.post("/merchandising/rule", &[&boost[..], &[("seen", seen)]].concat()).is(status).await;
    }
    service.get("/rules/more").is(200).await;
}

#[apply(on_sqlite)]
async fn a_rule_is_tried_over_http(Demo(service): Demo) {
    let request = with(own_request(), json!({"customer": null}));
    let plain = ids(&service.suggest(&request).await);
    let body = exclude(named(&plain[1..2]));
    let tried = service.put("/rules/gone?dry_run=true&preview=true", &body).ok().await;
    let preview = &tried["preview"];
    let losses = json!([{"article": plain[1], "answers": 1}]);
    assert_has(preview, json!({"questions": 1, "changed": 1, "losses": losses, "gains": [{}]}));
    assert!(preview["share"].as_f64().unwrap() > preview["share_with"].as_f64().unwrap(), "{preview}");
    service.get("/rules/gone").is(404).await;
    assert_has(&service.put("/rules/gone?dry_run=true", &body).ok().await, json!({"preview": null}));
    // A preview stores nothing.
    service.put("/rules/gone?preview=true", &body).is(422).await;
}

#[apply(on_sqlite)]
async fn the_sample_has_no_features_of_a_person(Replicated(service, replica): Replicated) {
    let sample = || format!("{:?}", replica.releases.follower::<Sample>());
    for told in [request(3), with(request(3), json!({"customer": "c-014871"}))] {
        replica.suggest(&told).await;
        sample().lacks(["female", "c-014871"]);
    }
    // The occasion is the outfit's.
    replica.suggest(&own_request()).await;
    sample().has(["c-014871"]);
    // Another replica erases the customer.
    service.delete("/customers/c-014871").is(204).await;
    let browser = replica.signed_in(Role::Merchandiser).await;
    let fields = [("name", "coats"), ("effect", "exclude"), ("articles.types", "coat"), ("go", "preview")];
    // Once its copy of the profile is no longer fresh.
    until!({
        browser.post("/merchandising/rule", &fields).is(200).await;
        !sample().contains("c-014871")
    });
}

#[apply(on_sqlite)]
async fn comparisons_and_the_picker_follow_the_rules(Demo(service): Demo) {
    let plain = service.best(3).await;
    // A long list of ids that says the same as one.
    let mut many: Vec<String> = (0..4999).map(|number| format!("x-{number}")).collect();
    many.push(plain[0].clone());
    service.rule("gone", exclude(named(&many))).await;
    let mut compare = with(request(3), json!({"methods": ["match"]}));
    compare.as_object_mut().unwrap().remove("method");
    let compared =
        async |body: &Value| ids(&service.ask_ok("/compare", body).await["columns"][0]["suggestions"]);
    // Methods are compared, and not the shop's hand, unless it is asked for.
    assert_eq!(compared(&compare).await, plain);
    let found = compared(&with(compare, json!({"rules": true}))).await;
    assert_eq!(found, service.best(3).await);
    assert!(!found.contains(&plain[0]));
    let board = format!("/studio?slot=a-00134&slot=&slot=a-00568&slot=a-00259&pick=1&search={}", plain[0]);
    let stylist = service.signed_in(Role::Stylist).await;
    let hidden = "Articles match the words, but are hidden: 1 by the shop’s rules.";
    stylist.page(&board).await.has([hidden]);
    service.patch("/rules/gone", json!({"state": "off"})).is(200).await;
    stylist.page(&board).await.lacks(["more match the words", hidden]);
}

#[apply(on_sqlite)]
async fn only_a_key_for_rules_asks_without_them(Guarded(service): Guarded) {
    service.bring_in_demo().await;
    service.serve_demo().await;
    let without = with(request(1), json!({"rules": false}));
    for (scopes, status) in [(vec![Scope::Complete], 403), (vec![Scope::Complete, Scope::Rules], 200)] {
        let key = service.issue(&scopes).await;
        let ask = |path: &str, body: &Value| service.send(path, body).key(&key);
        ask("/complete", &request(1)).is(200).await;
        ask("/complete", &without).is(status).await;
        let batch = ask("/complete/batch", &json!({"items": [without, request(1)]})).await.json();
        assert_eq!(batch["items"][0]["status"].as_u64().unwrap_or(200), u64::from(status));
        assert!(batch["items"][1]["blanks"].is_array());
    }
}

#[apply(on_sqlite)]
async fn rules_follow_the_catalogue_on_every_replica(Replicated(service, replica): Replicated) {
    let plain = service.best(4).await;
    service.rule("sale", exclude(json!({"attributes": {"sale": ["yes"]}}))).await;
    service.patch(format!("/articles/{}", plain[1]), json!({"sale": "Yes"})).is(200).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(service.best(3).await, at(&plain, &[0, 2, 3]));
    }
    // Also for what is only live in a request, and after the rule is off.
    service.rule("dear", exclude(json!({"price": {"min": 5000}}))).await;
    let live = with(request(2), json!({"live": {&plain[0]: {"price": 6000}}}));
    assert_eq!(ids(&service.suggest(&live).await), at(&plain, &[2, 3]));
    service.patch("/rules/sale", json!({"state": "off"})).is(200).await;
    service.delete("/rules/dear").is(204).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(service.best(4).await, plain);
    }
}

#[apply(on_sqlite)]
async fn pairs_and_quotas_move_suggestions_and_rules_hold_in_whole_outfits(Demo(service): Demo) {
    let plain = service.best(30).await;
    let quota = |least: u32, articles: &[String]| json!({"effect": "quota", "least": least, "articles": named(articles)});
    service.rule("quota", quota(2, &plain[20..30])).await;
    let found = service.suggest(&request(5)).await;
    assert_eq!(ids(&found), at(&plain, &[0, 1, 2, 20, 21]));
    assert_eq!(found[4]["rules"], json!([{"name": "quota", "effect": "quota"}]));
    let pair =
        |with: &str| json!({"effect": "pair", "articles": named(&plain[7..8]), "others": {"ids": [with]}});
    service.rule("pair", pair("a-00001")).await;
    assert_eq!(service.best(5).await, ids(&found), "the outfit has no such article");
    service.rule("pair", pair("a-00568")).await;
    let found = service.suggest(&request(5)).await;
    assert_eq!(ids(&found), at(&plain, &[7, 0, 1, 20, 21]));
    assert_eq!(found[0]["rules"], json!([{"name": "pair", "effect": "pair"}]));
    // A quota that cannot be met is named, with its blank.
    service.rule("quota", quota(3, &plain[29..30])).await;
    let answer = service.ask_ok("/complete", request(5)).await;
    assert_eq!(answer["warnings"][0]["code"], "rule-not-met");
    let detail = answer["warnings"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("slot 1: quota \"quota\" is not met"), "{detail}");
    for name in ["quota", "pair"] {
        service.delete(format!("/rules/{name}")).is(204).await;
    }

    // In whole outfits a rule may look at what earlier blanks get.
    let types = json!({"1": ["bag"], "2": ["coat", "trousers"], "3": ["hat", "boot", "sneaker", "heel"]});
    let whole = json!({"outfit": ["a-00134", null, null, null], "filters": {"types": types}, "sets": 8});
    let whole = with(request(3), &whole);
    let sets_under = async |rule: Value| -> Vec<(f64, Vec<String>)> {
        service.rule("one", rule).await;
        let answer = service.ask_ok("/complete", &whole).await;
        let kind = |placed: &Value| placed["article"]["type"].as_str().unwrap().to_owned();
        let sets = answer["sets"].as_array().unwrap().iter().map(|set| {
            let kinds = set["articles"].as_array().unwrap().iter().map(kind).collect();
            (set["log_probability"].as_f64().unwrap(), kinds)
        });
        sets.collect()
    };
    let no_shoes = exclude(json!({"types": ["boot", "sneaker"]}));
    let sets = sets_under(with(no_shoes, json!({"when": {"outfit": {"types": ["bag"]}}}))).await;
    assert_eq!(sets.len(), 8);
    for (_, kinds) in sets {
        assert!(kinds[0] == "bag" && (kinds[2] == "hat" || kinds[2] == "heel"), "{kinds:?}");
    }
    // Boosts order whole outfits, too, and leave their probabilities.
    let boost = json!({"effect": "boost", "factor": 2.2, "articles": {"types": ["heel"]}});
    let sets = sets_under(boost).await;
    let weight = |(log_probability, kinds): &(f64, Vec<String>)| {
        let heels = kinds.iter().filter(|kind| *kind == "heel").count();
        log_probability + f64::from(u8::try_from(heels).unwrap()) * 2.2_f64.ln()
    };
    assert!(sets.is_sorted_by(|a, b| weight(a) >= weight(b) - 1e-6), "{sets:?}");
    assert!(!sets.is_sorted_by(|a, b| a.0 >= b.0), "some come before more likely ones: {sets:?}");
}

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn draw(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// The demo's articles.
struct Shop(BTreeMap<String, Article>);

impl Shop {
    fn new() -> Self {
        Self(rows::<Article>().into_iter().map(|article| (article.id.to_string(), article)).collect())
    }

    fn id(&self, at: usize) -> &String {
        self.0.keys().nth(at).unwrap()
    }

    fn says(&self, id: &str, attribute: &str, words: &[&str]) -> bool {
        self.0[id].attribute(attribute).is_some_and(|value| words.iter().any(|word| value == word))
    }
}

const COLOURS: [&str; 8] = ["black", "white", "navy", "red", "beige", "green", "grey", "blue"];
const BRANDS: [&str; 4] = ["Tiber", "Quartier", "Lumen", "Linden"];

fn colour(colours: &[&str]) -> Value {
    json!({"attributes": {"colour": colours}})
}

fn brand(brand: &str) -> Value {
    json!({"attributes": {"brand": [brand]}})
}

/// Rules that were drawn: what they exclude, keep apart, pin and count.
struct Drawn {
    excluded: [&'static str; 2],
    apart: [&'static str; 2],
    pinned: Vec<String>,
    rank: usize,
    quota: &'static str,
    least: usize,
}

impl Drawn {
    /// Draws rules, pins to one of the first `most` ranks among them, and stores them.
    async fn store(service: &Service, chance: &mut Chance, most: usize, pinned: Vec<String>) -> Self {
        let excluded = [COLOURS[chance.draw(8)], COLOURS[chance.draw(8)]];
        let apart = [BRANDS[chance.draw(4)], BRANDS[chance.draw(4)]];
        let (rank, quota, least) = (1 + chance.draw(most), COLOURS[chance.draw(8)], 1 + chance.draw(4));
        let [one, other] = apart.map(brand);
        for (name, rule) in [
            ("out", exclude(colour(&excluded))),
            ("apart", json!({"effect": "never-together", "articles": one, "others": other})),
            ("pin", json!({"effect": "pin", "rank": rank, "articles": named(&pinned)})),
            ("quota", json!({"effect": "quota", "least": least, "articles": colour(&[quota])})),
        ] {
            service.rule(name, with(rule, json!({"priority": chance.draw(3)}))).await;
        }
        Self { excluded, apart, pinned, rank, quota, least }
    }

    fn is_excluded(&self, shop: &Shop, id: &str) -> bool {
        shop.says(id, "colour", &self.excluded)
    }

    /// Whether the two are of the brands that are kept apart.
    fn are_apart(&self, shop: &Shop, id: &str, with: &str) -> bool {
        let [one, other] = self.apart;
        let is_of = |id: &str, brand: &str| shop.says(id, "brand", &[brand]);
        is_of(id, one) && is_of(with, other) || is_of(id, other) && is_of(with, one)
    }

    /// The quota is met by what is listed, or a warning names it.
    fn check_quota(&self, shop: &Shop, listed: &[String], warnings: &Value, slot: &str, context: &str) {
        let count = listed.iter().filter(|id| shop.says(id, "colour", &[self.quota])).count();
        let mut warnings = warnings.as_array().unwrap().iter();
        let is_named = warnings.any(|warning| {
            let (slots, rest) = warning["detail"].as_str().unwrap().split_once(": ").unwrap();
            let mut slots = slots.split([' ', ',']);
            rest.starts_with("quota") && slots.any(|other| other == slot)
        });
        assert_eq!(count < self.least.min(listed.len()), is_named, "{context}");
    }
}

/// Whatever rules and requests: no excluded article and none beside what it is kept from, every pin at its rank, every quota met or
/// named.
#[apply(on_sqlite)]
async fn rules_are_exact(Demo(service): Demo) {
    let (mut chance, shop) = (Chance(20_261_127), Shop::new());
    for round in 0..12 {
        let pinned = (0..3).map(|_| shop.id(chance.draw(1500)).clone()).collect();
        let rules = Drawn::store(&service, &mut chance, 6, pinned).await;
        let factor = 1.5 + f64::from(u8::try_from(chance.draw(90)).unwrap());
        for (name, effect, factor) in [("up", "boost", factor), ("down", "bury", 0.2)] {
            let rule = json!({"effect": effect, "factor": factor, "articles": brand(BRANDS[chance.draw(4)])});
            service.rule(name, with(rule, json!({"priority": chance.draw(3)}))).await;
        }
        for _ in 0..4 {
            let k = 1 + chance.draw(12);
            let outfit: Vec<&String> = (0..2).map(|at| shop.id(750 * at + chance.draw(700))).collect();
            let method = ["match", "gsu", "none"][chance.draw(3)];
            let mut ask = json!({"features": {"gender": "female"}, "outfit": [outfit[0], null, outfit[1], null], "k": k, "method": method});
            if chance.draw(2) == 0 {
                ask["filters"] = json!({"price": {"max": 60 + chance.draw(100)}});
            }
            if chance.draw(3) == 0 {
                ask["diversity"] = json!(0.5);
            }
            let explain = chance.draw(2) == 0;
            ask["explain"] = json!(explain);
            let answer = service.ask_ok("/complete", &ask).await;
            // All that is admissible, in the model's order.
            let all = json!({"rules": false, "diversity": 0, "k": 250, "explain": false});
            let all = service.ask_ok("/complete", with(ask.clone(), all)).await;
            let context = format!("round {round}: {ask} {answer:#}");
            let blanks = |answer: &Value| answer["blanks"].as_array().unwrap().clone();
            for (blank, all) in blanks(&answer).into_iter().zip(blanks(&all)) {
                let (found, admissible) = (ids(&blank["suggestions"]), ids(&all["suggestions"]));
                let is_out = |id: &str| {
                    rules.is_excluded(&shop, id) || outfit.iter().any(|with| rules.are_apart(&shop, id, with))
                };
                let left: Vec<&String> = admissible.iter().filter(|id| !is_out(id)).collect();
                assert!(found.iter().all(|id| !is_out(id)), "{context}");
                assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "{context}");
                if all["admissible"].as_u64().unwrap() <= 250 {
                    assert_eq!(found.len(), k.min(left.len()), "{context}");
                }
                let own = left.iter().position(|id| rules.pinned.contains(id));
                if let Some(own) = own.filter(|_| rules.rank <= k) {
                    let place = rules.rank.min(found.len()) - 1;
                    assert_eq!(found[place], *left[own], "{context}");
                    let rule = &blank["suggestions"][place]["rules"][0];
                    let rank = explain.then_some(own + 1);
                    assert_eq!(
                        (&rule["name"], &rule["rank_before"]),
                        (&json!("pin"), &json!(rank)),
                        "{context}"
                    );
                }
                rules.check_quota(&shop, &found, &answer["warnings"], &blank["slot"].to_string(), &context);
            }
        }
    }
}

/// The same of joint sets, whole outfits and similar articles.
#[apply(on_sqlite)]
async fn rules_are_exact_together(Demo(service): Demo) {
    let (mut chance, shop) = (Chance(20_261_128), Shop::new());
    for round in 0..12 {
        let anchor = shop.id(chance.draw(1500)).clone();
        let kind = shop.0[&anchor].kind();
        let of_type: Vec<&String> =
            shop.0.iter().filter(|(_, other)| other.kind() == kind).map(|(id, _)| id).collect();
        let pinned = (0..3).map(|_| of_type[chance.draw(of_type.len())].clone()).collect();
        let rules = Drawn::store(&service, &mut chance, 4, pinned).await;
        // What is chosen together: no excluded article, and none beside what it is kept from.
        let check_together = |set: &Value| {
            let chosen: Vec<String> = ids(&set["articles"]).into_iter().filter(|id| *id != anchor).collect();
            for (at, id) in chosen.iter().enumerate() {
                assert!(!rules.is_excluded(&shop, id), "round {round}: {id} in {set}");
                for other in [&anchor].into_iter().chain(&chosen[..at]) {
                    assert!(!rules.are_apart(&shop, id, other), "round {round}: {id} and {other} in {set}");
                }
            }
        };
        let ask = json!({"features": {"gender": "female"}, "outfit": [anchor, null, null], "method": "match", "sets": 6});
        service.ask_ok("/complete", ask).await["sets"].as_array().unwrap().iter().for_each(check_together);
        let looks = service.json(format!("/articles/{anchor}/looks")).await;
        looks["looks"].as_array().unwrap().iter().for_each(check_together);
        // Similar articles, of which the whole list says what is admissible.
        let similar = async |n: usize| service.json(format!("/articles/{anchor}/similar?n={n}")).await;
        let (all, k) = (ids(&similar(100).await["items"]), 1 + chance.draw(8));
        let found = similar(k).await;
        let (listed, context) = (ids(&found["items"]), format!("round {round}: {anchor} {found:#}"));
        assert!(all.iter().all(|id| !rules.is_excluded(&shop, id)), "{context}");
        assert_eq!(listed.len(), k.min(all.len()), "{context}");
        if all.len() < 100 && rules.rank <= k && all.iter().any(|id| rules.pinned.contains(id)) {
            assert!(rules.pinned.contains(&listed[rules.rank.min(listed.len()) - 1]), "{context}");
        }
        rules.check_quota(&shop, &listed, &found["warnings"], "0", &context);
    }
}
