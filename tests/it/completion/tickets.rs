//! Completion ids: what they remember, for how long, and who can read them.

use std::{collections::BTreeSet, time::Duration};

use atelier::{
    completion::tickets::{Suggested, Tickets},
    config::Tickets as Settings,
};
use atelier_core::domain::Timestamp;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    demo,
    harness::{
        Call, Demo, Service, TestDatabase, apply, contract, draw_key, each, ids,
        json::{list, text, with},
        models, on_sqlite,
    },
    outcomes::feedback::{event, suggested},
    outfits::api::change_file,
    releases::api::copy,
};

const DAY: Duration = Duration::from_hours(24);
const CUSTOMER: &str = "c-014871";

/// The demo release, and one of other models with the same articles in another order.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&models().join("demo"), &folder.path().join("demo"));
    demo::copy_as("next", &models().join("demo"), folder.path()).unwrap();
    change_file(&folder.path().join("next"), "articles.jsonl", |articles| {
        articles.split_inclusive(|byte| *byte == b'\n').rev().collect::<Vec<_>>().concat()
    });
    folder
}

/// The suggestions for the first blank.
fn suggestions(completion: &Value) -> Vec<String> {
    ids(&completion["blanks"][0]["suggestions"])
}

/// An event about slot 1.
fn about(completion: &Value, id: &str, kind: &str, article: &str) -> Value {
    with(
        event(text(&completion["completion_id"]), id, kind),
        json!({"article": article, "customer": CUSTOMER}),
    )
}

fn report(service: &Service, event: &Value) -> Call {
    service.send("/feedback", event)
}

/// Sends an event of a ticket that has expired.
async fn report_late(service: &Service, ticket: &str) -> Value {
    let problem = report(service, &event(ticket, "late", "shown")).await.assert_problem(410, &[]);
    assert_eq!(problem["code"], "completion-expired", "{problem}");
    problem
}

/// The articles of each outfit in the export.
async fn exported(service: &Service) -> BTreeSet<BTreeSet<String>> {
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    let articles = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["customer"], CUSTOMER);
        list(&line["articles"]).iter().map(|id| text(id).to_owned()).collect()
    };
    let outfits: BTreeSet<_> = lines.lines().map(articles).collect();
    assert_eq!(outfits.len(), lines.lines().count(), "twice: {lines}");
    outfits
}

#[apply(on_sqlite)]
async fn feedback_outlives_the_release(db: TestDatabase) {
    let folder = folder();
    let service = Service::filled(&db, &folder).await;
    service.ask_ok("/releases/demo/activate", json!({})).await;
    let coat = json!({"type": "coat", "price": 90, "in_stock": true});
    service.put("/articles/newer-than-demo", coat).await;
    let request =
        json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "newer-than-demo", "a-00259"], "k": 30});
    let kept = service.complete(&request).await;
    let later = service.complete(request).await;
    let articles = suggestions(&kept);
    report(&service, &about(&kept, "accepted", "accepted", &articles[1])).is(200).await;
    let accepted = |place: usize| {
        BTreeSet::from(["a-00134", &articles[place], "newer-than-demo", "a-00259"].map(str::to_owned))
    };
    let before = BTreeSet::from([accepted(1)]);
    assert_eq!(exported(&service).await, before);

    service.ask_ok("/releases/next/activate", json!({})).await;
    assert_eq!(exported(&service).await, before, "what was accepted stays");
    // After a restart, or at another replica.
    let other = Service::of(&db, &folder).await;
    other.releases.refresh().await.unwrap();
    for (service, place, id) in [(&service, 2, "e-2"), (&other, 24, "e-24")] {
        let taken = report(service, &about(&later, id, "accepted", &articles[place])).ok().await;
        assert_eq!(taken["recorded"], true, "without its rank: {taken}");
    }
    let stored = service.store.feedback().for_training(text(&later["completion_id"])).await;
    let ranks: Vec<u32> = stored.unwrap().iter().map(|event| event.rank).collect();
    assert_eq!(ranks, [3, 3, 25, 25], "the ticket says the rank");
    assert!(!articles.iter().any(|article| article == "a-00001"));
    for (rank, article) in
        [(1, "a-00001"), (1, "newer-than-demo"), (25, "a-00001"), (2, articles[0].as_str())]
    {
        let never = with(about(&later, "never", "bought", article), json!({"rank": rank}));
        assert_eq!(report(&service, &never).await.status, 422, "{article} at {rank}");
    }
    assert_eq!(exported(&other).await, BTreeSet::from([accepted(1), accepted(24)]));
    let lines = service.get("/feedback/outfits.jsonl").await.text();
    service.lines("/outfits/bulk", lines).is(200).await;
    let counts = service.json("/feedback/counts").await;
    assert_eq!((&counts["items"][0]["release"], &counts["items"][0]["shown"]), (&json!("demo"), &json!(3)));
}

