//! `/experiments`: customers in arms, what is counted of them, what that shows, and shipping.

use std::{collections::HashSet, fs, process::Command, time::SystemTime};

use atelier::{experiments::guard, platform::db::Actor};
use atelier_core::domain::{Customer, Role};
use serde_json::{Value, json};

use crate::{
    analysis::evaluation::text,
    harness::{
        Call, Demo, Html, Replicated, Service, apply, assert_has, contract, entries, json::with, on_sqlite,
        rows,
    },
    outcomes::feedback::suggested,
};

const AUTUMN: &str = "/experiments/autumn";

fn arms() -> Value {
    json!([{"name": "today", "method": "match", "share": 1}, {"name": "new", "method": "gsu", "share": 1}])
}

fn running() -> Value {
    json!({"arms": arms(), "state": "running"})
}

pub fn customers(n: usize) -> Vec<String> {
    rows::<Customer>().into_iter().take(n).map(|customer| customer.id.to_string()).collect()
}

impl Service {
    fn change(&self, change: Value) -> Call {
        self.patch(AUTUMN, change)
    }

    /// The arm and the method of a customer.
    async fn arm_of(&self, customer: &str) -> (Value, Value) {
        let answer = self.ask_ok("/complete", json!({"outfit": [null], "customer": customer})).await;
        (answer["arm"].clone(), answer["method"].clone())
    }

    async fn figures(&self) -> Value {
        self.json(format!("{AUTUMN}/figures")).await
    }
}

#[apply(contract)]
async fn customers_are_split_between_methods_until_one_is_shipped(Replicated(service, replica): Replicated) {
    let put = service.put(AUTUMN, json!({"arms": arms(), "note": " Does gsu pay? "})).is(201).await;
    let stored = json!({"name": "autumn", "arms": arms(), "metric": "accepted", "effect": 0.1, "note": "Does gsu pay?",
        "state": "draft", "share": 100});
    assert_eq!(put.json(), stored);
    assert_eq!(service.json("/experiments").await, json!({"experiments": [stored]}));
    let all = customers(60);
    assert_eq!(service.arm_of(&all[0]).await.0, Value::Null, "a draft has no customers");

    let version = put.header("etag");
    let start = || service.change(json!({"state": "running"})).header("if-match", version);
    let started = start().ok().await;
    assert_has(&started, json!({"state": "running", "parts": null}));
    assert!(started["started_at"].is_string(), "{started}");
    start().is(412).await;
    assert_eq!(service.actions(1).await, ["experiment.put autumn"]);
    let changed = json!({"before": {"state": "draft"}, "after": {"state": "running"}});
    assert_has(&json!(service.log(1).await[0].details), changed);
    replica.releases.refresh().await.unwrap();
    let mut seen = [0, 0];
    for customer in &all {
        let found = service.arm_of(customer).await;
        assert_eq!(replica.arm_of(customer).await, found, "replicas agree");
        let expected = [("autumn/today", "match"), ("autumn/new", "gsu")];
        let place = expected.iter().position(|(arm, method)| found.0 == *arm && found.1 == *method);
        seen[place.unwrap_or_else(|| panic!("{found:?}"))] += 1;
    }
    assert!(seen.iter().all(|count| *count > 15), "{seen:?}");
    // No customer is in two.
    let second = |share: u8| service.put("/experiments/winter", with(running(), json!({"share": share})));
    second(1).await.assert_problem(422, &["/share"]);
    service.change(json!({"share": 40})).is(200).await;
    second(60).is(201).await;
    let mut names = HashSet::new();
    for customer in &all {
        let arm = service.arm_of(customer).await.0;
        names.insert(arm.as_str().unwrap().split('/').next().unwrap().to_owned());
    }
    assert_eq!(names.len(), 2, "every customer is in one of both");

    let shipped = service.change(json!({"state": "shipped", "winner": "new"})).ok().await;
    assert_has(&shipped, json!({"state": "shipped", "winner": "new"}));
    assert!(shipped["ended_at"].is_string());
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
    let entries = service.log(2).await;
    assert!(entries.iter().map(|entry| &*entry.action).eq(["experiment.put", "routing.set"]), "{entries:?}");
    assert_eq!(json!(entries[1].details), json!({"before": "the release's default", "after": "gsu"}));
    replica.releases.refresh().await.unwrap();
    for customer in &all {
        let (arm, method) = replica.arm_of(customer).await;
        assert!(!arm.as_str().unwrap_or_default().starts_with("autumn/"), "{arm}");
        assert!(arm != Value::Null || method == "gsu", "{method}");
    }
}

