use std::time::SystemTime;

use atelier::completion::tickets::{Suggested, SuggestedFor};
use atelier_core::domain::ArticleId;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Demo, Service};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

const JSON: &str = "application/json";

/// Of a release that is not served, with two suggestions for the blank in slot 1.
pub fn suggested(method: &str, arm: Option<&str>) -> Suggested {
    let article = |id| ArticleId::new(id).unwrap();
    Suggested {
        release: "spring".into(),
        method: method.into(),
        arm: arm.map(Into::into),
        at: SystemTime::now().into(),
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

fn completion(service: &Service) -> String {
    service.state.tickets().issue(&suggested("gsu", None))
}

pub fn event(completion: &str, id: &str, kind: &str) -> Value {
    json!({"id": id, "completion_id": completion, "kind": kind, "slot": 1, "article": "a-7"})
}

pub async fn report(service: &Service, body: &Value) -> (u16, Value) {
    let answer = service.post("/feedback", JSON, body.to_string()).await;
    (answer.status(), answer.json())
}

#[apply(on_sqlite)]
async fn an_event_counts_once(service: Service) {
    let id = completion(&service);
    let first = event(&id, "e-1", "accepted");
    assert_eq!(report(&service, &first).await, (200, json!({"id": "e-1", "recorded": true})));
    assert_eq!(report(&service, &first).await, (200, json!({"id": "e-1", "recorded": false})));
    let (status, problem) = report(&service, &event(&id, "e-1", "rejected")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")));
    assert_eq!(problem["detail"], "that feedback id was used for another event; use a new id for each event");
    let stored = service.store.feedback().for_completion(&id).await.unwrap();
    assert_eq!(stored.len(), 2, "accepted, and therefore shown");
    assert_eq!((stored[0].release.as_str(), stored[0].method.as_str(), stored[0].rank), ("spring", "gsu", 1));
}

#[apply(on_sqlite)]
async fn invalid_events_are_refused_with_pointers(service: Service) {
    let id = completion(&service);
    for (field, value, status, pointer) in [
        ("slot", json!(2), 422, Some("/slot")),
        ("slot", json!(-1), 422, Some("/slot")),
        ("slot", json!(7), 422, Some("/slot")),
        ("slot", json!(5_000_000_000_u64), 422, Some("/slot")),
        ("rank", json!(2), 422, Some("/rank")),
        ("rank", json!(0), 422, Some("/rank")),
        ("kind", json!("seen"), 422, Some("/kind")),
        ("article", json!("a\u{0}"), 422, Some("/article")),
        ("customer", json!("nobody"), 422, Some("/customer")),
        ("id", json!(""), 422, Some("/id")),
        ("colour", json!("red"), 422, Some("/colour")),
        ("completion_id", json!("made-up"), 404, None),
        ("completion_id", json!(""), 404, None),
    ] {
        let mut body = event(&id, "e", "shown");
        body[field] = value;
        let (found, problem) = report(&service, &body).await;
        assert_eq!(found, status, "{field}: {problem}");
        assert_eq!(problem["errors"][0]["pointer"].as_str(), pointer, "{field}: {problem}");
    }
    assert_eq!(service.store.feedback().counts().await.unwrap(), []);
}

#[apply(on_sqlite)]
async fn each_event_of_a_batch_has_its_own_answer(db: TestDatabase) {
    let limits = atelier::config::Limits { feedback_events: 4, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let id = completion(&service);
    let mut unknown = event(&id, "e-2", "shown");
    unknown["completion_id"] = "made-up".into();
    let body = json!([event(&id, "e-1", "shown"), unknown, 7, event(&id, "e-1", "shown")]);
    let answer = service.post("/feedback", JSON, body.to_string()).await;
    let request = answer.header("x-request-id").to_owned();
    assert_eq!(answer.status(), StatusCode::OK);
    let items: Value = answer.json();
    assert_eq!(items[0], json!({"id": "e-1", "recorded": true}));
    let problem = &items[1];
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("not-found")));
    assert_eq!(problem["request_id"], request);
    assert_eq!(items[2]["errors"][0]["detail"], "expected an object, found a number");
    assert_eq!(items[3], json!({"id": "e-1", "recorded": false}));
    assert_eq!(report(&service, &json!([])).await, (200, json!([])));
    let (status, problem) = report(&service, &json!([1, 2, 3, 4, 5])).await;
    assert_eq!(status, 422);
    assert_eq!(problem["detail"], "a list has at most 4 events, found 5; split it");
}

/// A hundred events are one transaction.
#[apply(contract)]
async fn a_long_list_is_recorded_without_its_bad_events(service: Service) {
    let id = completion(&service);
    let mut events: Vec<Value> = (0..250).map(|n| event(&id, &format!("e-{n}"), "shown")).collect();
    events[20]["customer"] = "nobody".into();
    events[30] = event(&id, "e-0", "accepted");
    events[40]["slot"] = 2.into();
    events[249]["kind"] = "bought".into();
    let (status, items) = report(&service, &json!(events)).await;
    assert_eq!((status, items.as_array().unwrap().len()), (200, 250));
    for (place, item) in items.as_array().unwrap().iter().enumerate() {
        match place {
            20 => assert_eq!(item["errors"][0]["pointer"], "/customer", "{item}"),
            30 => assert_eq!(item["code"], "conflict", "{item}"),
            40 => assert_eq!(item["errors"][0]["pointer"], "/slot", "{item}"),
            _ => {
                let is_first = [0, 249].contains(&place);
                assert_eq!(*item, json!({"id": format!("e-{place}"), "recorded": is_first}));
            }
        }
    }
    let counts = service.store.feedback().counts().await.unwrap();
    assert_eq!(
        (counts[0].outcomes.shown, counts[0].outcomes.sold.bought, counts[0].outcomes.accepted),
        (1, 1, 0)
    );
    assert_eq!(service.store.feedback().for_completion(&id).await.unwrap().len(), 247);
}

#[apply(on_sqlite)]
async fn counts_have_intervals(service: Service) {
    assert_eq!(service.json("/feedback/counts").await, json!({"items": []}));
    let mut events = Vec::new();
    for n in 0..10 {
        events.push(event(&completion(&service), &format!("s-{n}"), "shown"));
    }
    let last = events.last().unwrap()["completion_id"].as_str().unwrap().to_owned();
    events.push(event(&last, "a-0", "accepted"));
    events.push(event(&last, "b-0", "bought"));
    // Other programs report the same.
    events.push(event(&last, "b-1", "bought"));
    events.push(event(&last, "a-1", "accepted"));
    let other = service.state.tickets().issue(&suggested("none", Some("autumn/none")));
    events.push(event(&other, "r-0", "rejected"));
    assert_eq!(report(&service, &Value::Array(events)).await.0, 200);
    let counts = service.json("/feedback/counts").await;
    let gsu = &counts["items"][0];
    assert_eq!(
        (&gsu["release"], &gsu["method"], &gsu["arm"]),
        (&json!("spring"), &json!("gsu"), &Value::Null)
    );
    assert_eq!((&gsu["shown"], &gsu["accepted"], &gsu["bought"]), (&json!(10), &json!(1), &json!(1)));
    assert_eq!(gsu["acceptance"]["value"], 0.1);
    let bound = |name: &str| gsu["acceptance"][name].as_f64().unwrap();
    assert!(bound("low") < 0.1 && bound("high") > 0.1, "{gsu}");
    let none = json!({"release": "spring", "method": "none", "arm": "autumn/none", "shown": 1, "accepted": 0,
                      "rejected": 1, "bought": 0});
    for (name, value) in none.as_object().unwrap() {
        assert_eq!(counts["items"][1][name], *value, "{name}: rejected, and therefore shown");
    }
    let outfits = service.get("/feedback/outfits.jsonl").await;
    assert_eq!(outfits.header("content-type"), "application/x-ndjson");
    assert_eq!(outfits.text(), "", "no customer is known");
}

#[apply(on_sqlite)]
async fn erasing_removes_the_customer_from_feedback(service: Service) {
    service.put("/customers/c", &json!({"features": {"age": 28}})).await;
    let mut body = event(&completion(&service), "e", "bought");
    body["customer"] = "c".into();
    assert_eq!(report(&service, &body).await.0, 200);
    let export = service.json("/customers/c/export").await;
    assert_eq!(export["customer"], json!({"id": "c", "features": {"age": 28}}));
    assert_eq!(export["outfits"], json!([]));
    let feedback = export["feedback"].as_array().unwrap();
    // Both are of the same moment, so their order is not defined.
    let mut events: Vec<_> = feedback.iter().map(|event| (event["kind"].as_str().unwrap(), event)).collect();
    events.sort_unstable_by_key(|(kind, _)| *kind);
    assert_eq!([events[0].0, events[1].0], ["bought", "shown"]);
    assert_eq!(events[0].1["article"], "a-7");
    assert_eq!(service.delete("/customers/c").await.status(), StatusCode::NO_CONTENT);
    let stored =
        service.store.feedback().for_completion(body["completion_id"].as_str().unwrap()).await.unwrap();
    assert_eq!(stored.len(), 2, "it still counts");
    assert!(stored.iter().all(|event| event.customer.is_none()), "{stored:?}");
    assert_eq!(service.get("/customers/c/export").await.status(), StatusCode::NOT_FOUND);
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
        let id = service.state.tickets().issue(&suggested);
        assert!(id.len() <= 2400, "{}", id.len());
        let body = json!({"id": format!("e-{number}"), "completion_id": id, "kind": "shown", "slot": 7,
                          "article": "a-019"});
        let (status, taken) = report(&service, &body).await;
        assert_eq!((status, &taken["recorded"]), (200, &json!(true)), "{number}: {taken}");
    }
}

#[apply(contract)]
async fn suggestions_and_feedback_become_training_data(Demo(service): Demo) {
    let outfit = service.store.outfits().first(1).await.unwrap().remove(0).outfit;
    let customer = outfit.customer.as_str();
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    slots[1] = Value::Null;
    let asked = json!({"customer": customer, "outfit": slots, "k": 3});
    let completed = service.post("/complete", JSON, asked.to_string()).await;
    let completed: Value = completed.json();
    let suggested = &completed["blanks"][0]["suggestions"];
    let second = suggested[1]["article"]["id"].as_str().unwrap();
    let event = |id: &str, article: &str| {
        json!({"id": id, "completion_id": completed["completion_id"], "kind": "accepted", "slot": 1,
               "article": article, "customer": customer})
    };
    let (status, taken) = report(&service, &event("e-1", second)).await;
    assert_eq!((status, &taken["recorded"]), (200, &json!(true)), "{taken}");
    let stored = service.store.feedback().for_completion(completed["completion_id"].as_str().unwrap()).await;
    let stored = stored.unwrap().remove(0);
    assert_eq!(stored.rank, 2, "the rank comes from the ticket");
    assert_eq!(
        (json!(stored.release), json!(stored.method)),
        (completed["release"].clone(), completed["method"].clone())
    );

    let mut wrong = event("e-2", second);
    wrong["rank"] = json!(1);
    let (status, problem) = report(&service, &wrong).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/rank")));
    // It is in the outfit, so it cannot have been suggested.
    let (status, problem) = report(&service, &event("e-3", outfit.articles()[0].as_str())).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/article")), "{problem}");

    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let line: Value = serde_json::from_str(&lines).expect("one line");
    assert_eq!(line["customer"], customer);
    let mut expected: Vec<String> = outfit.articles().iter().map(ToString::to_string).collect();
    second.clone_into(&mut expected[1]);
    let mut found: Vec<String> = serde_json::from_value(line["articles"].clone()).unwrap();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "the accepted article fills the blank");
    let again = service.post("/outfits/bulk", "application/x-ndjson", lines).await;
    assert_eq!(again.status(), 200, "an export can be imported");
}
