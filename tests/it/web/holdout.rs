//! `/holdout` and `/rules/{name}/effect`: customers without rules, and what rules change.

use atelier::{completion::tickets::read_recorded, releases::routing::Holdout};
use atelier_core::domain::{Customer, Role, RuleName};
use serde_json::{Value, json};

use super::{Demo, Service, feedback::report, rows};
use crate::{
    cli::complete::Parts,
    harness::{TestDatabase, apply, on_sqlite},
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

fn ids(answer: &Value) -> Vec<&str> {
    let suggestions = answer["blanks"][0]["suggestions"].as_array().unwrap().iter();
    suggestions.map(|found| found["article"]["id"].as_str().unwrap()).collect()
}

impl Service {
    async fn hold_out(&self, share: f64) {
        self.put("/holdout", &json!({"share": share})).is(200).await;
    }

    /// Reports what happened to the first suggestion.
    async fn react(&self, answer: &Value, kind: &str) {
        let event = json!({"id": format!("{kind} {}", answer["completion_id"]), "completion_id": answer["completion_id"],
            "kind": kind, "slot": 1, "article": ids(answer)[0]});
        assert_eq!(report(self, &event).await.0, 200);
    }
}

#[apply(on_sqlite)]
async fn a_holdout_shows_what_a_rule_changes(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let replica = Service::start(&db).await;
    replica.serve_demo().await;
    let [held_out, other] = customers();
    let ask = async |customer: &str| service.ask_ok("/complete", &request(Some(customer))).await;
    let [first, second] = [ask(&held_out).await, ask(&other).await];
    let best = |answer: &Value| ids(answer)[0].to_owned();
    let rule = |articles: Value| json!({"effect": "exclude", "articles": articles, "state": "active"});
    let gone = rule(json!({"ids": [best(&first), best(&second)]}));
    service.put("/rules/gone", &gone).is(201).await;
    service.put("/rules/bags", &rule(json!({"types": ["bag"]}))).is(201).await;
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
        let answer = service.ask_ok("/complete", &request(Some(&held_out))).await;
        assert_eq!((&answer["held_out"], ids(&answer)), (&json!(true), ids(&first)));
        assert!(answer["blanks"][0]["suggestions"][0].get("rules").is_none());
    }
    let answer = ask(&other).await;
    assert!(answer.get("held_out").is_none() && best(&answer) != best(&second), "{answer}");
    // A ticket has the rules that could change something, whether they apply or not.
    for (customer, is_held_out) in [(&held_out, true), (&other, false)] {
        let answer = ask(customer).await;
        let ticket = read_recorded(answer["completion_id"].as_str().unwrap()).unwrap();
        let gone = RuleName::new("gone").unwrap().digest();
        assert_eq!((ticket.held_out, &*ticket.blanks[0].rules), (is_held_out, &[gone][..]));
    }

    // What counts: named customers, whose questions allow rules.
    for kind in ["accepted", "shown", "bought"] {
        service.react(&ask(&held_out).await, kind).await;
    }
    for kind in ["shown", "rejected"] {
        service.react(&ask(&other).await, kind).await;
    }
    let mut without = request(Some(&other));
    without["rules"] = json!(false);
    for request in [without, request(None)] {
        service.react(&service.ask_ok("/complete", &request).await, "accepted").await;
    }
    let effect = service.json("/rules/gone/effect").await;
    let counts =
        |side: &Value| ["shown", "accepted", "rejected", "bought"].map(|kind| side[kind].as_u64().unwrap());
    assert_eq!((counts(&effect["with_rule"]), counts(&effect["without_rule"])), ([2, 0, 1, 0], [3, 1, 0, 1]));
    let gain = &effect["acceptance_gain"];
    let [low, value, high] = ["low", "value", "high"].map(|name| gain[name].as_f64().unwrap());
    assert!((value + 1.0 / 3.0).abs() < 1e-12 && low < value && value < high, "{gain}");
    assert_eq!(effect["purchase_gain"], *gain);
    let effect = service.json("/rules/bags/effect?days=1").await;
    assert_eq!(
        (counts(&effect["with_rule"]), &effect["acceptance_gain"]),
        ([0; 4], &Value::Null),
        "no bag is asked for"
    );
    service.get("/rules/never/effect").is(404).await;
    // The customers are erased, and the counts stay.
    for customer in [&held_out, &other] {
        service.delete(&format!("/customers/{customer}")).is(204).await;
    }
    assert_eq!(service.json("/rules/gone/effect").await["acceptance_gain"], *gain);

    for (share, status) in [(json!(0.6), 422), (json!(-0.1), 422), (json!("x"), 422), (json!(0), 200)] {
        assert_eq!(service.put("/holdout", &json!({"share": share})).await.status(), status, "{share}");
    }
}

#[apply(on_sqlite)]
async fn offline_runs_and_product_pages_know_the_holdout(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let [held_out, other] = customers();
    service.hold_out(0.5).await;
    let rule = json!({"effect": "exclude", "articles": {"price": {"min": 0}}, "state": "active"});
    service.put("/rules/all", &rule).is(201).await;
    for (customer, is_held_out) in [(held_out, true), (other, false)] {
        let parts = Parts::new();
        parts.put(
            "part-0.jsonl",
            &[json!({"customer": customer, "articles": ["a-00134", null, "a-00568", "a-00259"]})],
        );
        parts.done(&db, &["--k", "3", "--method", "match"]).await;
        assert_eq!(!parts.read("part-0.jsonl").is_empty(), is_held_out, "{customer}");
        let similar = service.json(&format!("/articles/a-00134/similar?customer={customer}")).await;
        assert_eq!(!similar["items"].as_array().unwrap().is_empty(), is_held_out, "{similar}");
        let looks = service.json(&format!("/articles/a-00134/looks?customer={customer}")).await;
        assert_eq!(!looks["looks"].as_array().unwrap().is_empty(), is_held_out, "{looks}");
    }
}

#[apply(on_sqlite)]
async fn a_merchandiser_sets_the_holdout_and_sees_what_rules_change(Demo(service): Demo) {
    let rule = json!({"effect": "boost", "factor": 2, "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/coats", &rule).is(201).await;
    let browser = service.signed_in(Role::Merchandiser).await;
    assert!(!browser.page("/merchandising").await.contains("Last 30 days"));
    let answer = browser.post("/merchandising/holdout", &[("percent", "60")]).is(422).await;
    assert!(answer.text().contains("a holdout is from 0 to 50 % of the customers, found 60 %"));
    let answer = browser.post("/merchandising/holdout", &[("percent", "50")]).await;
    assert_eq!((answer.status(), answer.header("location")), (303, "/merchandising"));
    let html = browser.page("/merchandising").await;
    assert!(
        html.contains("Last 30 days") && html.contains("id=\"percent\"") && html.contains("value=\"50\""),
        "{html}"
    );
    let [held_out, other] = customers();
    for (customer, kinds) in [(&held_out, &["shown", "accepted"][..]), (&other, &["accepted"])] {
        for kind in kinds {
            service.react(&service.ask_ok("/complete", &request(Some(customer))).await, kind).await;
        }
    }
    let html = browser.page("/merchandising").await;
    for words in ["100.0 % accepted, 50.0 % without: 50.0 points (", "1 suggestions, 2 without"] {
        assert!(html.contains(words), "{words} in {html}");
    }
}
