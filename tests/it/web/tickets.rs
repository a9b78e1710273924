//! Completion ids: what they remember, for how long, and who can read them.

use std::{fs, path::Path, time::Duration};

use atelier::{
    completion::tickets::{Suggested, SuggestedFor, Tickets},
    config::{Limits, Tickets as Settings},
};
use atelier_core::{
    domain::{ArticleId, CustomerId, Timestamp},
    util::digest,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    Demo, Service, draw_key,
    feedback::{event, report, suggested},
    models,
    releases::copy,
};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

const DAY: Duration = Duration::from_hours(24);
const CUSTOMER: &str = "c-014871";

/// The demo release, and one of other models with the same articles in another order.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&models().join("demo"), &folder.path().join("demo"));
    let next = folder.path().join("next");
    copy(&models().join("demo"), &next);
    let path = next.join("release.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["name"] = "next".into();
    for (name, entry) in manifest["files"].as_object_mut().unwrap() {
        let bytes = rewrite(&next.join(name));
        *entry = json!({"bytes": bytes.len(), "sha256": digest::sha256(&bytes)});
    }
    fs::write(path, manifest.to_string()).unwrap();
    folder
}

/// Reverses the articles, and renames the release in a model's metadata.
fn rewrite(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    if path.ends_with("articles.jsonl") {
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().rev().collect();
        bytes = format!("{}\n", lines.join("\n")).into_bytes();
    } else if path.extension().is_some_and(|extension| extension == "onnx") {
        let name = b"release\x12\x04demo";
        let place = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[place + name.len() - 4..place + name.len()].copy_from_slice(b"next");
    }
    fs::write(path, &bytes).unwrap();
    bytes
}

/// With the demo release live, and another one to activate.
async fn two_releases(db: &TestDatabase) -> (Service, TempDir) {
    let folder = folder();
    crate::web::fill(db).await;
    let service = Service::start_in(db, Limits::default(), folder.path().to_owned()).await;
    service.ask_ok("/releases/demo/activate", &json!({})).await;
    (service, folder)
}

fn suggestions(completion: &Value, blank: usize) -> Vec<&str> {
    let found = completion["blanks"][blank]["suggestions"].as_array().unwrap();
    found.iter().map(|suggestion| suggestion["article"]["id"].as_str().unwrap()).collect()
}

/// An event about slot 1.
fn about(completion: &Value, id: &str, kind: &str, article: &str) -> Value {
    json!({"id": id, "completion_id": completion["completion_id"], "kind": kind, "slot": 1, "article": article,
           "customer": CUSTOMER})
}

/// Each outfit in the export, its articles sorted.
async fn exported(service: &Service) -> Vec<Vec<String>> {
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let outfit = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["customer"], CUSTOMER);
        let mut articles: Vec<String> = serde_json::from_value(line["articles"].clone()).unwrap();
        articles.sort();
        articles
    };
    let mut outfits: Vec<_> = lines.lines().map(outfit).collect();
    outfits.sort();
    outfits
}

fn outfit<const N: usize>(articles: [&str; N]) -> Vec<String> {
    let mut articles = articles.map(str::to_owned).to_vec();
    articles.sort();
    articles
}

