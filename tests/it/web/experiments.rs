//! `/experiments`: customers in arms, what is counted of them, what that shows, and shipping.

use std::{fs, process::Command, time::SystemTime};

use atelier::{experiments::guard, platform::db::Actor};
use atelier_core::domain::{Customer, Role};
use serde_json::{Value, json};

use super::{Demo, Service, feedback::suggested, rows};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

const AUTUMN: &str = "/experiments/autumn";

fn arms() -> Value {
    json!([{"name": "today", "method": "match", "share": 1}, {"name": "new", "method": "gsu", "share": 1}])
}

pub fn customers(n: usize) -> Vec<String> {
    rows::<Customer>().into_iter().take(n).map(|customer| customer.id.to_string()).collect()
}

impl Service {
    async fn patch_experiment(&self, change: &Value, version: Option<&str>) -> (u16, Value) {
        let request = self.patch(AUTUMN, change);
        let request = match version {
            Some(version) => request.header("if-match", version),
            None => request,
        };
        let answer = request.await;
        (answer.status(), answer.json())
    }

    async fn arm_of(&self, customer: &str) -> (Value, Value) {
        let answer = self.ask_ok("/complete", &json!({"outfit": [null], "customer": customer})).await;
        (answer["arm"].clone(), answer["method"].clone())
    }
}

#[apply(contract)]
async fn customers_are_split_between_methods_until_one_is_shipped(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let replica = Service::start(&db).await;
    replica.serve_demo().await;
    let draft = json!({"arms": arms(), "note": " Does gsu pay? "});
    let put = service.put(AUTUMN, &draft).is(201).await;
    let version = put.header("etag").to_owned();
    let stored = json!({"name": "autumn", "arms": arms(), "metric": "accepted", "effect": 0.1, "note": "Does gsu pay?",
        "state": "draft", "share": 100});
    assert_eq!(put.json(), stored);
    assert_eq!(service.json("/experiments").await, json!({"experiments": [stored]}));
    let all = customers(60);
    assert_eq!(service.arm_of(&all[0]).await.0, Value::Null, "a draft has no customers");

    let (status, started) =
        service.patch_experiment(&json!({"state": "running", "share": 20}), Some(&version)).await;
    assert_eq!((status, &started["state"]), (200, &json!("running")), "{started}");
    assert!(started["started_at"].is_string() && started["parts"].is_null(), "{started}");
    let (status, _) = service.patch_experiment(&json!({"share": 100}), Some(&version)).await;
    assert_eq!(status, 412, "it is another version by now");
    let entry = &service.log(1).await[0];
    assert_eq!((&*entry.action, &*entry.subject), ("experiment.put", "autumn"));
    assert_eq!(
        (&entry.details["before"]["state"], &entry.details["after"]["share"]),
        (&json!("draft"), &json!(20))
    );
    replica.releases.refresh().await.unwrap();
    let mut first = Vec::new();
    for customer in &all {
        let found = service.arm_of(customer).await;
        assert_eq!(replica.arm_of(customer).await, found, "replicas agree");
        if found.0 != Value::Null {
            first.push((customer, found));
        }
    }
    assert!((4..=24).contains(&first.len()), "about a fifth: {}", first.len());
    // The share grows: those who were in it stay in their arm.
    assert_eq!(service.patch_experiment(&json!({"share": 100}), None).await.0, 200);
    for (customer, found) in &first {
        assert_eq!(service.arm_of(customer).await, *found);
    }
    let mut seen = [0, 0];
    for customer in &all {
        let (arm, method) = service.arm_of(customer).await;
        let is_new = arm == "autumn/new";
        assert_eq!(
            (arm, method),
            if is_new {
                (json!("autumn/new"), json!("gsu"))
            } else {
                (json!("autumn/today"), json!("match"))
            }
        );
        seen[usize::from(is_new)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 15), "{seen:?}");
    // No customer is in two.
    let second = json!({"arms": arms(), "state": "running", "share": 1});
    let problem = service.put("/experiments/winter", &second).is(422).await.json();
    assert_eq!(problem["errors"][0]["pointer"], "/share", "{problem}");
    assert_eq!(service.patch_experiment(&json!({"share": 40}), None).await.0, 200);
    service
        .put("/experiments/winter", &json!({"arms": arms(), "state": "running", "share": 60}))
        .is(201)
        .await;
    let mut names = std::collections::HashSet::new();
    for customer in &all {
        let arm = service.arm_of(customer).await.0;
        names.insert(arm.as_str().unwrap().split('/').next().unwrap().to_owned());
    }
    assert_eq!(names.len(), 2, "every customer is in one of both");

    let (status, shipped) =
        service.patch_experiment(&json!({"state": "shipped", "winner": "new"}), None).await;
    assert_eq!((status, &shipped["state"], &shipped["winner"]), (200, &json!("shipped"), &json!("new")));
    assert!(shipped["ended_at"].is_string());
    assert_eq!(service.json("/routing").await, json!({"default_method": "gsu"}));
    let entries = service.log(2).await;
    let actions: Vec<&str> = entries.iter().map(|entry| &*entry.action).collect();
    assert_eq!(actions, ["experiment.put", "routing.set"]);
    assert_eq!(json!(entries[1].details), json!({"before": "the release's default", "after": "gsu"}));
    replica.releases.refresh().await.unwrap();
    for (customer, _) in &first {
        let (arm, method) = replica.arm_of(customer).await;
        assert!(!arm.as_str().unwrap_or_default().starts_with("autumn/"), "{arm}");
        assert!(arm != Value::Null || method == "gsu", "{method}");
    }
}

