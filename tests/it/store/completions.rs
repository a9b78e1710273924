use atelier::store::{Completion, Conflict, FeedbackEvent, FeedbackKind, StoreError, Suggested, Timestamp};

use super::{LATER, NOW, article_id, customer_id, with_customers};
use crate::harness::{TestDatabase, contracts};

contracts!(recorded_then_read, forgotten_by_age, erasing_forgets_whom_it_was_for, accepted_are_found);

fn completion(id: &str, customer: Option<&str>) -> Completion {
    let suggested = |rank, article| Suggested { slot: 1, rank, article: article_id(article) };
    Completion {
        id: id.into(),
        release: "demo".into(),
        method: "gsu".into(),
        arm: Some("b".into()),
        customer: customer.map(customer_id),
        outfit: vec![Some(article_id("a")), None, Some(article_id("ä \"b\""))],
        suggestions: vec![suggested(1, "😀"), suggested(2, "b")],
        at: NOW,
    }
}

async fn recorded_then_read(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let known = completion("k-1", Some("c"));
    let other = Completion { arm: None, suggestions: vec![], ..completion("k-2", None) };
    for completion in [&known, &other] {
        store.completions().record(completion).await.unwrap();
        assert_eq!(store.completions().get(&completion.id).await, Ok(Some(completion.clone())));
    }
    assert_eq!(store.completions().get("k-3").await, Ok(None));
    assert_eq!(store.completions().of_customer(&customer_id("c")).await, Ok(vec![known]));
    let refused = store.completions().record(&completion("k-4", Some("nobody"))).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    for odd in ["a\0b", &"x".repeat(300)] {
        let refused = store.completions().get(odd).await.unwrap_err();
        assert!(matches!(refused, StoreError::Unfit { what: "a completion's id", .. }), "{refused}");
    }
}

async fn forgotten_by_age(db: TestDatabase) {
    let store = db.open().await;
    store.completions().record(&completion("old", None)).await.unwrap();
    store.completions().record(&Completion { at: LATER, ..completion("new", None) }).await.unwrap();
    assert_eq!(store.completions().delete_before(NOW).await, Ok(0), "before, not at");
    assert_eq!(store.completions().delete_before(LATER).await, Ok(1));
    assert_eq!(store.completions().get("old").await, Ok(None));
    assert!(store.completions().get("new").await.unwrap().is_some());
}

async fn erasing_forgets_whom_it_was_for(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    store.completions().record(&completion("k", Some("c"))).await.unwrap();
    store.customers().erase(&customer_id("c")).await.unwrap();
    assert_eq!(store.completions().get("k").await, Ok(Some(completion("k", None))));
}

async fn accepted_are_found(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    for (id, customer, kind) in [
        ("k-1", Some("c"), Some(FeedbackKind::Accepted)),
        ("k-2", Some("c"), Some(FeedbackKind::Shown)),
        ("k-3", Some("c"), None),
        ("k-4", None, Some(FeedbackKind::Accepted)),
        ("k-5", Some("c"), Some(FeedbackKind::Bought)),
    ] {
        store.completions().record(&completion(id, customer)).await.unwrap();
        let Some(kind) = kind else { continue };
        let event = FeedbackEvent {
            kind,
            completion_id: id.into(),
            slot: 1,
            article: article_id("b"),
            rank: 2,
            release: "demo".into(),
            method: "gsu".into(),
            arm: None,
            customer: None,
            at: Timestamp::from_millis(1),
        };
        store.feedback().record(id, &event).await.unwrap();
    }
    let page = async |after, n| {
        let found = store.completions().accepted(after, n).await.unwrap();
        found.into_iter().map(|completion| completion.id).collect::<Vec<_>>()
    };
    assert_eq!(page("", 9).await, ["k-1", "k-5"]);
    assert_eq!(page("", 1).await, ["k-1"]);
    assert_eq!(page("k-1", 9).await, ["k-5"]);
}