#[apply(on_sqlite)]
async fn feedback_outlives_the_release(db: TestDatabase) {
    let (service, folder) = two_releases(&db).await;
    let coat = json!({"type": "coat", "price": 90, "in_stock": true});
    service.put("/articles/newer-than-demo", &coat).await;
    let request =
        json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "newer-than-demo", "a-00259"], "k": 30});
    let kept = service.ask_ok("/complete", &request).await;
    let later = service.ask_ok("/complete", &request).await;
    let articles = suggestions(&kept, 0);
    let accepted = about(&kept, "accepted", "accepted", articles[1]);
    assert_eq!(report(&service, &accepted).await.0, 200);
    let before = vec![outfit(["a-00134", articles[1], "newer-than-demo", "a-00259"])];
    assert_eq!(exported(&service).await, before);

    service.ask_ok("/releases/next/activate", &json!({})).await;
    assert_eq!(exported(&service).await, before, "what was accepted stays");
    // After a restart, or at another replica.
    let other = Service::start_in(&db, Limits::default(), folder.path().to_owned()).await;
    other.releases.refresh().await.unwrap();
    for (service, place, id) in [(&service, 2, "e-2"), (&other, 24, "e-24")] {
        let (status, taken) = report(service, &about(&later, id, "accepted", articles[place])).await;
        assert_eq!((status, &taken["recorded"]), (200, &json!(true)), "without its rank: {taken}");
    }
    let stored = service.store.feedback().for_completion(later["completion_id"].as_str().unwrap()).await;
    let ranks: Vec<u32> = stored.unwrap().iter().map(|event| event.rank).collect();
    assert_eq!(ranks, [3, 3, 25, 25], "the ticket says the rank");
    assert!(!articles.contains(&"a-00001"));
    for (rank, article) in [(1, "a-00001"), (1, "newer-than-demo"), (25, "a-00001"), (2, articles[0])] {
        let mut never = about(&later, "never", "bought", article);
        never["rank"] = rank.into();
        assert_eq!(report(&service, &never).await.0, 422, "{article} at {rank}");
    }
    let mut both = vec![before[0].clone(), outfit(["a-00134", articles[24], "newer-than-demo", "a-00259"])];
    both.sort();
    assert_eq!(exported(&other).await, both);
    let counts = service.json("/feedback/counts").await;
    assert_eq!((&counts["items"][0]["release"], &counts["items"][0]["shown"]), (&json!("demo"), &json!(3)));
}

#[apply(on_sqlite)]
async fn suggestions_past_the_remembered_need_their_rank(Demo(service): Demo) {
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, null, "a-00259"], "k": 80});
    let completion = service.ask_ok("/complete", &request).await;
    let articles = suggestions(&completion, 0);
    let all = service
        .ask_ok("/complete", &json!({"customer": CUSTOMER, "outfit": request["outfit"], "k": 250}))
        .await;
    let never = suggestions(&all, 0)[100];
    for (article, rank, status, pointer) in [
        (articles[69], Value::Null, 200, None),
        (articles[70], Value::Null, 422, Some("/article")),
        (articles[70], json!(70), 422, Some("/article")),
        (articles[70], json!(81), 422, Some("/article")),
        (articles[70], json!(71), 200, None),
        (articles[0], json!(71), 422, Some("/rank")),
        (never, Value::Null, 422, Some("/article")),
        (never, json!(20), 422, Some("/article")),
        ("a-00134", json!(75), 422, Some("/article")),
        ("nowhere", json!(75), 422, Some("/article")),
    ] {
        let mut event = about(&completion, &format!("{article}-{status}"), "bought", article);
        event["rank"] = rank.clone();
        let (found, answer) = report(&service, &event).await;
        assert_eq!((found, answer["errors"][0]["pointer"].as_str()), (status, pointer), "{rank}: {answer}");
        if let Some(detail) = answer["detail"].as_str().filter(|_| article == articles[70]) {
            assert!(detail.ends_with("if it was ranked lower, send its rank, from 71 to 80"), "{detail}");
        }
    }
    // The only blank has more room.
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "a-00259"], "k": 250});
    let completion = service.ask_ok("/complete", &request).await;
    let articles = suggestions(&completion, 0);
    assert_eq!(report(&service, &about(&completion, "139", "bought", articles[139])).await.0, 200);
    assert_eq!(report(&service, &about(&completion, "140", "bought", articles[140])).await.0, 422);
}

#[apply(on_sqlite)]
async fn an_article_of_a_set_was_suggested(Demo(service): Demo) {
    let request =
        json!({"customer": CUSTOMER, "outfit": ["a-00134", null, null, "a-00259"], "k": 1, "sets": 16});
    let completion = service.ask_ok("/complete", &request).await;
    let first = suggestions(&completion, 0)[0];
    let in_set = |set: &Value| {
        let placed = set["articles"].as_array().unwrap().iter().find(|placed| placed["slot"] == 1).unwrap();
        placed["article"]["id"].as_str().unwrap().to_owned()
    };
    let sets: Vec<String> = completion["sets"].as_array().unwrap().iter().map(in_set).collect();
    let place = sets.iter().position(|article| article != first).expect("a set has another article");
    assert_eq!(report(&service, &about(&completion, "set", "accepted", &sets[place])).await.0, 200);
    let stored = service.store.feedback().for_completion(completion["completion_id"].as_str().unwrap()).await;
    let stored = stored.unwrap();
    assert_eq!(stored[0].rank as usize, place + 1, "the set's rank");
}