#[apply(contract)]
async fn an_arm_goes_without_some_rules_and_shipping_it_turns_them_off(Demo(service): Demo) {
    let rule = json!({"effect": "exclude", "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/no-coats", &rule).await;
    let arms =
        json!([{"name": "today", "share": 1}, {"name": "coats", "without_rules": ["no-coats"], "share": 1}]);
    let experiment = json!({"arms": arms, "state": "running"});
    service.put(AUTUMN, &experiment).is(201).await;
    let request = |customer: &str| json!({"customer": customer, "outfit": ["a-00134", null], "k": 3, "filters": {"types": {"1": ["coat"]}}});
    let mut seen = [0, 0];
    let mut compared = String::new();
    for customer in customers(20) {
        let answer = service.ask_ok("/complete", &request(&customer)).await;
        let with_coats = answer["arm"] == "autumn/coats";
        if with_coats {
            compared.clone_from(&customer);
        }
        let found = answer["blanks"][0]["suggestions"].as_array().unwrap().len();
        assert_eq!(found > 0, with_coats, "{answer}");
        seen[usize::from(with_coats)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 2), "{seen:?}");
    // What a change of the profile does is shown beside the same arm's answer.
    let stylist = service.signed_in(Role::Stylist).await;
    let address = format!("/studio?customer={compared}&slot=a-00134&slot=&type=1:coat&if.age=34");
    let html = stylist.page(&address).await;
    assert!(html.contains("from ") || html.contains("unchanged"), "{html}");
    assert!(!html.contains("was excluded"), "{html}");
    // Who is held out from all rules is in no experiment on rules.
    service.put("/holdout", &json!({"share": 0.5})).await;
    let mut held_out = 0;
    for customer in customers(20) {
        let answer = service.ask_ok("/complete", &request(&customer)).await;
        if answer["held_out"] == true {
            assert_eq!(answer["arm"], Value::Null);
            held_out += 1;
        }
    }
    assert!(held_out > 2);
    assert_eq!(service.patch_experiment(&json!({"state": "shipped", "winner": "coats"}), None).await.0, 200);
    assert_eq!(service.json("/rules/no-coats").await["state"], "off");
    let actions: Vec<String> = service.log(2).await.iter().map(|entry| entry.action.clone()).collect();
    assert_eq!(actions, ["experiment.put", "rule.put"]);
    assert_eq!(service.json("/routing").await, json!({"default_method": null}));
}

#[apply(on_sqlite)]
async fn an_experiment_goes_from_draft_to_shipped_and_not_back(Demo(service): Demo) {
    let with = |name: &str, value: Value| {
        let mut body = json!({"arms": arms()});
        body[name] = value;
        body
    };
    for (body, pointer) in [
        (json!({"arms": []}), "/arms"),
        (json!({"arms": [{"name": "a b", "share": 1}, {"name": "b", "share": 1}]}), "/arms/0/name"),
        (json!({"arms": [{"name": "a", "share": 1}, {"name": "a", "share": 0}]}), "/arms/1/name"),
        (json!({"arms": [{"name": "a", "share": 1}, {"name": "b", "share": 0}]}), "/arms/1/share"),
        (json!({"arms": [["a", 1]]}), "/arms/0"),
        (with("share", json!(101)), "/share"),
        (with("effect", json!(0)), "/effect"),
        (with("metric", json!("clicks")), "/metric"),
        (with("winner", json!("new")), "/winner"),
        (with("state", json!("stopped")), "/state"),
        (with("name", json!("winter")), "/name"),
        (
            json!({"arms": [{"name": "a", "method": "bert", "share": 1}, {"name": "b", "share": 1}], "state": "running"}),
            "/arms/0/method",
        ),
        (
            json!({"arms": [{"name": "a", "share": 1}, {"name": "b", "share": 1, "without_rules": ["x"]}], "state": "running"}),
            "/arms/1/without_rules",
        ),
    ] {
        let answer = service.put(AUTUMN, &body).await;
        assert_eq!(answer.status(), 422, "{body}");
        let problem: Value = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    assert_eq!(service.json("/experiments").await, json!({"experiments": []}));
    assert_eq!(service.patch_experiment(&json!({"share": 3}), None).await.0, 404);

    let draft = json!({"arms": arms()});
    service.put(AUTUMN, &draft).is(201).await;
    service.delete(AUTUMN).is(204).await;
    service.put(AUTUMN, &with("state", json!("running"))).is(201).await;
    let refused = service.delete(AUTUMN).await;
    assert_eq!(refused.status(), 422, "it has begun");
    let (status, problem) = service.patch_experiment(&json!({"effect": 0.2}), None).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/arms")));
    // The service says when it ran.
    let (status, _) = service.patch_experiment(&json!({"started_at": null, "note": "x"}), None).await;
    assert_eq!(status, 200);
    assert!(service.json(AUTUMN).await["started_at"].is_string());
    assert_eq!(service.patch_experiment(&json!({"state": "stopped"}), None).await.0, 200);
    for (change, pointer) in [
        (json!({"state": "running"}), "/state"),
        (json!({"state": "shipped"}), "/winner"),
        (json!({"state": "shipped", "winner": "old"}), "/winner"),
    ] {
        let (status, problem) = service.patch_experiment(&change, None).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!(pointer)), "{change}");
    }
    let shipped = json!({"state": "shipped", "winner": "today"});
    assert_eq!(service.patch_experiment(&shipped, None).await.0, 200);
    assert_eq!(service.patch_experiment(&shipped, None).await.0, 200, "the same again is no change");
    assert_eq!(service.patch_experiment(&json!({"note": "later"}), None).await.0, 422);
}

