use atelier::{
    domain::Method,
    service::completion::{Secret, Ticket},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{SECRET, Service};
use crate::harness::{TestDatabase, contracts};

contracts!(
    an_event_counts_once,
    invalid_events_are_refused_with_pointers,
    each_event_of_a_batch_has_its_own_answer,
    counts_have_intervals,
    erasing_removes_the_customer_from_feedback,
    long_completion_ids_are_kept,
    suggestions_and_feedback_become_training_data,
);

const JSON: &str = "application/json";

/// The release is not served, so the caller says the ranks.
fn completion(method: Method, arm: Option<&str>) -> String {
    let ticket = Ticket {
        release: "spring".into(),
        vocabulary: Some([0; 4]),
        method,
        arm: arm.map(Into::into),
        at: 1_790_000_000_000,
        slots: vec![Some(0), None, Some(2)],
        blanks: vec![(1, vec![7, 3])],
    };
    ticket.seal(&Secret::new(SECRET))
}

fn event(id: &str, kind: &str) -> Value {
    json!({"id": id, "completion_id": completion(Method::Gsu, None), "kind": kind, "slot": 1,
           "article": "a-7", "rank": 1})
}

async fn report(service: &Service, body: &Value) -> (u16, Value) {
    let answer = service.post("/feedback", JSON, body.to_string()).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn an_event_counts_once(db: TestDatabase) {
    let service = Service::start(&db).await;
    let first = event("e-1", "accepted");
    assert_eq!(report(&service, &first).await, (200, json!({"id": "e-1", "recorded": true})));
    assert_eq!(report(&service, &first).await, (200, json!({"id": "e-1", "recorded": false})));
    let (status, problem) = report(&service, &event("e-1", "rejected")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")));
    assert_eq!(problem["detail"], "that feedback id was used for another event; use a new id for each event");
    let id = completion(Method::Gsu, None);
    let stored = service.store.feedback().for_completion(&id).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].release.as_str(), stored[0].method.as_str(), stored[0].rank), ("spring", "gsu", 1));
}

async fn invalid_events_are_refused_with_pointers(db: TestDatabase) {
    let service = Service::start(&db).await;
    for (field, value, status, pointer) in [
        ("slot", json!(2), 422, Some("/slot")),
        ("slot", json!(-1), 422, Some("/slot")),
        ("rank", Value::Null, 422, Some("/rank")),
        ("rank", json!(0), 422, Some("/rank")),
        ("kind", json!("seen"), 422, Some("/kind")),
        ("article", json!("a\u{0}"), 422, Some("/article")),
        ("customer", json!("nobody"), 422, Some("/customer")),
        ("id", json!(""), 422, Some("/id")),
        ("colour", json!("red"), 422, Some("/colour")),
        ("completion_id", json!("made-up"), 404, None),
        ("completion_id", json!(""), 404, None),
    ] {
        let mut body = event("e", "shown");
        body[field] = value;
        let (found, problem) = report(&service, &body).await;
        assert_eq!(found, status, "{field}: {problem}");
        assert_eq!(problem["errors"][0]["pointer"].as_str(), pointer, "{field}: {problem}");
    }
    assert_eq!(service.store.feedback().counts().await.unwrap(), []);
}