#[apply(contract)]
async fn an_arm_goes_without_some_rules_and_shipping_it_turns_them_off(Demo(service): Demo) {
    let rule = json!({"effect": "exclude", "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/no-coats", rule).is(201).await;
    let arms =
        json!([{"name": "today", "share": 1}, {"name": "coats", "without_rules": ["no-coats"], "share": 1}]);
    service.put(AUTUMN, json!({"arms": arms, "state": "running"})).is(201).await;
    let ask = async |customer: &str| {
        let types = json!({"types": {"1": ["coat"]}});
        let body = json!({"customer": customer, "outfit": ["a-00134", null], "k": 3, "filters": types});
        service.ask_ok("/complete", body).await
    };
    let mut seen: [Vec<String>; 2] = [Vec::new(), Vec::new()];
    for customer in customers(20) {
        let answer = ask(&customer).await;
        let with_coats = answer["arm"] == "autumn/coats";
        assert_eq!(answer["blanks"][0]["suggestions"] != json!([]), with_coats, "{answer}");
        seen[usize::from(with_coats)].push(customer);
    }
    assert!(seen.iter().all(|customers| customers.len() > 2), "{seen:?}");
    // What a change of the profile does is shown beside the same arm's answer.
    let stylist = service.signed_in(Role::Stylist).await;
    let address = format!("/studio?customer={}&slot=a-00134&slot=&type=1:coat&if.age=34", seen[1][0]);
    let html = stylist.page(&address).await;
    assert!(html.contains("from ") || html.contains("unchanged"), "{html}");
    html.lacks(["was excluded"]);
    // Who is held out from all rules is in no experiment on rules.
    service.put("/holdout", json!({"share": 0.5})).is(200).await;
    let mut held_out = 0;
    for customer in customers(20) {
        let answer = ask(&customer).await;
        if answer["held_out"] == true {
            assert_eq!(answer["arm"], Value::Null);
            held_out += 1;
        }
    }
    assert!(held_out > 2);
    service.change(json!({"state": "shipped", "winner": "coats"})).is(200).await;
    assert_eq!(service.json("/rules/no-coats").await["state"], "off");
    assert_eq!(service.actions(2).await, ["experiment.put autumn", "rule.put no-coats"]);
    assert_eq!(service.json("/routing").await, json!({"default_method": null}));
}

#[apply(on_sqlite)]
async fn an_invalid_experiment_is_refused_with_pointers(Demo(service): Demo) {
    let arm = |name: &str, share: u8, more: Value| with(json!({"name": name, "share": share}), &more);
    let plain = |name, share| arm(name, share, json!({}));
    let run = |one: Value, other: Value| json!({"arms": [one, other], "state": "running"});
    for (more, pointer) in [
        (json!({"arms": []}), "/arms"),
        (json!({"arms": [["a", 1]]}), "/arms/0"),
        (json!({"arms": [plain("a b", 1), plain("b", 1)]}), "/arms/0/name"),
        (json!({"arms": [plain("a", 1), plain("a", 0)]}), "/arms/1/name"),
        (json!({"arms": [plain("a", 1), plain("b", 0)]}), "/arms/1/share"),
        (json!({"share": 101}), "/share"),
        (json!({"effect": 0}), "/effect"),
        (json!({"metric": "clicks"}), "/metric"),
        (json!({"winner": "new"}), "/winner"),
        (json!({"state": "stopped"}), "/state"),
        (json!({"name": "winter"}), "/name"),
        (run(arm("a", 1, json!({"method": "bert"})), plain("b", 1)), "/arms/0/method"),
        (run(plain("a", 1), arm("b", 1, json!({"without_rules": ["x"]}))), "/arms/1/without_rules"),
    ] {
        let problem = service.put(AUTUMN, with(json!({"arms": arms()}), &more)).is(422).await.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{more}");
    }
    assert_eq!(service.json("/experiments").await, json!({"experiments": []}));
    service.change(json!({"share": 3})).is(404).await;
}

#[apply(on_sqlite)]
async fn an_experiment_goes_from_draft_to_shipped_and_not_back(Demo(service): Demo) {
    service.put(AUTUMN, json!({"arms": arms()})).is(201).await;
    service.delete(AUTUMN).is(204).await;
    service.put(AUTUMN, running()).is(201).await;
    // It has begun.
    service.delete(AUTUMN).is(422).await;
    service.change(json!({"effect": 0.2})).await.assert_problem(422, &["/arms"]);
    // The service says when it ran.
    service.change(json!({"started_at": null, "note": "x"})).is(200).await;
    assert!(service.json(AUTUMN).await["started_at"].is_string());
    service.change(json!({"state": "stopped"})).is(200).await;
    for (change, pointer) in [
        (json!({"state": "running"}), "/state"),
        (json!({"state": "shipped"}), "/winner"),
        (json!({"state": "shipped", "winner": "old"}), "/winner"),
    ] {
        service.change(change).await.assert_problem(422, &[pointer]);
    }
    // The same again is no change.
    for _ in 0..2 {
        service.change(json!({"state": "shipped", "winner": "today"})).is(200).await;
    }
    service.change(json!({"note": "later"})).is(422).await;
}

/// A ticket of a suggestion of `a-7` and `a-3` in an arm.
fn ticket(service: &Service, arm: &str) -> String {
    service.state.tickets().issue(suggested("gsu", Some(arm)))
}

/// What happened to an article of the ticket.
fn happened(ticket: &str, kind: &str, article: &str, customer: &str) -> Value {
    json!({"id": format!("{ticket} {kind} {article}"), "completion_id": ticket, "kind": kind, "slot": 1,
        "article": article, "customer": customer})
}

/// Reports two completions for each customer, every other one in the arm `new`. Of ten customers three accept in the arm
/// `today`, six in `new`, of which the first buy, and the first of these sends it back.
async fn react(service: &Service, all: &[String]) {
    let (mut feedback, mut events) = (Vec::new(), Vec::new());
    for (number, customer) in all.iter().enumerate() {
        let (arm, accepts) = [("autumn/today", 3), ("autumn/new", 6)][number % 2];
        for completion in 0..2 {
            let ticket = ticket(service, arm);
            feedback.extend(["a-7", "a-3"].map(|article| happened(&ticket, "shown", article, customer)));
            if number / 2 % 10 < accepts {
                // Another program knows no customer; the suggestion's counts.
                let accepted = happened(&ticket, "accepted", "a-7", customer);
                feedback.push(with(accepted, json!({"customer": null})));
            }
            if number % 2 == 1 && number < 10 && completion == 0 {
                for kind in if number == 1 { &["bought", "returned"][..] } else { &["bought"] } {
                    events
                        .push(json!({"id": format!("{customer} {kind}"), "kind": kind, "customer": customer,
                        "article": "a-3", "order": customer, "value": 50.0, "ticket": ticket}));
                }
            }
        }
    }
    for part in feedback.chunks(1000) {
        let answers = service.ask_ok("/feedback", json!(part)).await;
        assert!(answers.as_array().unwrap().iter().all(|one| one["recorded"] == true), "{answers}");
    }
    for answer in service.ask_ok("/events", json!(events)).await.as_array().unwrap() {
        assert_has(answer, json!({"recorded": true, "attribution": "ticket"}));
    }
}

/// The page reports with the ticket, and the order system without: in either order that is one purchase, and its return takes
/// back that it was accepted.
#[apply(contract)]
async fn a_purchase_that_is_reported_twice_is_one(Demo(service): Demo) {
    service.put(AUTUMN, running()).is(201).await;
    for (number, customer) in customers(2).iter().enumerate() {
        let ticket = ticket(&service, "autumn/new");
        let feedback =
            async |kind| service.ask_ok("/feedback", happened(&ticket, kind, "a-7", customer)).await;
        let order = async |kind: &str| {
            let event = json!([{"id": format!("{customer} {kind} order"), "kind": kind, "customer": customer,
                "article": "a-7", "order": customer, "value": 50.0}]);
            service.ask_ok("/events", event).await[0]["attribution"].clone()
        };
        let arm = async || service.figures().await["arms"][1].clone();
        feedback("shown").await;
        feedback("accepted").await;
        if number == 0 {
            feedback("bought").await;
        }
        assert_eq!(order("bought").await, "window");
        if number == 1 {
            feedback("bought").await;
        }
        let count = number + 1;
        let expected = json!({"arm": "new", "customers": count, "completions": count, "shown": count, "accepted": 1,
            "bought": count, "returned": number, "kept": 0, "revenue": 50.0});
        assert_eq!(arm().await, expected);
        order("returned").await;
        assert_has(&arm().await, json!({"accepted": 0, "returned": count, "revenue": 0.0}));
    }
}

#[apply(contract)]
async fn figures_are_by_customer_and_decide(Demo(service): Demo) {
    service.put(AUTUMN, running()).is(201).await;
    let none = json!({"decision": {"state": "collecting"}, "arms": [{"customers": 0}, {"customers": 0}]});
    assert_has(&service.figures().await, none);
    let all = customers(300);
    react(&service, &all).await;
    let figures = service.figures().await;
    let counts = |arm: &str, accepted: u32, bought: u32, returned: u32, revenue: f64| {
        json!({"arm": arm, "customers": 150, "completions": 300, "shown": 600, "accepted": accepted, "bought": bought,
            "returned": returned, "kept": 0, "revenue": revenue})
    };
    assert_eq!(figures["arms"], json!([counts("today", 90, 0, 0, 0.0), counts("new", 180, 5, 1, 200.0)]));
    assert_eq!(figures["decision"], json!({"state": "winner", "winner": "new"}), "{figures}");
    assert_eq!(figures["is_split_broken"], false);
    let accepted = &figures["differences"][0];
    assert_has(accepted, json!({"metric": "accepted", "control": 0.3, "value": 0.6}));
    let [low, value, high] =
        ["low", "value", "high"].map(|end| accepted["difference"][end].as_f64().unwrap());
    // Both completions of a customer end alike: 150 customers in each arm. Their standard error is that of shares of 150.
    let error = ((0.3 * 0.7 + 0.6 * 0.4) / 149.0_f64).sqrt();
    assert!((value - 0.3).abs() < 1e-12 && low > 0.0 && (high + low - 0.6).abs() < 1e-12, "{accepted}");
    let errors = (high - value) / error;
    assert!((3.0..4.5).contains(&errors), "an interval for every look reaches {errors} errors");
    let differences = figures["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 4);
    assert!(differences[3]["difference"]["low"].as_f64().unwrap() < 0.0, "four of 150 bought something");

    // The rows stand for customers without their ids; the notebook finds the same in them.
    let csv = service.get(format!("{AUTUMN}/customers")).is(200).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let csv = csv.text();
    let head = "customer,arm,completions,shown,accepted,bought,returned,kept,revenue";
    assert_eq!(csv.lines().next(), Some(head));
    assert_eq!(csv.lines().count(), 301);
    assert_eq!(csv.lines().filter(|line| line.ends_with(",new,2,4,2,1,0,0,50")).count(), 4, "{csv}");
    csv.lacks([&all[0]]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("customers.csv"), &csv).unwrap();
    let notebook: Value =
        serde_json::from_str(include_str!("../../../docs/examples/experiment.ipynb")).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code");
    let lines = cells.flat_map(|cell| {
        cell["source"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).chain(["\n"])
    });
    let script: String = lines.collect();
    let ran = Command::new("python3").arg("-c").arg(script).current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found = format!("new - today: accepted {value:.6} ({low:.6} to {high:.6})");
    String::from_utf8(ran.stdout).unwrap().has([&found]);
    let parquet = service.get(format!("{AUTUMN}/customers?format=parquet")).await;
    assert_eq!(parquet.header("content-type"), "application/vnd.apache.parquet");
    assert!(parquet.body.starts_with(b"PAR1"));

    // A customer's export has the part, and erasing it takes it out.
    let export = service.json(format!("/customers/{}/export", all[1])).await;
    let part = json!([{"arm": "autumn/new", "completions": 2, "shown": 4, "accepted": 2, "bought": 1,
        "returned": 1, "kept": 0, "revenue": 0.0}]);
    assert_eq!(export["experiments"], part);
    service.delete(format!("/customers/{}", all[1])).is(204).await;
    let erased = json!({"arms": [{}, {"customers": 149, "bought": 4}]});
    assert_has(&service.figures().await, erased);

    let html = service.signed_in(Role::Analyst).await.page("/operations/experiments/autumn").await;
    let judged = "new wins: judged by accepted, it is better than today.";
    html.has([judged, "<td class=\"number when\">+0.297 ("]);
}

#[apply(on_sqlite)]
async fn a_broken_split_shows_before_anything_else(Demo(service): Demo) {
    service.put(AUTUMN, running()).is(201).await;
    // Of the arm `new`, two thirds never report.
    let reporting = customers(300).into_iter().enumerate().filter(|(at, _)| at % 2 == 0 || at % 6 == 1);
    let shown = reporting.map(|(at, customer)| {
        let arm = if at % 2 == 0 { "autumn/today" } else { "autumn/new" };
        happened(&ticket(&service, arm), "shown", "a-7", &customer)
    });
    service.ask_ok("/feedback", shown.collect::<Value>()).await;
    let arms = json!([{"customers": 150}, {"customers": 50}]);
    let broken = json!({"arms": arms, "decision": {"state": "broken-split"}, "is_split_broken": true});
    assert_has(&service.figures().await, broken);
}

#[apply(on_sqlite)]
async fn an_arm_beyond_a_limit_stops_the_experiment(Demo(service): Demo) {
    let rule = json!({"effect": "exclude", "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/no-coats", rule).is(201).await;
    let arms =
        json!([{"name": "today", "without_rules": ["no-coats"], "share": 1}, {"name": "new", "share": 1}]);
    let limits = json!({"latency_ms": 600_000, "errors": 0.0, "empty": 0.05});
    service.put(AUTUMN, json!({"arms": arms, "state": "running", "stop_if": limits})).is(201).await;
    let all = customers(40);
    let guard = async || {
        guard::stop_beyond_limits(&service.store, &service.releases, SystemTime::now().into()).await.unwrap();
        service.json(AUTUMN).await
    };
    for round in 1..=12 {
        for customer in &all {
            let types = json!({"types": {"0": ["coat"]}});
            let body = json!({"customer": customer, "outfit": [null], "filters": types});
            service.ask_ok("/complete", body).await;
        }
        if round == 5 {
            assert_eq!(guard().await["state"], "running", "too few answers");
        }
    }
    let stopped = guard().await;
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    let reason = stopped["ended_because"].as_str().unwrap();
    let limit = " blanks had no suggestion in arm new; the limit is 5.0 %";
    assert!(reason.starts_with("100.0 % of the ") && reason.ends_with(limit), "{reason}");
    assert_eq!(service.arm_of(&all[0]).await.0, Value::Null);
    let entries = entries(&service.store, 1).await;
    assert_eq!((entries[0].actor, &*entries[0].action), (Actor::Service, "experiment.put"));
    let html = service.signed_in(Role::Analyst).await.page("/operations/experiments/autumn").await;
    html.has(["had no suggestion in arm new"]);
}

#[apply(on_sqlite)]
async fn an_experiment_is_started_stopped_and_shipped(Demo(service): Demo) {
    const SPRING: &str = "/operations/experiments/spring";
    let admin = service.signed_in(Role::Admin).await;
    let draft = async |rules: &str, method: &str| {
        let arms = [("arm-0", "today"), ("arm-1", "new"), ("rules-1", rules), ("method-1", method)];
        admin.change("/operations/experiments", &[&[("name", "spring")][..], &arms].concat()).await;
        text(&admin.page(SPRING).await).has(["A draft: no customer is in it."]);
    };
    let change = async |fields: &[(&str, &str)]| {
        let page = admin.page(format!("{SPRING}?ship=new")).await;
        let version = page.between("name=\"version\" value=\"", "\"");
        admin.post(SPRING, &[fields, &[("version", &*version)]].concat()).await
    };
    draft("no such rule", "").await;
    let refused = change(&[("to", "running"), ("share", "20")]).await;
    text(&refused.text()).has(["There is no active rule"]);
    change(&[("to", "delete")]).await;
    admin.page("/operations/experiments").await.has(["No experiments"]);
    draft("", "gsu").await;
    for (fields, said) in [
        (&[("to", "running"), ("share", "20")][..], "with 20 % of the known customers"),
        (&[("to", "stopped")], "Stopped after less than a day"),
        (&[("to", "shipped"), ("winner", "new")], "Shipped after less than a day: new"),
    ] {
        if said.starts_with("Shipped") {
            // Nothing is shipped before the page has said what it means, and what speaks against it.
            let review = admin.page(format!("{SPRING}?ship=new")).await;
            text(&review).has([
                "Ship new to all customers?",
                "The figures do not say so. No decision yet: judged by accepted, no arm is clearly better.",
                "gsu becomes the default method.",
                "accepted: – instead of –, too few customers yet.",
                "Ship new anyway",
            ]);
            admin.page(SPRING).await.has(["name=\"ship\" id=\"winner\""]).lacks(["name=\"winner\" value="]);
        }
        assert_eq!(change(fields).await.status, 303, "{said}");
        text(&admin.page(SPRING).await).has([said]);
    }
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
}