/// Reports two completions for each of `n` customers in the arm `new` and in the arm `today`. One of three, or `accepts` of ten, accepts; the
/// first of the arm `new` buy, and the first of these send it back.
async fn react(service: &Service, all: &[String], accepts: usize) {
    let (mut feedback, mut events) = (Vec::new(), Vec::new());
    for (number, customer) in all.iter().enumerate() {
        let arm = if number % 2 == 0 { "autumn/today" } else { "autumn/new" };
        for completion in 0..2 {
            let ticket = service.state.tickets().issue(&suggested("gsu", Some(arm)));
            let event = |kind: &str, article: &str| {
                json!({"id": format!("{customer} {completion} {kind} {article}"), "completion_id": ticket, "kind": kind, "slot": 1,
                    "article": article, "customer": customer})
            };
            feedback.extend([event("shown", "a-7"), event("shown", "a-3")]);
            let least = if number % 2 == 0 { 3 } else { accepts };
            if number / 2 % 10 < least {
                // Another program knows no customer; the suggestion's counts.
                let mut accepted = event("accepted", "a-7");
                accepted["customer"] = Value::Null;
                feedback.push(accepted);
            }
            if number % 2 == 1 && number < 10 && completion == 0 {
                let sale = |kind: &str, value: f64| {
                    json!({"id": format!("{customer} {kind}"), "kind": kind, "customer": customer, "article": "a-3",
                        "order": customer, "value": value, "ticket": ticket})
                };
                events.push(sale("bought", 50.0));
                if number == 1 {
                    events.push(sale("returned", 50.0));
                }
            }
        }
    }
    for part in feedback.chunks(1000) {
        let answers = service.ask_ok("/feedback", &json!(part)).await;
        assert!(
            answers.as_array().is_none_or(|all| all.iter().all(|one| one["recorded"] == true)),
            "{answers}"
        );
    }
    for answer in service.ask_ok("/events", &json!(events)).await.as_array().unwrap() {
        assert_eq!(
            (&answer["recorded"], &answer["attribution"]),
            (&json!(true), &json!("ticket")),
            "{answer}"
        );
    }
}