#[apply(on_sqlite)]
async fn suggestions_past_the_remembered_need_their_rank(Demo(service): Demo) {
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, null, "a-00259"], "k": 80});
    let completion = service.complete(&request).await;
    let articles = suggestions(&completion);
    let all = ids(&service.suggest(with(request, json!({"k": 250}))).await);
    let (at, never) = (|place: usize| articles[place].as_str(), all[100].as_str());
    for (article, rank, refused) in [
        (at(69), None, None),
        (at(70), None, Some("/article")),
        (at(70), Some(70), Some("/article")),
        (at(70), Some(81), Some("/article")),
        (at(70), Some(71), None),
        (at(0), Some(71), Some("/rank")),
        (never, None, Some("/article")),
        (never, Some(20), Some("/article")),
        ("a-00134", Some(75), Some("/article")),
        ("nowhere", Some(75), Some("/article")),
    ] {
        let id = format!("{article}-{}", refused.is_some());
        let event = with(about(&completion, &id, "bought", article), json!({"rank": rank}));
        let answer = report(&service, &event).await;
        let Some(pointer) = refused else {
            assert_eq!(answer.status, 200, "{article} at {rank:?}");
            continue;
        };
        let problem = answer.assert_problem(422, &[pointer]);
        if article == at(70) {
            let detail = text(&problem["detail"]);
            assert!(detail.ends_with("if it was ranked lower, send its rank, from 71 to 80"), "{detail}");
        }
    }
    // The only blank has more room.
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "a-00259"], "k": 250});
    let completion = service.complete(request).await;
    let articles = suggestions(&completion);
    report(&service, &about(&completion, "139", "bought", &articles[139])).is(200).await;
    report(&service, &about(&completion, "140", "bought", &articles[140])).is(422).await;
}

#[apply(on_sqlite)]
async fn an_article_of_a_set_was_suggested(Demo(service): Demo) {
    let request =
        json!({"customer": CUSTOMER, "outfit": ["a-00134", null, null, "a-00259"], "k": 1, "sets": 16});
    let completion = service.complete(request).await;
    // Of slot 1.
    let of_sets = each(&completion["sets"], "articles/0/article/id");
    let (first, of_sets) = (&suggestions(&completion)[0], list(&of_sets));
    let place = of_sets.iter().position(|article| *article != **first).expect("a set has another article");
    report(&service, &about(&completion, "set", "accepted", text(&of_sets[place]))).is(200).await;
    let stored = service.store.feedback().for_training(text(&completion["completion_id"])).await;
    assert_eq!(stored.unwrap()[0].rank as usize, place + 1, "the set's rank");
}

#[apply(on_sqlite)]
async fn a_batch_has_a_ticket_for_each_item(Demo(service): Demo) {
    let item = |k: u32| json!({"customer": CUSTOMER, "outfit": ["a-00134", null], "k": k});
    let answer = service.ask_ok("/complete/batch", json!({"items": [item(1), item(2)]})).await;
    let second = &suggestions(&answer["items"][1])[1];
    // Only the other item has it.
    for (place, status) in [(0, 422), (1, 200)] {
        report(&service, &about(&answer["items"][place], "e", "bought", second)).is(status).await;
    }
    let compared = json!({"customer": CUSTOMER, "outfit": ["a-00134", null], "methods": ["none", "gsu"]});
    let compared = service.ask_ok("/compare", compared).await;
    assert!(!compared.to_string().contains("completion_id"), "a comparison is not shown to customers");
}

