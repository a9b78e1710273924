use std::time::SystemTime;

use atelier::completion::tickets::{Suggested, SuggestedFor};
use atelier_core::domain::ArticleId;
use serde_json::{Value, json};

use crate::harness::{Service, TestDatabase, apply, contract, json::with, pick, with_customers};

/// Of a release that is not served, with two suggestions for the blank in slot 1.
pub fn suggested(method: &str, arm: Option<&str>) -> Suggested {
    let article = |id| ArticleId::new(id).unwrap();
    Suggested {
        release: "spring".into(),
        method: method.into(),
        arm: arm.map(Into::into),
        at: SystemTime::now().into(),
        customer: None,
        is_shared: false,
        held_out: false,
        outfit: vec![Some(article("a-0")), None, Some(article("a-2"))],
        blanks: vec![SuggestedFor {
            slot: 1,
            articles: vec![article("a-7"), article("a-3")],
            in_sets: Vec::new(),
            rules: Vec::new(),
        }],
    }
}

/// The id of a completion with those suggestions by `gsu`.
pub fn completion(service: &Service) -> String {
    service.state.tickets().issue(suggested("gsu", None))
}

pub fn event(completion: &str, id: &str, kind: &str) -> Value {
    json!({"id": id, "completion_id": completion, "kind": kind, "slot": 1, "article": "a-7"})
}

pub async fn report(service: &Service, body: &Value) -> (u16, Value) {
    service.ask("/feedback", body).await
}

#[apply(contract)]
async fn an_event_counts_once(service: Service) {
    let id = completion(&service);
    let first = event(&id, "e-1", "accepted");
    // Also from an impatient client.
    let (one, other) = tokio::join!(report(&service, &first), report(&service, &first));
    assert_ne!(one.1["recorded"], other.1["recorded"], "one of them is the first: {one:?} {other:?}");
    assert_eq!(report(&service, &first).await, (200, json!({"id": "e-1", "recorded": false})));
    for (field, value) in [("kind", "rejected"), ("article", "a-3")] {
        let another = with(first.clone(), json!({field: value}));
        let problem = service.send("/feedback", another).await.assert_problem(409, &[]);
        let detail = "that feedback id was used for another event; use a new id for each event";
        assert_eq!(problem["detail"], detail, "{field}");
    }
    let stored = service.store.feedback().for_training(&id).await.unwrap();
    assert_eq!(stored.len(), 2, "accepted, and therefore shown");
    assert_eq!((stored[0].release.as_str(), stored[0].method.as_str(), stored[0].rank), ("spring", "gsu", 1));
}

#[apply(contract)]
async fn invalid_events_are_refused_with_pointers(service: Service) {
    let id = completion(&service);
    for (field, value) in [
        ("slot", json!(2)),
        ("slot", json!(-1)),
        ("slot", json!(5_000_000_000_u64)),
        ("rank", json!(2)),
        ("rank", json!(0)),
        ("kind", json!("seen")),
        ("article", json!("a\u{0}")),
        ("customer", json!("nobody")),
        ("id", json!("")),
        ("colour", json!("red")),
        ("completion_id", json!("made-up")),
        ("completion_id", json!("")),
    ] {
        let mut body = event(&id, "e", "shown");
        body[field] = value;
        let answer = service.send("/feedback", &body).await;
        match field {
            "completion_id" => answer.assert_problem(404, &[]),
            _ => answer.assert_problem(422, &[&format!("/{field}")]),
        };
    }
    assert_eq!(service.store.feedback().counts().await.unwrap(), []);
}