#[apply(on_sqlite)]
async fn a_batch_has_a_ticket_for_each_item(Demo(service): Demo) {
    let item = |k: u32| json!({"customer": CUSTOMER, "outfit": ["a-00134", null], "k": k});
    let answer = service.ask_ok("/complete/batch", &json!({"items": [item(1), item(2)]})).await;
    let [one, two] = [&answer["items"][0], &answer["items"][1]];
    let second = suggestions(two, 0)[1];
    assert_eq!(
        report(&service, &about(one, "e", "bought", second)).await.0,
        422,
        "only the other item has it"
    );
    assert_eq!(report(&service, &about(two, "e", "bought", second)).await.0, 200);
    let compared = json!({"customer": CUSTOMER, "outfit": ["a-00134", null], "methods": ["none", "gsu"]});
    let compared = service.ask_ok("/compare", &compared).await;
    assert!(!compared.to_string().contains("completion_id"), "a comparison is not shown to customers");
}

#[apply(on_sqlite)]
async fn two_completions_never_have_the_same_id(Demo(service): Demo) {
    let items = vec![json!({"outfit": ["a-00134", null], "k": 1}); 50];
    let answer = service.ask_ok("/complete/batch", &json!({"items": items})).await;
    let completions = answer["items"].as_array().unwrap();
    for (number, completion) in completions.iter().enumerate() {
        let mut bought = about(completion, &format!("e-{number}"), "bought", suggestions(completion, 0)[0]);
        bought["customer"] = Value::Null;
        let (status, taken) = report(&service, &bought).await;
        assert_eq!((status, &taken["recorded"]), (200, &json!(true)), "visitors who buy the same: {taken}");
    }
    assert_eq!(service.json("/feedback/counts").await["items"][0]["bought"], 50);
}

#[apply(on_sqlite)]
async fn tickets_name_no_customer_and_no_suggestion(Demo(service): Demo) {
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 20});
    let completion = service.ask_ok("/complete", &request).await;
    let id = completion["completion_id"].as_str().unwrap();
    assert!(id.len() < 300, "{} characters", id.len());
    let bytes = URL_SAFE_NO_PAD.decode(id).unwrap();
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("a-00134") && contains("match"), "the outfit that the caller sent, and the method");
    assert!(!contains(CUSTOMER) && !contains("014871"));
    for article in suggestions(&completion, 0) {
        assert!(!contains(article), "{article}");
    }
}

#[apply(on_sqlite)]
async fn changed_tickets_are_refused(service: Service) {
    let id = service.state.tickets().issue(&suggested("gsu", None));
    assert_eq!(report(&service, &event(&id, "e", "shown")).await.0, 200);
    let flipped = |place: usize| {
        let mut changed = id.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        String::from_utf8(changed).unwrap()
    };
    let changed = (0..id.len()).flat_map(|place| [flipped(place), id[..place].to_owned()]);
    let events: Vec<Value> = changed.map(|id| event(&id, "changed", "shown")).collect();
    let (status, items) = report(&service, &Value::Array(events)).await;
    assert_eq!((status, items.as_array().unwrap().len()), (200, 2 * id.len()));
    for item in items.as_array().unwrap() {
        // A ticket that names a key from before the first one may be an expired one.
        assert!(item["status"] == 404 || item["status"] == 410, "{item}");
    }
    assert_eq!(service.json("/feedback/counts").await["items"][0]["shown"], 1);
}