/// The page reports with the ticket, and the order system without: in either order that is one purchase, and its return takes
/// back that it was accepted.
#[apply(contract)]
async fn a_purchase_that_is_reported_twice_is_one(Demo(service): Demo) {
    service.put(AUTUMN, &json!({"arms": arms(), "state": "running"})).await;
    let all = customers(2);
    for (number, customer) in all.iter().enumerate() {
        let ticket = service.state.tickets().issue(&suggested("gsu", Some("autumn/new")));
        let feedback = |kind: &str| {
            json!({"id": format!("{customer} {kind}"), "completion_id": ticket, "kind": kind, "slot": 1, "article": "a-7",
                "customer": customer})
        };
        let event = |kind: &str| {
            json!([{"id": format!("{customer} {kind} order"), "kind": kind, "customer": customer, "article": "a-7",
                "order": customer, "value": 50.0}])
        };
        service.ask_ok("/feedback", &json!([feedback("shown"), feedback("accepted")])).await;
        if number == 0 {
            service.ask_ok("/feedback", &feedback("bought")).await;
        }
        let answer = service.ask_ok("/events", &event("bought")).await;
        assert_eq!(answer[0]["attribution"], "window", "{answer}");
        if number == 1 {
            service.ask_ok("/feedback", &feedback("bought")).await;
        }
        let count = number + 1;
        let arm = service.json(&format!("{AUTUMN}/figures")).await["arms"][1].clone();
        let expected = json!({"arm": "new", "customers": count, "completions": count, "shown": count, "accepted": 1,
            "bought": count, "returned": number, "kept": 0, "revenue": 50.0});
        assert_eq!(arm, expected);
        service.ask_ok("/events", &event("returned")).await;
        let arm = service.json(&format!("{AUTUMN}/figures")).await["arms"][1].clone();
        assert_eq!(
            (&arm["accepted"], &arm["returned"], &arm["revenue"]),
            (&json!(0), &json!(count), &json!(0.0)),
            "{arm}"
        );
    }
}

#[apply(contract)]
async fn figures_are_by_customer_and_decide(Demo(service): Demo) {
    service.put(AUTUMN, &json!({"arms": arms(), "state": "running"})).await;
    let none = service.json(&format!("{AUTUMN}/figures")).await;
    assert_eq!(
        (&none["decision"]["state"], &none["arms"][0]["customers"]),
        (&json!("collecting"), &json!(0))
    );
    let all = customers(300);
    react(&service, &all, 6).await;
    let figures = service.json(&format!("{AUTUMN}/figures")).await;
    let counts = |arm: &str, accepted: u32, bought: u32, returned: u32, revenue: f64| {
        json!({"arm": arm, "customers": 150, "completions": 300, "shown": 600, "accepted": accepted, "bought": bought,
            "returned": returned, "kept": 0, "revenue": revenue})
    };
    assert_eq!(figures["arms"], json!([counts("today", 90, 0, 0, 0.0), counts("new", 180, 5, 1, 200.0)]));
    assert_eq!(figures["decision"], json!({"state": "winner", "winner": "new"}), "{figures}");
    assert_eq!(figures["is_split_broken"], false);
    let accepted = &figures["differences"][0];
    assert_eq!(
        (&accepted["metric"], &accepted["control"], &accepted["value"]),
        (&json!("accepted"), &json!(0.3), &json!(0.6))
    );
    let [low, value, high] =
        ["low", "value", "high"].map(|end| accepted["difference"][end].as_f64().unwrap());
    // Both completions of a customer end alike: 150 customers in each arm. Their standard error is that of shares of 150.
    let error = ((0.3 * 0.7 + 0.6 * 0.4) / 149.0_f64).sqrt();
    assert!((value - 0.3).abs() < 1e-12 && low > 0.0 && (high + low - 0.6).abs() < 1e-12, "{accepted}");
    let errors = (high - value) / error;
    assert!((3.0..4.5).contains(&errors), "an interval for every look reaches {errors} errors");
    assert_eq!(figures["differences"].as_array().unwrap().len(), 4);
    assert!(
        figures["differences"][3]["difference"]["low"].as_f64().unwrap() < 0.0,
        "four of 150 bought something"
    );

    // The rows stand for customers without their ids; the notebook finds the same in them.
    let csv = service.get(&format!("{AUTUMN}/customers")).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let csv = csv.text();
    assert_eq!(csv.lines().count(), 301);
    assert_eq!(
        csv.lines().next(),
        Some("customer,arm,completions,shown,accepted,bought,returned,kept,revenue")
    );
    assert_eq!(csv.lines().filter(|line| line.ends_with(",new,2,4,2,1,0,0,50")).count(), 4, "{csv}");
    assert!(!csv.contains(&all[0]));
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
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found = format!("new - today: accepted {value:.6} ({low:.6} to {high:.6})");
    assert!(said.contains(&found), "{found} in {said}");
    let parquet = service.get(&format!("{AUTUMN}/customers?format=parquet")).await;
    assert_eq!(parquet.header("content-type"), "application/vnd.apache.parquet");
    assert!(parquet.body.starts_with(b"PAR1"));

    // A customer's export has the part, and erasing it takes it out.
    let export = service.json(&format!("/customers/{}/export", all[1])).await;
    assert_eq!(
        export["experiments"],
        json!([{"arm": "autumn/new", "completions": 2, "shown": 4, "accepted": 2, "bought": 1,
        "returned": 1, "kept": 0, "revenue": 0.0}])
    );
    service.delete(&format!("/customers/{}", all[1])).is(204).await;
    let figures = service.json(&format!("{AUTUMN}/figures")).await;
    assert_eq!((&figures["arms"][1]["customers"], &figures["arms"][1]["bought"]), (&json!(149), &json!(4)));

    let analyst = service.signed_in(Role::Analyst).await;
    let html = analyst.page("/operations/experiments/autumn").await;
    assert!(html.contains("new wins: judged by accepted, it is better than today."), "{html}");
    assert!(html.contains("<td class=\"number when\">+0.297 ("), "{html}");
    service.get("/experiments/winter/figures").is(404).await;
}