#[apply(on_sqlite)]
async fn two_completions_never_have_the_same_id(Demo(service): Demo) {
    let items = vec![json!({"outfit": ["a-00134", null], "k": 1}); 50];
    let answer = service.ask_ok("/complete/batch", json!({"items": items})).await;
    for (number, completion) in list(&answer["items"]).iter().enumerate() {
        let bought = about(completion, &format!("e-{number}"), "bought", &suggestions(completion)[0]);
        let taken = report(&service, &with(bought, json!({"customer": null}))).ok().await;
        assert_eq!(taken["recorded"], true, "visitors who buy the same: {taken}");
    }
    assert_eq!(service.json("/feedback/counts").await["items"][0]["bought"], 50);
}

#[apply(on_sqlite)]
async fn tickets_name_no_customer_and_no_suggestion(Demo(service): Demo) {
    let request = json!({"customer": CUSTOMER, "outfit": ["a-00134", null, "a-00568", "a-00259"], "k": 20});
    let completion = service.complete(request).await;
    let id = text(&completion["completion_id"]);
    assert!(id.len() < 300, "{} characters", id.len());
    let bytes = URL_SAFE_NO_PAD.decode(id).unwrap();
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("a-00134") && contains("match"), "the outfit that the caller sent, and the method");
    assert!(!contains(CUSTOMER) && !contains("014871"));
    for article in suggestions(&completion) {
        assert!(!contains(&article), "{article}");
    }
}

#[apply(on_sqlite)]
async fn changed_tickets_are_refused(service: Service) {
    let id = service.state.tickets().issue(suggested("gsu", None));
    report(&service, &event(&id, "e", "shown")).is(200).await;
    let flipped = |place: usize| {
        let other = if id.as_bytes()[place] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &id[..place], &id[place + 1..])
    };
    let changed = (0..id.len()).flat_map(|place| [flipped(place), id[..place].to_owned()]);
    let events: Vec<Value> = changed.map(|id| event(&id, "changed", "shown")).collect();
    let items = report(&service, &json!(events)).ok().await;
    assert_eq!(list(&items).len(), 2 * id.len());
    for item in list(&items) {
        // A ticket that names a key from before the first one may be an expired one.
        assert!(item["status"] == 404 || item["status"] == 410, "{item}");
    }
    assert_eq!(service.json("/feedback/counts").await["items"][0]["shown"], 1);
}

#[apply(on_sqlite)]
async fn tickets_expire(service: Service) {
    let now: Timestamp = service.state.clock.now().into();
    let days_ago = |days: i64| Timestamp::from_millis(now.millis() - days * 24 * 60 * 60 * 1000);
    let issued = |at| service.state.tickets().issue(Suggested { at, ..suggested("gsu", None) });
    // The last was made by a replica whose clock is ahead.
    for (id, at) in [("e-89", days_ago(89)), ("e-0", now + Duration::from_secs(30))] {
        report(&service, &event(&issued(at), id, "shown")).is(200).await;
    }
    let problem = report_late(&service, &issued(days_ago(90))).await;
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
        each(&serde_json::from_str(&text).unwrap(), "id")
    };
    assert_eq!(stored().await, json!([1]), "two starts made one key");
    let first = one.state.tickets().issue(suggested("gsu", None));
    // Both find that it is time for another key.
    let at = now + DAY * 31;
    let (a, b) = tokio::join!(one.state.tickets().refresh(at), other.state.tickets().refresh(at));
    a.and(b).unwrap();
    assert_eq!(stored().await, json!([1, 2]));
    one.state.tickets().refresh(at + DAY * 31).await.unwrap();
    assert_eq!(stored().await, json!([1, 2, 3]));
    let third = one.state.tickets().issue(suggested("gsu", None));
    // A key that it has not heard of yet, and the old one.
    for (ticket, id) in [(&third, "e-3"), (&first, "e-1")] {
        report(&other, &event(ticket, id, "shown")).is(200).await;
    }

    // Long after the last ticket of the first keys.
    one.state.tickets().refresh(now + DAY * 130).await.unwrap();
    assert_eq!(stored().await, json!([2, 3, 4]));
    report_late(&one, &first).await;
    report(&one, &event(&third, "late", "shown")).is(200).await;
    let terms = Settings::default().terms();
    let restarted = Tickets::start(&one.store, terms, draw_key, now + DAY * 131).await.unwrap();
    assert!(restarted.open(&third, now + DAY).await.is_ok());
}
