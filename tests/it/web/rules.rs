//! `/rules`, and what they do to suggestions.

use std::collections::{BTreeMap, BTreeSet};

use atelier::{completion::sample::Sample, platform::db::Actor};
use atelier_core::domain::{Article, Role};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Demo, Guarded, Service, rows, until};
use crate::{
    cli::complete::Parts,
    harness::{TestDatabase, apply, contract, ids, on_sqlite},
};

/// A blouse, trousers, shoes, and a blank.
fn outfit() -> Value {
    json!(["a-00134", null, "a-00568", "a-00259"])
}

fn request(k: usize) -> Value {
    json!({"features": {"gender": "female", "occasion": "office"}, "outfit": outfit(), "k": k, "method": "match"})
}

impl Service {
    async fn rule(&self, name: &str, body: &Value) -> Value {
        let answer = self.put(&format!("/rules/{name}"), body).await;
        let (status, text) = (answer.status(), answer.text());
        assert!([200, 201].contains(&status), "{body}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The first blank's suggestions.
    async fn suggested(&self, request: &Value) -> Value {
        self.ask_ok("/complete", request).await["blanks"][0]["suggestions"].clone()
    }

    async fn patch_rule(&self, name: &str, body: &Value, version: Option<&str>) -> (u16, Value) {
        let request = self.patch(format!("/rules/{name}"), body);
        let answer = request.header("if-match", version.unwrap_or("*")).await;
        (answer.status(), answer.json())
    }
}

fn named(list: &[String]) -> Value {
    json!({"ids": list})
}

/// Experiments and rules are read together: without the table of the ones, a change of the others is stored and cannot be applied.
#[apply(contract)]
async fn a_stored_change_succeeds_even_if_it_cannot_be_applied_yet(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let plain = ids(&service.suggested(&request(5)).await);
    let exclude = json!({"effect": "exclude", "articles": named(&plain[..1]), "state": "active"});
    service
        .rule("old", &json!({"effect": "exclude", "articles": named(&plain[1..2]), "state": "active"}))
        .await;
    let mut raw = db.raw().await;
    sqlx::raw_sql("alter table experiments rename to away").execute(&mut raw).await.unwrap();

    service.put("/rules/new", &exclude).is(201).await;
    service.delete("/rules/old").is(204).await;
    service.delete("/rules/old").is(404).await;
    let look = json!({"title": "Spring", "articles": ["a-00134", "a-00568"]});
    service.put("/looks/spring", &look).is(201).await;
    let article = json!({"type": "scarf", "attributes": {"colour": "navy"}});
    service.put("/articles/late", &article).is(201).await;
    let rows = json!({"id": "later", "type": "scarf", "attributes": {}}).to_string();
    service.post("/articles/bulk", "application/x-ndjson", rows).is(200).await;
    let suggested = ids(&service.suggested(&request(5)).await);
    assert!(suggested.contains(&plain[0]) && !suggested.contains(&plain[1]), "{suggested:?}");

    sqlx::raw_sql("alter table away rename to experiments").execute(&mut raw).await.unwrap();
    sqlx::raw_sql("alter table rules rename to away").execute(&mut raw).await.unwrap();
    service.put("/holdout", &json!({"share": 0.1})).is(200).await;
    service.put("/routing", &json!({"default_method": "gsu"})).is(200).await;
    let arms = json!({"arms": [{"name": "a", "method": "gsu", "share": 1}, {"name": "b", "method": "match", "share": 1}]});
    service.put("/experiments/autumn", &arms).is(201).await;
    sqlx::raw_sql("alter table away rename to rules").execute(&mut raw).await.unwrap();
    service.releases.refresh().await.unwrap();
    let suggested = ids(&service.suggested(&request(5)).await);
    assert!(!suggested.contains(&plain[0]) && suggested.contains(&plain[1]), "{suggested:?}");
    assert_eq!(service.json("/routing").await["default_method"], "gsu");
}

#[apply(on_sqlite)]
async fn rules_move_suggestions_and_leave_shares(Demo(service): Demo) {
    let before = service.suggested(&request(20)).await;
    let plain = ids(&before);
    service
        .rule("gone", &json!({"effect": "exclude", "articles": named(&plain[..2]), "state": "active"}))
        .await;
    let boosted = named(&plain[15..16]);
    service
        .rule(
            "Up & away",
            &json!({"effect": "boost", "factor": 1000, "articles": boosted, "state": "active", "owner": "Ada"}),
        )
        .await;
    service
        .rule(
            "down",
            &json!({"effect": "bury", "factor": 0.001, "articles": named(&plain[2..3]), "state": "active"}),
        )
        .await;
    service
        .rule(
            "third",
            &json!({"effect": "pin", "rank": 3, "articles": named(&plain[10..12]), "state": "active"}),
        )
        .await;
    service.rule("draft", &json!({"effect": "exclude", "articles": {"price": {"min": 0}}})).await;
    let found = service.suggested(&request(10)).await;
    assert_eq!(
        ids(&found),
        [15, 3, 10, 4, 5, 6, 7, 8, 9, 11].map(|at| plain[at].clone()),
        "the rest in its order"
    );
    let rules = |at: usize| found[at]["rules"].clone();
    assert_eq!(rules(0), json!([{"name": "Up & away", "effect": "boost", "rank_before": 14}]));
    assert_eq!(rules(2), json!([{"name": "third", "effect": "pin", "rank_before": 9}]));
    assert!(found[1].get("rules").is_none(), "{}", found[1]);
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
    // A batch and a blank among several answer the same; a request without rules as before.
    let batch = service.ask_ok("/complete/batch", &json!({"items": [request(10)]})).await;
    assert_eq!(batch["items"][0]["blanks"][0]["suggestions"], found);
    let mut without = request(20);
    without["rules"] = json!(false);
    assert_eq!(service.suggested(&without).await, before);
    // Filters, fit, stock and the outfit come first.
    let mut filtered = request(5);
    filtered["filters"] = json!({"exclude": [plain[10], plain[15]]});
    let found = service.suggested(&filtered).await;
    assert_eq!(ids(&found), [3, 4, 11, 5, 6].map(|at| plain[at].clone()), "the pin's next best");
    let sold_out = json!({"type": "coat", "in_stock": false});
    service.put(&format!("/articles/{}", plain[11]), &sold_out).is(200).await;
    assert_eq!(ids(&service.suggested(&filtered).await), [3, 4, 5, 6, 7].map(|at| plain[at].clone()));
    // With nothing left, the answer says that rules are the reason.
    service
        .rule("all", &json!({"effect": "exclude", "articles": {"price": {"min": 0}}, "state": "active"}))
        .await;
    let answer = service.ask_ok("/complete", &request(5)).await;
    let detail = answer["warnings"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("without `rules` (the shop's rules)"), "{answer}");
}

#[apply(on_sqlite)]
async fn a_rule_concerns_the_requests_that_it_names(Demo(service): Demo) {
    let plain = ids(&service.suggested(&request(3)).await);
    let kind = service.json(&format!("/articles/{}", plain[0])).await["type"].clone();
    let is_moved = async |when: Value| {
        let body =
            json!({"effect": "exclude", "articles": named(&plain[..1]), "state": "active", "when": when});
        service.rule("when", &body).await;
        ids(&service.suggested(&request(3)).await).first() != plain.first()
    };
    for (when, expected) in [
        (json!({}), true),
        (json!({"features": {"gender": [" FEMALE "]}}), true),
        (json!({"features": {"gender": ["male", "female"], "occasion": ["wedding"]}}), false),
        (json!({"features": {"style": ["x"]}}), false),
        (json!({"numbers": {"age": {"min": 1}}}), false),
        (json!({"methods": ["match"]}), true),
        (json!({"methods": ["gsu", "none"]}), false),
        (json!({"stores": ["zurich"]}), false),
        (json!({"outfit": {"ids": ["a-00568"]}}), true),
        (json!({"outfit": {"ids": ["a-00001"]}}), false),
    ] {
        assert_eq!(is_moved(when.clone()).await, expected, "{when}");
    }
    let is_active = async |more: Value| {
        let mut body = json!({"effect": "exclude", "articles": {"types": [kind], "price": {"min": 0}}, "state": "active"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service.rule("when", &body).await;
        ids(&service.suggested(&request(3)).await).first() != plain.first()
    };
    for (more, expected) in [
        (json!({}), true),
        (json!({"state": "off"}), false),
        (json!({"starts_at": "2020-01-01T00:00:00+01:00"}), true),
        (json!({"starts_at": "2999-01-01T00:00:00Z"}), false),
        (json!({"ends_at": "2020-01-01T00:00:00Z"}), false),
        (json!({"articles": {"price": {"max": 0}}}), false),
        (json!({"articles": {"new": false}}), true),
        (json!({"articles": {"new": true}}), false),
        (json!({"articles": {"attributes": {"in_stock": ["True"]}, "numbers": {"price": {"min": 1}}}}), true),
        (json!({"articles": {"attributes": {"no such": ["x"]}}}), false),
    ] {
        assert_eq!(is_active(more.clone()).await, expected, "{more}");
    }
}

#[apply(on_sqlite)]
async fn rules_are_read_changed_and_deleted(Demo(service): Demo) {
    let body = json!({"effect": "boost", "factor": 2, "articles": {"types": ["coats"], "attributes": {"brand": ["Tiber"]}},
        "starts_at": "2026-11-27T09:00:00+01:00", "owner": "Ada", "note": "Coats"});
    let dry = service.put("/rules/coats?dry_run=true", &body).ok().await;
    assert_eq!(service.json("/rules").await, json!({"rules": []}), "nothing is stored");
    let coats = rows::<Article>().into_iter().filter(|article| {
        article.kind() == "coat" && article.attribute("brand").is_some_and(|brand| brand == "Tiber")
    });
    let count = coats.count();
    assert!(count > 0);
    assert_eq!((&dry["article_count"], &dry["warnings"]), (&json!(count), &json!([])));
    let added = service.put("/rules/coats", &body).is(201).await;
    let version = added.header("etag").to_owned();
    assert_eq!(added.json(), dry);
    let again = service.put("/rules/coats", &body).header("if-none-match", "*");
    again.is(412).await;
    let read = service.get("/rules/coats").await;
    assert_eq!(read.header("etag"), version);
    let read: Value = read.json();
    assert_eq!(
        (&read["name"], &read["state"], &read["starts_at"], &read["priority"]),
        (&json!("coats"), &json!("draft"), &json!("2026-11-27T08:00:00Z"), &json!(0))
    );
    assert_eq!(service.json("/rules").await["rules"], json!([read]));
    // A patch merges; a version that is not current is refused, and so is a rule that would be wrong.
    let (status, changed) = service
        .patch_rule("coats", &json!({"state": "active", "note": null, "factor": 3}), Some(&version))
        .await;
    assert_eq!(
        (status, &changed["rule"]["factor"], &changed["rule"]["owner"]),
        (200, &json!(3.0), &json!("Ada"))
    );
    assert!(changed["rule"].get("note").is_none());
    assert_eq!(service.patch_rule("coats", &json!({"factor": 4}), Some(&version)).await.0, 412);
    let (status, problem) = service.patch_rule("coats", &json!({"effect": "pin"}), None).await;
    assert_eq!(status, 422);
    let pointers: BTreeSet<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/factor", "/rank"].into());
    for (wrong, pointer) in [
        (json!({"name": "right", "effect": "exclude", "articles": {"new": true}}), "/name"),
        (json!({"effect": "explode", "articles": {"new": true}}), "/effect"),
        (json!({"effect": "exclude", "articles": {}}), "/articles"),
        (json!({"effect": "exclude", "articles": []}), "/articles"),
        (json!({"effect": "exclude", "articles": {"types": "coat"}}), "/articles/types"),
        (json!({"effect": "exclude", "articles": {"types": ["coat", " "]}}), "/articles/types"),
        (json!({"effect": "exclude", "articles": {"ids": vec!["a"; 5001]}}), "/articles/ids"),
        (
            json!({"effect": "exclude", "articles": {"attributes": {"brand": []}}}),
            "/articles/attributes/brand",
        ),
        (json!({"effect": "exclude", "articles": {"price": {"min": 3, "max": 2}}}), "/articles/price"),
        (json!({"effect": "boost", "factor": 0.5, "articles": {"new": true}}), "/factor"),
        (json!({"effect": "bury", "factor": 2, "articles": {"new": true}}), "/factor"),
        (json!({"effect": "pin", "rank": 0, "articles": {"new": true}}), "/rank"),
        (json!({"effect": "quota", "articles": {"new": true}}), "/least"),
        (json!({"effect": "pair", "articles": {"new": true}}), "/others"),
        (json!({"effect": "exclude", "articles": {"new": true}, "ends_at": "tomorrow"}), "/ends_at"),
        (
            json!({"effect": "exclude", "articles": {"new": true}, "ends_at": "9999-12-31T23:59:59-05:00"}),
            "/ends_at",
        ),
        (
            json!({"effect": "exclude", "articles": {"new": true}, "starts_at": "2026-01-02T00:00:00Z",
            "ends_at": "2026-01-01T00:00:00Z"}),
            "/ends_at",
        ),
    ] {
        let answer = service.put("/rules/wrong", &wrong).await;
        assert_eq!(answer.status(), 422, "{wrong}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let warned = service
        .rule("other", &json!({"effect": "exclude", "articles": {"types": ["coat"]}, "when": {"features": {"no": ["x"]}}}))
        .await;
    let codes: Vec<&Value> =
        warned["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["unknown-feature", "excluded"]);
    service.delete("/rules/coats").is(204).await;
    service.delete("/rules/coats").is(404).await;
    let log = service.log(4).await;
    let actions: Vec<_> = log.iter().map(|entry| (entry.action.as_str(), entry.subject.as_str())).collect();
    assert_eq!(
        actions,
        [("rule.delete", "coats"), ("rule.put", "other"), ("rule.put", "coats"), ("rule.put", "coats")]
    );
    assert_eq!(
        (&log[2].details["before"]["factor"], &log[2].details["after"]["factor"]),
        (&json!(2.0), &json!(3.0))
    );
}

#[apply(contract)]
async fn changes_of_different_fields_never_meet(Demo(service): Demo) {
    let body = json!({"effect": "boost", "factor": 2, "articles": {"types": ["coat"]}});
    service.rule("coats", &body).await;
    let path = "/rules/coats";
    let patches: Vec<Value> =
        (0..8).map(|number| json!({"when": {"features": {format!("f{number}"): ["x"]}}})).collect();
    let send = |patch: &Value| service.patch(path, patch).ok();
    futures_util::future::join_all(patches.iter().map(send)).await;
    let features = service.json("/rules/coats").await["when"]["features"].clone();
    assert_eq!(features.as_object().unwrap().len(), 8, "{features}");
    // The same again is no change: the version stays, and the log has no entry.
    let read = service.get("/rules/coats").await;
    let (version, rule) = (read.header("etag").to_owned(), read.json());
    let again = service.put("/rules/coats", &rule).await;
    assert_eq!((again.status(), again.header("etag")), (200, &*version));
    let puts = service.log(99).await.into_iter().filter(|entry| entry.action == "rule.put");
    assert_eq!(puts.count(), 9);
}

#[apply(on_sqlite)]
async fn a_merchandiser_turns_a_rule_on_and_off(Demo(service): Demo) {
    let plain = ids(&service.suggested(&request(2)).await);
    service
        .rule("a b&c", &json!({"effect": "exclude", "articles": named(&plain[..1]), "note": "Recalled"}))
        .await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let click = async |state: &str| {
        let answer = browser.post("/merchandising/state", &[("name", "a b&c"), ("state", state)]).await;
        assert_eq!((answer.status(), answer.header("location")), (303, "/merchandising"));
    };
    click("active").await;
    assert_eq!(ids(&service.suggested(&request(1)).await), plain[1..]);
    let html = browser.page("/merchandising").await;
    for words in ["a b&#38;c", "Recalled", "<td>active</td>", "Turn off"] {
        assert!(html.contains(words), "{words} in {html}");
    }
    click("off").await;
    assert_eq!(ids(&service.suggested(&request(1)).await), plain[..1]);
    assert!(browser.page("/merchandising").await.contains("<td>off</td>"));
    let entry = &service.log(1).await[0];
    assert_eq!((&*entry.action, &entry.details["after"]["state"]), ("rule.put", &json!("off")));
    assert!(matches!(entry.actor, Actor::Person(_)));
    browser.post("/merchandising/state", &[("name", "gone"), ("state", "off")]).is(404).await;
    // What is to be said of a rule is shown before it counts, also if the form cannot write it.
    for (name, word) in [("nothing", "no such"), ("odd", "no|such")] {
        service.rule(name, &json!({"effect": "exclude", "articles": {"types": [word]}})).await;
        let fields = [("name", name), ("state", "active")];
        let answer = browser.post("/merchandising/state", &fields).await;
        let page = format!("/merchandising/rule?name={name}&state=active");
        assert_eq!((answer.status(), answer.header("location")), (303, &*page));
        assert_eq!(service.json(&format!("/rules/{name}")).await["state"], "draft");
        let html = browser.page(&page).await;
        assert!(html.contains("check the spelling") && html.contains("value=\"active\""), "{html}");
        assert_eq!(html.contains("cannot edit this rule's <code>articles.types</code>"), name == "odd");
        let warning = "none of the shop's articles meets `articles`; check the spelling";
        let answer =
            browser.post("/merchandising/state", &[&fields[..], &[("seen", warning)]].concat()).await;
        assert_eq!((answer.status(), answer.header("location")), (303, "/merchandising"));
        assert_eq!(service.json(&format!("/rules/{name}")).await["state"], "active");
    }
}

#[apply(contract)]
async fn a_rule_is_told_previewed_and_stored_on_its_page(Demo(service): Demo) {
    let plain = ids(&service.suggested(&request(3)).await);
    let mut own = request(3);
    own["features"] = json!({"occasion": "office"});
    service.suggested(&own).await;
    own["customer"] = json!("c-014871");
    // The sample takes one question in ten milliseconds.
    until!({
        service.suggested(&own).await;
        format!("{:?}", service.releases.follower::<Sample>()).contains("c-014871")
    });
    let pin = json!({"effect": "pin", "rank": 1, "articles": named(&plain[1..2]), "state": "active"});
    service.rule("first", &pin).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    let fields = [
        ("name", "gone"),
        ("effect", "exclude"),
        // Of other effects: the form hides it.
        ("factor", "2"),
        ("articles.ids", &plain[1]),
        ("state", "active"),
        ("starts_at", "2026-01-01T10:00"),
    ];
    let post = async |more: &[(&str, &str)]| {
        let answer = browser.post("/merchandising/rule", &[&fields[..], more].concat()).await;
        (answer.status(), answer.text())
    };
    let (status, html) = post(&[("go", "preview")]).await;
    assert_eq!(status, 200, "{html}");
    for words in [
        &*format!("Never suggests the articles named {}.", plain[1]),
        "<dt>recent questions asked again</dt><dd>2</dd>",
        "<dt>answers that change</dt><dd>1 (50 %)</dd>",
        "rule &#34;first&#34; and this one contradict each other",
    ] {
        assert!(html.contains(words), "{words:?} in {html}");
    }
    // Its contradictions are named before it is stored.
    let (status, html) = post(&[("go", "store")]).await;
    assert!(status == 200 && html.contains("contradict each other"), "{html}");
    assert_eq!(service.get("/rules/gone").await.status(), 404, "nothing is stored");
    let warning = "rule \"first\" and this one contradict each other: one excludes the other's articles";
    assert_eq!(post(&[("go", "store"), ("seen", warning)]).await.0, 303);
    let stored = service.json("/rules/gone").await;
    assert_eq!((&stored["starts_at"], &stored["factor"]), (&json!("2026-01-01T10:00:00Z"), &Value::Null));
    assert!(!ids(&service.suggested(&request(3)).await).contains(&plain[1]));
    // A new rule replaces none, and what is wrong is said by field.
    let (status, html) = post(&[("go", "store"), ("seen", warning)]).await;
    assert!(status == 422 && html.contains("the rule was added"), "{html}");
    let (status, html) = post(&[("go", "store"), ("articles.price", "cheap")]).await;
    assert!(status == 422 && html.contains("articles.price: expected limits such as 20 to 50"), "{html}");
    // An earlier version is seen, and its form leads back.
    service.patch_rule("gone", &json!({"state": "off", "note": "Later"}), None).await;
    let html = browser.page("/merchandising/rule?name=gone").await;
    let (_, link) =
        html.split_once("<a class=\"button small\" href=\"").expect("a link to the earlier version");
    let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    let html = browser.page(&link).await;
    assert!(
        html.contains("<option value=\"active\" selected>active</option>")
            && !html.contains(">Later</textarea>"),
        "{html}"
    );
    // Erasing a customer covers the sample.
    service.delete("/customers/c-014871").is(204).await;
    let other = [("name", "other"), ("effect", "exclude"), ("articles.ids", &*plain[1]), ("go", "preview")];
    let html = browser.post("/merchandising/rule", &other).await.text();
    let asked = html.split("<dt>recent questions asked again</dt><dd>").nth(1);
    let asked = asked.and_then(|rest| rest.split('<').next()?.parse::<usize>().ok());
    let sample = format!("{:?}", service.releases.follower::<Sample>());
    assert!(asked.is_some_and(|asked| asked >= 1) && !sample.contains("c-014871"), "{sample} {html}");
    // The address leads back to the rule after its preview.
    let version = async || {
        let html = browser.page("/merchandising/rule?name=gone").await;
        let (_, rest) = html.split_once("name=\"version\" value=\"").expect("the form has the version");
        rest.split('"').next().unwrap().replace("&#34;", "\"")
    };
    let old = version().await;
    let (_, html) = post(&[("go", "preview"), ("version", &old)]).await;
    assert!(html.contains("action=\"/merchandising/rule?name=gone\""), "{html}");
    // Deleting it, unless it was changed meanwhile.
    let delete = async |version: &str| {
        let fields = [("name", "gone"), ("version", version)];
        browser.post("/merchandising/rule/delete", &fields).await.status()
    };
    service.patch_rule("gone", &json!({"note": "Once more"}), None).await;
    assert_eq!((delete(&old).await, service.get("/rules/gone").await.status()), (409, 200));
    assert_eq!((delete(&version().await).await, service.get("/rules/gone").await.status()), (303, 404));
    // The list leads to its versions, and each can be stored again.
    assert!(
        browser
            .page("/merchandising")
            .await
            .contains("<li><a href=\"/merchandising/rule?name=gone\">gone</a>")
    );
    let html = browser.page("/merchandising/rule?name=gone").await;
    assert!(html.contains("This rule was deleted.") && html.contains(">Once more</textarea>"), "{html}");
    let html = browser.page(&link).await;
    assert!(html.contains("This rule was deleted.") && !html.contains(">Once more</textarea>"), "{html}");
    assert_eq!(post(&[("go", "store"), ("seen", warning)]).await.0, 303);
    assert!(!browser.page("/merchandising").await.contains("Deleted rules"));
    assert!(!browser.page("/merchandising/rule?name=gone").await.contains("This rule was deleted."));
    browser.get("/merchandising/rule?name=never").is(404).await;
}

#[apply(on_sqlite)]
async fn a_rule_is_tried_over_http(Demo(service): Demo) {
    let mut own = request(3);
    own["features"] = json!({"occasion": "office"});
    let plain = ids(&service.suggested(&own).await);
    let body = json!({"effect": "exclude", "articles": named(&plain[1..2])});
    let tried: Value = service.put("/rules/gone?dry_run=true&preview=true", &body).await.json();
    let preview = &tried["preview"];
    assert_eq!((&preview["questions"], &preview["changed"]), (&json!(1), &json!(1)), "{tried}");
    assert_eq!(preview["losses"], json!([{"article": plain[1], "answers": 1}]));
    assert_eq!(preview["gains"].as_array().unwrap().len(), 1);
    assert!(preview["share"].as_f64().unwrap() > preview["share_with"].as_f64().unwrap(), "{preview}");
    assert_eq!(service.get("/rules/gone").await.status(), 404, "nothing is stored");
    let dry: Value = service.put("/rules/gone?dry_run=true", &body).await.json();
    assert!(dry.get("preview").is_none());
    assert_eq!(
        service.put("/rules/gone?preview=true", &body).await.status(),
        422,
        "a preview stores nothing"
    );
}

#[apply(on_sqlite)]
async fn the_sample_has_no_features_of_a_person(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let replica = Service::start(&db).await;
    replica.serve_demo().await;
    let sample = || format!("{:?}", replica.releases.follower::<Sample>());
    let mut own = request(3);
    own["customer"] = json!("c-014871");
    for told in [request(3), own.clone()] {
        replica.suggested(&told).await;
        assert!(!sample().contains("female") && !sample().contains("c-014871"), "{}", sample());
    }
    own["features"] = json!({"occasion": "office"});
    replica.suggested(&own).await;
    assert!(sample().contains("c-014871"), "the occasion is the outfit's: {}", sample());
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
    let plain = ids(&service.suggested(&request(3)).await);
    // A long list of ids that says the same as one.
    let mut many: Vec<String> = (0..4999).map(|number| format!("x-{number}")).collect();
    many.push(plain[0].clone());
    service.rule("gone", &json!({"effect": "exclude", "articles": named(&many), "state": "active"})).await;
    let mut compare = request(3);
    let fields = compare.as_object_mut().unwrap();
    fields.remove("method");
    fields.insert("methods".into(), json!(["match"]));
    let found = service.ask_ok("/compare", &compare).await["columns"][0]["suggestions"].clone();
    assert_eq!(ids(&found), ids(&service.suggested(&request(3)).await));
    assert!(!ids(&found).contains(&plain[0]));
    compare["rules"] = json!(false);
    let without = service.ask_ok("/compare", &compare).await["columns"][0]["suggestions"].clone();
    assert_eq!(ids(&without), plain);
    let board = format!("/studio?slot=a-00134&slot=&slot=a-00568&slot=a-00259&pick=1&search={}", plain[0]);
    let picker = async || service.signed_in(Role::Stylist).await.page(&board).await;
    assert!(picker().await.contains("Articles match the words, but are hidden: 1 by the shop’s rules."));
    service.patch_rule("gone", &json!({"state": "off"}), None).await;
    assert!(!picker().await.contains("more match the words"));
}

#[apply(on_sqlite)]
async fn only_a_key_for_rules_asks_without_them(Guarded(service): Guarded) {
    use atelier::{
        people::{Opens, Scope},
        platform::db::Name,
    };
    service.bring_in_demo().await;
    service.serve_demo().await;
    let issue = async |scopes: &[Scope]| {
        let now = std::time::SystemTime::now().into();
        service
            .state
            .access()
            .issue_key(&Name::new("k").unwrap(), &Opens::Scopes(scopes.to_vec()), None, now)
            .await
            .unwrap()
            .0
    };
    let mut without = request(1);
    without["rules"] = json!(false);
    let batch = json!({"items": [without, request(1)]});
    let mut compare = without.clone();
    for field in ["method", "k"] {
        compare.as_object_mut().unwrap().remove(field);
    }
    for (scopes, status) in [(&[Scope::Complete][..], 403), (&[Scope::Complete, Scope::Rules], 200)] {
        let key = issue(scopes).await;
        let ask = async |path: &str, body: &Value| {
            let request = service.call(Method::POST, path).key(key.as_str());
            let answer = request.json(body).await;
            (answer.status(), answer.json())
        };
        assert_eq!(ask("/complete", &request(1)).await.0, 200);
        assert_eq!(ask("/complete", &without).await.0, status);
        assert_eq!(ask("/compare", &compare).await.0, status);
        let (_, items) = ask("/complete/batch", &batch).await;
        assert_eq!(items["items"][0]["status"].as_u64().unwrap_or(200), u64::from(status));
        assert!(items["items"][1]["blanks"].is_array());
    }
}

#[apply(on_sqlite)]
async fn rules_follow_the_catalogue_on_every_replica(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let replica = Service::start(&db).await;
    replica.serve_demo().await;
    let plain = ids(&service.suggested(&request(4)).await);
    service
        .rule(
            "sale",
            &json!({"effect": "exclude", "articles": {"attributes": {"sale": ["yes"]}}, "state": "active"}),
        )
        .await;
    let patch = service.patch(format!("/articles/{}", plain[1]), json!({"sale": "Yes"}));
    patch.is(200).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(ids(&service.suggested(&request(3)).await), [0, 2, 3].map(|at| plain[at].clone()));
    }
    // Also for what is only live in a request, and after the rule is off.
    service
        .rule("dear", &json!({"effect": "exclude", "articles": {"price": {"min": 5000}}, "state": "active"}))
        .await;
    let mut live = request(2);
    live["live"] = json!({plain[0].clone(): {"price": 6000}});
    assert_eq!(ids(&service.suggested(&live).await), [2, 3].map(|at| plain[at].clone()));
    service.patch_rule("sale", &json!({"state": "off"}), None).await;
    service.delete("/rules/dear").is(204).await;
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        assert_eq!(ids(&service.suggested(&request(4)).await), plain);
    }
}

#[apply(on_sqlite)]
async fn pairs_quotas_and_what_is_never_together_hold(Demo(service): Demo) {
    let plain = ids(&service.suggested(&request(30)).await);
    let quota = json!({"effect": "quota", "least": 2, "articles": named(&plain[20..30]), "state": "active"});
    service.rule("quota", &quota).await;
    let found = service.suggested(&request(5)).await;
    assert_eq!(ids(&found), [0, 1, 2, 20, 21].map(|at| plain[at].clone()));
    assert_eq!(found[4]["rules"], json!([{"name": "quota", "effect": "quota", "rank_before": 22}]));
    let pair = |with: &str| json!({"effect": "pair", "articles": named(&plain[7..8]), "others": {"ids": [with]}, "state": "active"});
    service.rule("pair", &pair("a-00001")).await;
    assert_eq!(ids(&service.suggested(&request(5)).await), ids(&found), "the outfit has no such article");
    service.rule("pair", &pair("a-00568")).await;
    let found = service.suggested(&request(5)).await;
    assert_eq!(ids(&found), [7, 0, 1, 20, 21].map(|at| plain[at].clone()));
    assert_eq!(found[0]["rules"], json!([{"name": "pair", "effect": "pair", "rank_before": 8}]));
    // A quota that cannot be met is named, with its blank.
    service
        .rule(
            "many",
            &json!({"effect": "quota", "least": 3, "articles": named(&plain[29..30]), "state": "active"}),
        )
        .await;
    let answer = service.ask_ok("/complete", &request(5)).await;
    assert_eq!(answer["warnings"][0]["code"], "rule-not-met");
    let detail = answer["warnings"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("slot 1: quota \"many\" is not met"), "{detail}");
    for number in 0..40 {
        let unmet =
            json!({"effect": "quota", "least": 3, "articles": named(&plain[29..30]), "state": "active"});
        service.rule(&format!("many-{number}"), &unmet).await;
    }
    let answer = service.ask_ok("/complete", &request(5)).await;
    assert!(answer["warnings"].as_array().unwrap().len() <= 42, "{}", answer["warnings"]);
    for number in 0..40 {
        service.delete(&format!("/rules/many-{number}")).await;
    }
    for name in ["quota", "pair", "many"] {
        service.delete(&format!("/rules/{name}")).is(204).await;
    }
    let never = json!({"effect": "never-together", "articles": named(&plain[..3]), "others": {"ids": ["a-00259"]}, "state": "active"});
    service.rule("never", &never).await;
    assert_eq!(ids(&service.suggested(&request(3)).await), plain[3..6]);
    service.rule("never", &json!({"effect": "never-together", "others": named(&plain[..3]), "articles": {"ids": ["a-00259"]}, "state": "active"})).await;
    assert_eq!(ids(&service.suggested(&request(3)).await), plain[3..6], "either way round");

    // In whole outfits, between what is chosen for their blanks.
    service.rule("never", &json!({"effect": "never-together", "articles": {"types": ["bag"]}, "others": {"types": ["coat", "hat"]}, "state": "active"})).await;
    let mut whole = request(3);
    whole["outfit"] = json!(["a-00134", null, null, null]);
    whole["filters"] =
        json!({"types": {"1": ["bag"], "2": ["coat", "trousers"], "3": ["hat", "boot", "sneaker", "heel"]}});
    whole["sets"] = json!(8);
    let answer = service.ask_ok("/complete", &whole).await;
    let sets = answer["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 8);
    for set in sets {
        let kinds: Vec<&str> = set["articles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|placed| placed["article"]["type"].as_str().unwrap())
            .collect();
        assert!(kinds[0] == "bag" && !kinds.contains(&"coat") && !kinds.contains(&"hat"), "{kinds:?}");
    }
    // A rule may look at what earlier blanks get.
    let no_shoes = json!({"effect": "exclude", "articles": {"types": ["boot", "sneaker"]}, "when": {"outfit": {"types": ["bag"]}}, "state": "active"});
    service.rule("never", &no_shoes).await;
    let answer = service.ask_ok("/complete", &whole).await;
    for set in answer["sets"].as_array().unwrap() {
        let kind = &set["articles"][2]["article"]["type"];
        assert!(kind == "hat" || kind == "heel", "{set}");
    }
    // Boosts order whole outfits, too, and leave their probabilities.
    service
        .rule(
            "never",
            &json!({"effect": "boost", "factor": 2.2, "articles": {"types": ["heel"]}, "state": "active"}),
        )
        .await;
    let answer = service.ask_ok("/complete", &whole).await;
    let sets = answer["sets"].as_array().unwrap().iter().map(|set| {
        let heels =
            set["articles"].as_array().unwrap().iter().filter(|placed| placed["article"]["type"] == "heel");
        (set["log_probability"].as_f64().unwrap(), f64::from(u8::try_from(heels.count()).unwrap()))
    });
    let sets: Vec<(f64, f64)> = sets.collect();
    let weights: Vec<f64> =
        sets.iter().map(|(log_probability, heels)| log_probability + heels * 2.2_f64.ln()).collect();
    assert!(weights.is_sorted_by(|a, b| *a >= b - 1e-6), "{sets:?}");
    assert!(!sets.is_sorted_by(|a, b| a.0 >= b.0), "some come before likelier ones: {sets:?}");
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

    /// Whether articles of these brands are kept apart, and these are of them.
    fn are_apart(&self, (one, other): (&str, &str), id: &str, with: &str) -> bool {
        let is_of = |id: &str, brand: &str| self.says(id, "brand", &[brand]);
        is_of(id, one) && is_of(with, other) || is_of(id, other) && is_of(with, one)
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

/// Whatever rules and requests: no excluded article and none beside what it is kept from, every pin at its rank, every quota met or
/// named.
#[apply(on_sqlite)]
async fn rules_are_exact(Demo(service): Demo) {
    let (mut chance, shop) = (Chance(20_261_127), Shop::new());
    let mut draw = |most: usize| chance.draw(most);
    let says = |id: &str, attribute: &str, words: &[&str]| shop.says(id, attribute, words);
    for round in 0..12 {
        let excluded = [COLOURS[draw(8)], COLOURS[draw(8)]];
        let (boosted, buried) = (BRANDS[draw(4)], BRANDS[draw(4)]);
        let quota = COLOURS[draw(8)];
        let (rank, least) = (1 + draw(6), 1 + draw(4));
        let (one, other) = (BRANDS[draw(4)], BRANDS[draw(4)]);
        let pinned: Vec<String> = (0..3).map(|_| shop.id(draw(1500)).clone()).collect();
        for (name, mut rule) in [
            ("out", json!({"effect": "exclude", "articles": colour(&excluded)})),
            (
                "up",
                json!({"effect": "boost", "factor": 1.5 + f64::from(u8::try_from(draw(90)).unwrap()), "articles": brand(boosted)}),
            ),
            ("down", json!({"effect": "bury", "factor": 0.2, "articles": brand(buried)})),
            ("apart", json!({"effect": "never-together", "articles": brand(one), "others": brand(other)})),
            ("pin", json!({"effect": "pin", "rank": rank, "articles": named(&pinned)})),
            ("quota", json!({"effect": "quota", "least": least, "articles": colour(&[quota])})),
        ] {
            rule["state"] = json!("active");
            rule["priority"] = json!(draw(3));
            service.rule(name, &rule).await;
        }
        for _ in 0..4 {
            let k = 1 + draw(12);
            let outfit: Vec<&String> = (0..2).map(|at| shop.id(750 * at + draw(700))).collect();
            let method = ["match", "gsu", "none"][draw(3)];
            let mut ask = json!({"features": {"gender": "female"}, "outfit": [outfit[0], null, outfit[1], null], "k": k, "method": method});
            if draw(2) == 0 {
                ask["filters"] = json!({"price": {"max": 60 + draw(100)}});
            }
            if draw(3) == 0 {
                ask["diversity"] = json!(0.5);
            }
            let answer = service.ask_ok("/complete", &ask).await;
            // All that is admissible, in the model's order.
            let mut all = ask.clone();
            all["rules"] = json!(false);
            all["diversity"] = json!(0);
            all["k"] = json!(250);
            let all = service.ask_ok("/complete", &all).await;
            for (blank, all) in
                answer["blanks"].as_array().unwrap().iter().zip(all["blanks"].as_array().unwrap())
            {
                let (found, admissible) = (ids(&blank["suggestions"]), ids(&all["suggestions"]));
                let is_whole = all["admissible"].as_u64().unwrap() <= 250;
                let is_out = |id: &str| {
                    says(id, "colour", &excluded)
                        || outfit.iter().any(|with| shop.are_apart((one, other), id, with))
                };
                let left: Vec<&String> = admissible.iter().filter(|id| !is_out(id)).collect();
                let context = format!("round {round}: {ask} {answer:#}");
                assert!(found.iter().all(|id| !is_out(id)), "{context}");
                assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "{context}");
                if is_whole {
                    assert_eq!(found.len(), k.min(left.len()), "{context}");
                }
                if let Some(first) = left.iter().find(|id| pinned.contains(id)).filter(|_| rank <= k) {
                    let place = rank.min(found.len()) - 1;
                    assert_eq!(found[place], **first, "{context}");
                    let own = left.iter().position(|id| id == first).unwrap() + 1;
                    let rules = &blank["suggestions"][place]["rules"];
                    assert_eq!(
                        (&rules[0]["name"], rules[0]["rank_before"].as_u64()),
                        (&json!("pin"), Some(own as u64)),
                        "{context}"
                    );
                }
                let count = found.iter().filter(|id| says(id, "colour", &[quota])).count();
                let named = answer["warnings"].as_array().unwrap().iter().any(|warning| {
                    warning["detail"].as_str().unwrap().starts_with(&format!("slot {}: quota", blank["slot"]))
                });
                assert_eq!(count < least.min(found.len()), named, "{context}");
            }
        }
    }
}

/// The same of joint sets, whole outfits, similar articles, and offline.
#[apply(on_sqlite)]
async fn rules_are_exact_together_and_offline(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let (mut chance, shop) = (Chance(20_261_128), Shop::new());
    let mut draw = |most: usize| chance.draw(most);
    for round in 0..12 {
        let (excluded, quota) = ([COLOURS[draw(8)], COLOURS[draw(8)]], COLOURS[draw(8)]);
        let (rank, least) = (1 + draw(4), 1 + draw(4));
        let apart = (BRANDS[draw(4)], BRANDS[draw(4)]);
        let anchor = shop.id(draw(1500)).clone();
        let of_type: Vec<&String> = shop
            .0
            .iter()
            .filter(|(_, other)| other.kind() == shop.0[&anchor].kind())
            .map(|(id, _)| id)
            .collect();
        let pinned: Vec<String> = (0..3).map(|_| of_type[draw(of_type.len())].clone()).collect();
        for (name, mut rule) in [
            ("out", json!({"effect": "exclude", "articles": colour(&excluded)})),
            (
                "apart",
                json!({"effect": "never-together", "articles": brand(apart.0), "others": brand(apart.1)}),
            ),
            ("pin", json!({"effect": "pin", "rank": rank, "articles": named(&pinned)})),
            ("quota", json!({"effect": "quota", "least": least, "articles": colour(&[quota])})),
        ] {
            rule["state"] = json!("active");
            service.rule(name, &rule).await;
        }
        // What is chosen together: no excluded article, and none beside what it is kept from.
        let check_together = |chosen: &[String], with: &[&str], context: &str| {
            for (at, id) in chosen.iter().enumerate() {
                assert!(!shop.says(id, "colour", &excluded), "round {round}: {id} in {context}");
                let others = with.iter().copied().chain(chosen[..at].iter().map(String::as_str));
                for other in others {
                    assert!(
                        !shop.are_apart(apart, id, other),
                        "round {round}: {id} and {other} in {context}"
                    );
                }
            }
        };
        let pieces = |of: &Value| -> Vec<String> {
            let pieces = of["articles"].as_array().unwrap().iter();
            pieces.map(|piece| piece["article"]["id"].as_str().unwrap().to_owned()).collect()
        };
        let ask = json!({"features": {"gender": "female"}, "outfit": [anchor, null, null], "method": "match", "sets": 6});
        for set in service.ask_ok("/complete", &ask).await["sets"].as_array().unwrap() {
            check_together(&pieces(set), &[&anchor], &set.to_string());
        }
        for look in service.json(&format!("/articles/{anchor}/looks")).await["looks"].as_array().unwrap() {
            let (_, chosen): (Vec<_>, Vec<_>) = pieces(look).into_iter().partition(|id| *id == anchor);
            check_together(&chosen, &[&anchor], &look.to_string());
        }
        // Similar articles, of which the whole list says what is admissible.
        let similar = async |n: usize| service.json(&format!("/articles/{anchor}/similar?n={n}")).await;
        let (all, k) = (ids(&similar(100).await["items"]), 1 + draw(8));
        let found = similar(k).await;
        let (listed, context) = (ids(&found["items"]), format!("round {round}: {anchor} {found:#}"));
        assert!(all.iter().all(|id| !shop.says(id, "colour", &excluded)), "{context}");
        assert_eq!(listed.len(), k.min(all.len()), "{context}");
        if all.len() < 100 && rank <= k && all.iter().any(|id| pinned.contains(id)) {
            assert!(pinned.contains(&listed[rank.min(listed.len()) - 1]), "{context}");
        }
        let count = listed.iter().filter(|id| shop.says(id, "colour", &[quota])).count();
        let named = found["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning["detail"].as_str().unwrap().contains("quota"));
        assert_eq!(count < least.min(listed.len()), named, "{context}");
        // Offline as online.
        if round % 4 == 0 {
            let parts = Parts::new();
            let outfit = json!([anchor, null]);
            parts.put("part-0.jsonl", &[json!({"customer": "c-014871", "articles": outfit})]);
            parts.done(&db, &["--k", "7", "--method", "match"]).await;
            let written: Vec<String> =
                parts.read("part-0.jsonl").into_values().map(|(_, article, _)| article).collect();
            let ask = json!({"customer": "c-014871", "outfit": outfit, "k": 7, "method": "match"});
            assert_eq!(written, ids(&service.suggested(&ask).await), "round {round}: {ask}");
        }
    }
}

#[apply(on_sqlite)]
async fn offline_runs_follow_the_rules(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let parts = Parts::new();
    parts.put("part-0.jsonl", &[json!({"customer": "c-014871", "articles": outfit()})]);
    parts.done(&db, &["--k", "3", "--method", "match"]).await;
    let before: Vec<String> =
        parts.read("part-0.jsonl").into_values().map(|(_, article, _)| article).collect();
    service
        .rule("out", &json!({"effect": "exclude", "articles": named(&before[..1]), "state": "active"}))
        .await;
    service
        .rule("top", &json!({"effect": "pin", "rank": 1, "articles": named(&before[2..]), "state": "active"}))
        .await;
    let parts = Parts::new();
    parts.put("part-0.jsonl", &[json!({"customer": "c-014871", "articles": outfit()})]);
    parts.done(&db, &["--k", "2", "--method", "match"]).await;
    let after: Vec<String> =
        parts.read("part-0.jsonl").into_values().map(|(_, article, _)| article).collect();
    assert_eq!(after, [before[2].clone(), before[1].clone()]);
}