async fn each_event_of_a_batch_has_its_own_answer(db: TestDatabase) {
    let limits = atelier::config::Limits { feedback_events: 4, ..Default::default() };
    let service = Service::start_with(&db, limits).await;
    let mut unknown = event("e-2", "shown");
    unknown["completion_id"] = "made-up".into();
    let body = json!([event("e-1", "shown"), unknown, 7, event("e-1", "shown")]);
    let answer = service.post("/feedback", JSON, body.to_string()).await;
    let request = super::header(&answer, "x-request-id").to_owned();
    assert_eq!(answer.status(), StatusCode::OK);
    let items: Value = answer.json().await.unwrap();
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

async fn counts_have_intervals(db: TestDatabase) {
    let service = Service::start(&db).await;
    assert_eq!(service.json("/feedback/counts").await, json!({"items": []}));
    let mut events = Vec::new();
    for n in 0..10 {
        events.push(event(&format!("s-{n}"), "shown"));
    }
    events.push(event("a-0", "accepted"));
    events.push(event("b-0", "bought"));
    let mut other = event("r-0", "rejected");
    other["completion_id"] = completion(Method::None, Some("autumn/none")).into();
    events.push(other);
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
    let none = json!({"release": "spring", "method": "none", "arm": "autumn/none", "shown": 0, "accepted": 0,
                      "rejected": 1, "bought": 0, "acceptance": null});
    assert_eq!(counts["items"][1], none);
    let outfits = service.get("/feedback/outfits.jsonl").await;
    assert_eq!(super::header(&outfits, "content-type"), "application/x-ndjson");
    assert_eq!(outfits.text().await.unwrap(), "", "of a release that is not served");
}

async fn erasing_removes_the_customer_from_feedback(db: TestDatabase) {
    let service = Service::start(&db).await;
    service.put("/customers/c", &json!({"features": {"age": 28}})).await;
    let mut body = event("e", "bought");
    body["customer"] = "c".into();
    assert_eq!(report(&service, &body).await.0, 200);
    let export = service.json("/customers/c/export").await;
    assert_eq!(export["customer"], json!({"id": "c", "features": {"age": 28}}));
    assert_eq!(export["outfits"], json!([]));
    assert_eq!(export["feedback"][0]["kind"], "bought");
    assert_eq!(export["feedback"][0]["article"], "a-7");
    assert_eq!(service.delete("/customers/c").await.status(), StatusCode::NO_CONTENT);
    let stored =
        service.store.feedback().for_completion(body["completion_id"].as_str().unwrap()).await.unwrap();
    assert_eq!((stored.len(), &stored[0].customer), (1, &None), "it still counts");
    assert_eq!(service.get("/customers/c/export").await.status(), StatusCode::NOT_FOUND);
}

/// Seven blanks with twenty suggestions each, out of a large catalogue: the largest ticket.
async fn long_completion_ids_are_kept(db: TestDatabase) {
    let service = Service::start(&db).await;
    let blanks = (1..8).map(|slot| (slot, (0..20).map(|n| 2_000_000 + n).collect())).collect();
    let slots = std::iter::once(Some(1)).chain([None; 7]).collect();
    let release = "r".repeat(60);
    let ticket =
        Ticket { release, vocabulary: Some([0; 4]), method: Method::Gsu, arm: None, at: 0, slots, blanks };
    let mut body = event("e", "shown");
    body["completion_id"] = ticket.seal(&Secret::new(SECRET)).into();
    assert_eq!(report(&service, &body).await, (200, json!({"id": "e", "recorded": true})));
}

async fn suggestions_and_feedback_become_training_data(db: TestDatabase) {
    let service = Service::demo(&db).await;
    let outfit = service.store.outfits().first(1).await.unwrap().remove(0).outfit;
    let customer = outfit.customer.as_str();
    let mut slots: Vec<Value> = outfit.articles().iter().map(|id| json!(id.as_str())).collect();
    slots[1] = Value::Null;
    let asked = json!({"customer": customer, "outfit": slots, "k": 3});
    let completed = service.post("/complete", JSON, asked.to_string()).await;
    let completed: Value = completed.json().await.unwrap();
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

    // A release of the same name that was rebuilt on other articles: its indices differ.
    let release = "demo".to_owned();
    let (slots, blanks) = (vec![Some(0), None], vec![(1, vec![7])]);
    let other =
        Ticket { release, vocabulary: Some([0; 4]), method: Method::Gsu, arm: None, at: 0, slots, blanks };
    let mut of_other = event("e-4", second);
    of_other["completion_id"] = other.seal(&Secret::new(SECRET)).into();
    let (status, problem) = report(&service, &of_other).await;
    let (pointer, detail) = (&problem["errors"][0]["pointer"], problem["errors"][0]["detail"].as_str());
    assert_eq!((status, pointer), (422, &json!("/rank")), "{problem}");
    assert!(detail.unwrap().contains("\"demo\" is no longer live in that version"), "{problem}");
    of_other["rank"] = json!(1);
    assert_eq!(report(&service, &of_other).await.0, 200, "the caller's rank");

    let lines = service.get("/feedback/outfits.jsonl").await.text().await.unwrap();
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