#[apply(on_sqlite)]
async fn a_broken_split_shows_before_anything_else(Demo(service): Demo) {
    service.put(AUTUMN, &json!({"arms": arms(), "state": "running"})).await;
    let mut feedback = Vec::new();
    for (number, customer) in customers(300).iter().enumerate() {
        let arm = if number % 2 == 0 { "autumn/today" } else { "autumn/new" };
        // Of the arm `new`, two thirds never report.
        if number % 2 == 1 && number % 6 != 1 {
            continue;
        }
        let ticket = service.state.tickets().issue(&suggested("gsu", Some(arm)));
        feedback.push(json!({"id": format!("{number}"), "completion_id": ticket, "kind": "shown", "slot": 1, "article": "a-7",
            "customer": customer}));
    }
    service.ask_ok("/feedback", &json!(feedback)).await;
    let figures = service.json(&format!("{AUTUMN}/figures")).await;
    assert_eq!(
        (&figures["arms"][0]["customers"], &figures["arms"][1]["customers"]),
        (&json!(150), &json!(50))
    );
    assert_eq!(
        (&figures["decision"]["state"], &figures["is_split_broken"]),
        (&json!("broken-split"), &json!(true))
    );
}

#[apply(on_sqlite)]
async fn an_arm_beyond_a_limit_stops_the_experiment(Demo(service): Demo) {
    let rule = json!({"effect": "exclude", "articles": {"types": ["coat"]}, "state": "active"});
    service.put("/rules/no-coats", &rule).await;
    let arms =
        json!([{"name": "today", "without_rules": ["no-coats"], "share": 1}, {"name": "new", "share": 1}]);
    let experiment = json!({"arms": arms, "state": "running", "stop_if": {"latency_ms": 600_000, "errors": 0.0, "empty": 0.05}});
    service.put(AUTUMN, &experiment).is(201).await;
    let all = customers(40);
    let mut asked = 0;
    let guard = async || {
        guard::stop_beyond_limits(&service.store, &service.releases, SystemTime::now().into()).await.unwrap();
        service.json(AUTUMN).await
    };
    while asked < 480 {
        for customer in &all {
            service
                .ask_ok(
                    "/complete",
                    &json!({"customer": customer, "outfit": [null], "filters": {"types": {"0": ["coat"]}}}),
                )
                .await;
            asked += 1;
        }
        if asked == 200 {
            assert_eq!(guard().await["state"], "running", "too few answers");
        }
    }
    let stopped = guard().await;
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    let reason = stopped["ended_because"].as_str().unwrap();
    assert!(
        reason.starts_with("100.0 % of the ")
            && reason.ends_with(" blanks had no suggestion in arm new; the limit is 5.0 %"),
        "{reason}"
    );
    assert_eq!(service.arm_of(&all[0]).await.0, Value::Null);
    let entries = service.store.audit().list(None, 1).await.unwrap();
    assert_eq!((entries[0].actor, &*entries[0].action), (Actor::Service, "experiment.put"));
    let html = service.signed_in(Role::Analyst).await.page("/operations/experiments/autumn").await;
    assert!(html.contains("had no suggestion in arm new"), "{html}");
}