#[apply(on_sqlite)]
async fn tickets_expire(service: Service) {
    let now: Timestamp = service.state.clock.now().into();
    let days_ago = |days: i64| Timestamp::from_millis(now.millis() - days * 24 * 60 * 60 * 1000);
    let issued = |at| service.state.tickets().issue(&Suggested { at, ..suggested("gsu", None) });
    // The last was made by a replica whose clock is ahead.
    for (id, at) in [("e-89", days_ago(89)), ("e-0", now + Duration::from_secs(30))] {
        assert_eq!(report(&service, &event(&issued(at), id, "shown")).await.0, 200, "{id}");
    }
    let (status, problem) = report(&service, &event(&issued(days_ago(90)), "late", "shown")).await;
    assert_eq!((status, &problem["code"]), (410, &json!("completion-expired")), "{problem}");
    let detail = "this completion id has expired: feedback is accepted for 90 days after the completion; complete \
                  the outfit again";
    assert_eq!(problem["detail"], detail);
    assert_eq!(service.json("/feedback/counts").await["items"][0]["shown"], 2);
}

#[apply(contract)]
async fn keys_rotate_on_all_replicas(db: TestDatabase) {
    let (one, other) = (Service::start(&db).await, Service::start(&db).await);
    let now: Timestamp = one.state.clock.now().into();
    let stored = async || {
        let text = one.store.settings().get("tickets").await.unwrap().unwrap();
        let keys: Vec<Value> = serde_json::from_str(&text).unwrap();
        keys.iter().map(|key| key["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(stored().await, [1], "two starts made one key");
    let first = one.state.tickets().issue(&suggested("gsu", None));
    // Both find that it is time for another key.
    let at = now + DAY * 31;
    let (a, b) = tokio::join!(one.state.tickets().refresh(at), other.state.tickets().refresh(at));
    a.unwrap();
    b.unwrap();
    assert_eq!(stored().await, [1, 2]);
    one.state.tickets().refresh(at + DAY * 31).await.unwrap();
    assert_eq!(stored().await, [1, 2, 3]);
    let third = one.state.tickets().issue(&suggested("gsu", None));
    assert_eq!(
        report(&other, &event(&third, "e-3", "shown")).await.0,
        200,
        "it has not heard of the key yet"
    );
    assert_eq!(report(&other, &event(&first, "e-1", "shown")).await.0, 200, "the old key still opens");

    // Long after the last ticket of the first keys.
    one.state.tickets().refresh(now + DAY * 130).await.unwrap();
    assert_eq!(stored().await, [2, 3, 4]);
    let (status, problem) = report(&one, &event(&first, "late", "shown")).await;
    assert_eq!((status, &problem["code"]), (410, &json!("completion-expired")), "{problem}");
    assert_eq!(report(&one, &event(&third, "late", "shown")).await.0, 200);
    let terms = Settings::default().terms();
    let restarted = Tickets::start(&one.store, terms, draw_key, now + DAY * 131).await.unwrap();
    assert!(restarted.open(&third, now + DAY).await.is_ok());
}

/// A shop's own method may have any name, also one that this version does not know.
#[apply(on_sqlite)]
async fn any_method_name_can_be_counted(service: Service) {
    service.put(&format!("/customers/{CUSTOMER}"), &json!({"features": {}})).await;
    let name = format!("Größe/β 😀 \"1\" {}", "ß".repeat(180));
    let id = |id: &str| ArticleId::new(id).unwrap();
    let ticket = Suggested {
        outfit: vec![Some(id("a")), None, Some(id("Mäntel/17 b")), Some(id("c"))],
        blanks: vec![SuggestedFor {
            slot: 1,
            articles: vec![id("a-7")],
            in_sets: Vec::new(),
            rules: Vec::new(),
        }],
        ..suggested(&name, Some("autumn/β"))
    };
    let mut bought = event(&service.state.tickets().issue(&ticket), "e", "bought");
    bought["customer"] = CUSTOMER.into();
    let (status, taken) = report(&service, &bought).await;
    assert_eq!(status, 200, "{taken}");
    let counts = service.json("/feedback/counts").await;
    assert_eq!(
        (&counts["items"][0]["method"], &counts["items"][0]["arm"]),
        (&json!(name), &json!("autumn/β"))
    );
    assert_eq!(
        exported(&service).await,
        [outfit(["a", "a-7", "Mäntel/17 b", "c"])],
        "without any release live"
    );
    let customer = CustomerId::new(CUSTOMER).unwrap();
    service.store.customers().erase(&customer, std::time::SystemTime::now().into()).await.unwrap();
    assert_eq!(exported(&service).await, [[""; 0]; 0], "an erased customer has no outfits");
}