/// A hundred events are one transaction.
#[apply(contract)]
async fn a_long_list_is_recorded_without_its_bad_events(db: TestDatabase) {
    let limits = atelier::config::Limits { feedback_events: 250, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let id = completion(&service);
    let mut events: Vec<Value> = (0..250).map(|n| event(&id, &format!("e-{n}"), "shown")).collect();
    events[10] = events[0].clone();
    events[20]["customer"] = "nobody".into();
    events[30] = event(&id, "e-0", "accepted");
    events[40]["slot"] = 2.into();
    events[50] = 7.into();
    events[60] = event("made-up", "e-60", "shown");
    events[249]["kind"] = "bought".into();
    let answer = service.send("/feedback", json!(events)).is(200).await;
    let (items, request) = (answer.json(), answer.header("x-request-id"));
    assert_eq!(items.as_array().unwrap().len(), 250);
    for (place, item) in items.as_array().unwrap().iter().enumerate() {
        match place {
            10 => assert_eq!(*item, json!({"id": "e-0", "recorded": false})),
            20 => assert_eq!(item["errors"][0]["pointer"], "/customer", "{item}"),
            30 => assert_eq!(item["code"], "conflict", "{item}"),
            40 => assert_eq!(item["errors"][0]["pointer"], "/slot", "{item}"),
            50 => assert_eq!(item["errors"][0]["detail"], "expected an object, found a number"),
            60 => assert_eq!(pick(item, "status code request_id"), json!([404, "not-found", request])),
            _ => {
                let is_first = [0, 249].contains(&place);
                assert_eq!(*item, json!({"id": format!("e-{place}"), "recorded": is_first}));
            }
        }
    }
    let found = &service.json("/feedback/counts").await["items"][0];
    assert_eq!(pick(found, "shown bought accepted"), json!([1, 1, 0]));
    assert_eq!(service.store.feedback().for_training(&id).await.unwrap().len(), 244);
    assert_eq!(report(&service, &json!([])).await, (200, json!([])));
    events.push(7.into());
    let (status, problem) = report(&service, &json!(events)).await;
    let detail = "a list has at most 250 events, found 251; split it";
    assert_eq!((status, &problem["detail"]), (422, &json!(detail)));
}

#[apply(contract)]
async fn counts_are_by_release_method_and_arm_and_have_intervals(service: Service) {
    assert_eq!(service.json("/feedback/counts").await, json!({"items": []}));
    let mut events: Vec<Value> =
        (0..10).map(|n| event(&completion(&service), &format!("s-{n}"), "shown")).collect();
    let last = events[9]["completion_id"].as_str().unwrap().to_owned();
    events.push(event(&last, "a-0", "accepted"));
    events.push(event(&last, "b-0", "bought"));
    for (id, method, arm) in [("r-0", "gsu", "autumn/gsu"), ("r-1", "none", "autumn/none")] {
        let ticket = service.state.tickets().issue(suggested(method, Some(arm)));
        events.push(event(&ticket, id, "rejected"));
    }
    service.ask_ok("/feedback", json!(events)).await;
    let counts = service.json("/feedback/counts").await;
    let (gsu, fields) = (&counts["items"][0], "release method arm shown accepted rejected bought");
    assert_eq!(pick(gsu, fields), json!(["spring", "gsu", null, 10, 1, 0, 1]));
    let bound = |name: &str| gsu["acceptance"][name].as_f64().unwrap();
    assert!(gsu["acceptance"]["value"] == 0.1 && bound("low") < 0.1 && bound("high") > 0.1, "{gsu}");
    // Rejected, and therefore shown.
    for (place, method, arm) in [(1, "gsu", "autumn/gsu"), (2, "none", "autumn/none")] {
        let expected = json!(["spring", method, arm, 1, 0, 1, 0]);
        assert_eq!(pick(&counts["items"][place], fields), expected);
    }
    let outfits = service.get("/feedback/outfits.jsonl").await;
    assert_eq!(outfits.header("content-type"), "application/x-ndjson");
    assert_eq!(outfits.text(), "", "no customer is known");
}

/// The largest tickets: seven blanks with twenty suggestions each, and the longest ids.
#[apply(contract)]
async fn long_completion_ids_are_kept(service: Service) {
    let article = |prefix: &str, n: usize| ArticleId::new(format!("{prefix}{n:03}")).unwrap();
    let long = |letter: &str| letter.repeat(125);
    let blank = |slot| SuggestedFor {
        slot,
        articles: (0..20).map(|n| article("a-", n)).collect(),
        in_sets: (0..16).map(|n| article("b-", n)).collect(),
        rules: (0..30).map(|rule| [rule; 6]).collect(),
    };
    for (number, blanks, letter) in [(0, 7, "x"), (1, 1, "x"), (2, 1, "😀")] {
        let visible = 8 - blanks;
        let outfit: Vec<_> = (0..visible).map(|n| Some(article(&long(letter), n))).collect();
        let suggested = Suggested {
            release: "r".repeat(200),
            arm: Some("a".repeat(200)),
            outfit: outfit.into_iter().chain(vec![None; blanks]).collect(),
            blanks: (visible..8).map(blank).collect(),
            ..suggested("gsu", None)
        };
        let id = service.state.tickets().issue(suggested);
        assert!(id.len() <= 2400, "{}", id.len());
        let body = json!({"id": format!("e-{number}"), "completion_id": id, "kind": "shown", "slot": 7,
                          "article": "a-019"});
        let (status, taken) = report(&service, &body).await;
        assert_eq!((status, &taken["recorded"]), (200, &json!(true)), "{number}: {taken}");
    }
}

/// Every blank is filled, by one customer, with the last choice for it, and with no article twice.
#[apply(contract)]
async fn what_one_customer_accepted_for_every_blank_is_an_outfit(service: Service) {
    with_customers(&service.store, &["x", "y"]).await;
    let article = |id: &str| ArticleId::new(id).unwrap();
    let blank = |slot| SuggestedFor {
        slot,
        articles: ["c", "d", "e"].map(article).to_vec(),
        in_sets: Vec::new(),
        rules: Vec::new(),
    };
    for (number, steps) in [
        &[("accepted", "x", 1, "c"), ("shown", "x", 3, "d")][..],
        &[("accepted", "x", 1, "c"), ("bought", "x", 3, "e")],
        &[("accepted", "x", 1, "c"), ("accepted", "x", 1, "d"), ("bought", "x", 3, "e")],
        &[("accepted", "x", 1, "d"), ("rejected", "x", 1, "d"), ("bought", "x", 3, "e")],
        &[("accepted", "x", 1, "c"), ("bought", "y", 3, "e")],
        &[("accepted", "y", 1, "c"), ("accepted", "y", 3, "c"), ("bought", "y", 3, "e")],
    ]
    .into_iter()
    .enumerate()
    {
        let ticket = service.state.tickets().issue(Suggested {
            outfit: vec![Some(article("a")), None, Some(article("b")), None],
            blanks: vec![blank(1), blank(3)],
            ..suggested("gsu", None)
        });
        for (kind, customer, slot, article) in steps {
            let id = format!("{number} {kind} {slot} {article}");
            let event = json!({"id": id, "completion_id": ticket, "kind": kind, "slot": slot, "article": article, "customer": customer});
            assert_eq!(report(&service, &event).await.0, 200, "{event}");
        }
    }
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let outfits = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found: Vec<String> =
        outfits.map(|outfit| pick(&outfit, "customer articles").to_string()).collect();
    found.sort();
    let expected = [r#"["x",["a","b","c","e"]]"#, r#"["x",["a","b","d","e"]]"#, r#"["y",["a","b","c","e"]]"#];
    assert_eq!(found, expected);
}
