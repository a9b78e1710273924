//! `/holdout` and `/rules/{name}/effect`: customers without rules, and what rules change.

use atelier::{completion::tickets::read_recorded, releases::routing::Holdout};
use atelier_core::domain::{Customer, Role, RuleName};
use serde_json::{Value, json};

use crate::{
    cli::complete::Parts,
    harness::{
        Demo, Html, Replicated, Service, TestDatabase, apply, assert_has, ids, json::with, on_sqlite, rows,
    },
};

/// A stored customer without rules and one with them, while half of the customers have none.
fn customers() -> [String; 2] {
    let half = Holdout::new(0.5).unwrap();
    let all = rows::<Customer>();
    let find = |held_out: bool| {
        all.iter().find(|customer| half.has(&customer.id) == held_out).unwrap().id.to_string()
    };
    [find(true), find(false)]
}

fn request(customer: Option<&str>) -> Value {
    json!({"customer": customer, "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 5, "method": "match",
        "filters": {"types": {"1": ["coat"]}}})
}

fn suggested(answer: &Value) -> Vec<String> {
    ids(&answer["blanks"][0]["suggestions"])
}

impl Service {
    async fn hold_out(&self, share: f64) {
        self.put("/holdout", json!({"share": share})).is(200).await;
    }

    /// Reports what happened to the first suggestion.
    async fn react(&self, answer: &Value, kind: &str) {
        let completion = answer["completion_id"].as_str().unwrap();
        let event = json!({"id": format!("{kind} {completion}"), "completion_id": completion, "kind": kind,
            "slot": 1, "article": suggested(answer)[0]});
        self.ask_ok("/feedback", event).await;
    }
}

#[apply(on_sqlite)]
async fn a_holdout_shows_what_a_rule_changes(Replicated(service, replica): Replicated) {
    let [held_out, other] = customers();
    let ask = async |customer: &str| service.ask_ok("/complete", request(Some(customer))).await;
    let best = |answer: &Value| suggested(answer)[0].clone();
    let [first, second] = [ask(&held_out).await, ask(&other).await];
    for (name, articles) in
        [("gone", json!({"ids": [best(&first), best(&second)]})), ("bags", json!({"types": ["bag"]}))]
    {
        let rule = json!({"effect": "exclude", "articles": articles, "state": "active"});
        service.put(format!("/rules/{name}"), rule).is(201).await;
    }
    // Without a holdout rules apply to all, and nothing is counted.
    let answer = ask(&held_out).await;
    assert!(best(&answer) != best(&first) && answer.get("held_out").is_none(), "{answer}");
    service.react(&answer, "accepted").await;

    service.hold_out(0.5).await;
    assert_eq!(service.json("/holdout").await, json!({"share": 0.5}));
    let entry = &service.log(1).await[0];
    assert_eq!((&*entry.action, &entry.details["after"]), ("holdout.set", &json!(0.5)));
    replica.releases.refresh().await.unwrap();
    for service in [&service, &replica] {
        let answer = service.ask_ok("/complete", request(Some(&held_out))).await;
        assert_eq!((&answer["held_out"], suggested(&answer)), (&json!(true), suggested(&first)));
        assert_eq!(answer["blanks"][0]["suggestions"][0].get("rules"), None);
    }
    let answer = ask(&other).await;
    assert!(answer.get("held_out").is_none() && best(&answer) != best(&second), "{answer}");
    // A ticket has the rules that could change something, whether they apply or not.
    for (customer, is_held_out) in [(&held_out, true), (&other, false)] {
        let answer = ask(customer).await;
        let ticket = read_recorded(answer["completion_id"].as_str().unwrap()).unwrap();
        let gone = RuleName::new("gone").unwrap().digest();
        let slot = u32::try_from(ticket.blanks[0].slot).unwrap();
        assert_eq!((ticket.held_out, &*ticket.rules_of(slot).rules), (is_held_out, &[gone][..]));
    }

    // What counts: named customers, whose questions allow rules.
    for (customer, kinds) in
        [(&held_out, &["accepted", "shown", "bought"][..]), (&other, &["shown", "rejected"])]
    {
        for kind in kinds {
            service.react(&ask(customer).await, kind).await;
        }
    }
    for request in [with(request(Some(&other)), json!({"rules": false})), request(None)] {
        service.react(&service.ask_ok("/complete", request).await, "accepted").await;
    }
    let effect = service.json("/rules/gone/effect").await;
    let with_rule = json!({"shown": 2, "accepted": 0, "rejected": 1, "bought": 0});
    let without_rule = json!({"shown": 3, "accepted": 1, "rejected": 0, "bought": 1});
    assert_has(&effect, json!({"with_rule": with_rule, "without_rule": without_rule}));
    let gain = &effect["acceptance_gain"];
    let [low, value, high] = ["low", "value", "high"].map(|name| gain[name].as_f64().unwrap());
    assert!((value + 1.0 / 3.0).abs() < 1e-12 && low < value && value < high, "{gain}");
    assert_eq!(effect["purchase_gain"], *gain);
    // No bag is asked for.
    let none = json!({"shown": 0, "accepted": 0, "rejected": 0, "bought": 0});
    let effect = service.json("/rules/bags/effect?days=1").await;
    assert_has(&effect, json!({"with_rule": none, "acceptance_gain": null}));
    // The customers are erased, and the counts stay.
    for customer in [&held_out, &other] {
        service.delete(format!("/customers/{customer}")).is(204).await;
    }
    assert_eq!(service.json("/rules/gone/effect").await["acceptance_gain"], *gain);

    for (share, status) in [(json!(0.6), 422), (json!(-0.1), 422), (json!("x"), 422), (json!(0), 200)] {
        service.put("/holdout", json!({"share": share})).is(status).await;
    }
}

#[apply(on_sqlite)]
async fn offline_runs_and_product_pages_know_the_holdout(db: TestDatabase) {
    let service = Service::demo(&db).await;
    service.hold_out(0.5).await;
    let rule = json!({"effect": "exclude", "articles": {"price": {"min": 0}}, "state": "active"});
    service.put("/rules/all", rule).is(201).await;
    for (customer, is_held_out) in customers().into_iter().zip([true, false]) {
        let parts = Parts::new();
        let outfit = json!(["a-00134", null, "a-00568", "a-00259"]);
        parts.put("part-0.jsonl", &[json!({"customer": customer, "articles": outfit})]);
        parts.done(&db, &["--k", "3", "--method", "match"]).await;
        assert_eq!(!parts.read("part-0.jsonl").is_empty(), is_held_out, "{customer}");
        for (path, list) in [("similar", "items"), ("looks", "looks")] {
            let answer = service.json(format!("/articles/a-00134/{path}?customer={customer}")).await;
            assert_eq!(!answer[list].as_array().unwrap().is_empty(), is_held_out, "{path}: {answer}");
        }
    }
}

#[apply(on_sqlite)]
async fn a_merchandiser_sets_the_holdout_and_sees_what_rules_change(Demo(service): Demo) {
    let rule = json!({"effect": "boost", "factor": 2, "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/coats", rule).is(201).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    browser.page("/merchandising").await.lacks(["Last 30 days"]);
    let set = |percent| browser.post("/merchandising/holdout", &[("percent", percent)]);
    let refused = set("60").is(422).await.text();
    refused.has(["a holdout is from 0 to 50 % of the customers, found 60 %"]);
    assert_eq!(set("50").is(303).await.header("location"), "/merchandising");
    let html = browser.page("/merchandising").await;
    html.has(["Last 30 days", "id=\"percent\"", "value=\"50\""]);
    let [held_out, other] = customers();
    for (customer, kind) in [(&held_out, "shown"), (&held_out, "accepted"), (&other, "accepted")] {
        service.react(&service.ask_ok("/complete", request(Some(customer))).await, kind).await;
    }
    let changes = ["100.0 % accepted, 50.0 % without: 50.0 points (", "1 suggestions, 2 without"];
    browser.page("/merchandising").await.has(changes);
}
