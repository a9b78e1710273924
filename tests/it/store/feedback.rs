use atelier::store::{Conflict, FeedbackCounts, FeedbackEvent, FeedbackKind, Recorded, StoreError};

use super::{LATER, NOW, article_id, customer_id, with_customers};
use crate::harness::{TestDatabase, contracts};

contracts!(
    recorded_feedback_is_read_back,
    the_same_key_counts_once,
    the_same_key_for_another_event_is_a_conflict,
    counts_are_by_release_method_and_arm,
    an_unknown_customer_is_a_conflict,
    texts_that_the_database_cannot_store_are_refused,
);

fn event(kind: FeedbackKind, method: &str, arm: Option<&str>) -> FeedbackEvent {
    FeedbackEvent {
        kind,
        completion_id: "k-1".into(),
        slot: 1,
        article: article_id("a-1"),
        rank: 2,
        release: "demo".into(),
        method: method.into(),
        arm: arm.map(Into::into),
        customer: None,
        at: NOW,
    }
}

async fn recorded_feedback_is_read_back(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let shown = FeedbackEvent { customer: Some(customer_id("c")), ..event(FeedbackKind::Shown, "gsu", None) };
    let bought = FeedbackEvent { at: LATER, ..event(FeedbackKind::Bought, "gsu", Some("b")) };
    assert_eq!(store.feedback().record("2", &bought).await, Ok(Recorded::Now));
    assert_eq!(store.feedback().record("1", &shown).await, Ok(Recorded::Now));
    assert_eq!(store.feedback().for_customer(&customer_id("c")).await, Ok(vec![shown.clone()]));
    assert_eq!(store.feedback().for_completion("k-1").await, Ok(vec![shown, bought]));
    assert_eq!(store.feedback().for_completion("k-2").await, Ok(vec![]));
}

async fn the_same_key_counts_once(db: TestDatabase) {
    let store = db.open().await;
    let first = event(FeedbackKind::Accepted, "gsu", None);
    let again = FeedbackEvent { at: LATER, ..first.clone() };
    // Two concurrent requests, as of an impatient client.
    let feedback = store.feedback();
    let (one, other) = tokio::join!(feedback.record("key", &first), feedback.record("key", &first));
    assert!(matches!(
        (one.unwrap(), other.unwrap()),
        (Recorded::Now, Recorded::Before) | (Recorded::Before, Recorded::Now)
    ));
    assert_eq!(feedback.record("key", &again).await, Ok(Recorded::Before));
    assert_eq!(feedback.for_completion("k-1").await, Ok(vec![first]));
    assert_eq!(feedback.counts().await.unwrap()[0].accepted, 1);
}

async fn the_same_key_for_another_event_is_a_conflict(db: TestDatabase) {
    let store = db.open().await;
    let first = event(FeedbackKind::Accepted, "gsu", None);
    store.feedback().record("key", &first).await.unwrap();
    for other in [
        event(FeedbackKind::Rejected, "gsu", None),
        event(FeedbackKind::Accepted, "gs", None),
        event(FeedbackKind::Accepted, "gsu", Some("a")),
        FeedbackEvent { rank: 3, ..first.clone() },
    ] {
        let refused = store.feedback().record("key", &other).await;
        assert_eq!(refused, Err(StoreError::Conflict(Conflict::FeedbackDiffers)));
    }
    assert_eq!(store.feedback().for_completion("k-1").await, Ok(vec![first]));
}

async fn counts_are_by_release_method_and_arm(db: TestDatabase) {
    let store = db.open().await;
    assert_eq!(store.feedback().counts().await, Ok(vec![]));
    let mut key = 0;
    for (kind, method, arm, times) in [
        (FeedbackKind::Shown, "gsu", Some("b"), 3),
        (FeedbackKind::Accepted, "gsu", Some("b"), 2),
        (FeedbackKind::Bought, "gsu", Some("b"), 1),
        (FeedbackKind::Shown, "gsu", None, 1),
        (FeedbackKind::Rejected, "none", Some("a"), 1),
    ] {
        for _ in 0..times {
            key += 1;
            store.feedback().record(&key.to_string(), &event(kind, method, arm)).await.unwrap();
        }
    }
    let counts = |method: &str, arm: Option<&str>, [shown, accepted, rejected, bought]: [u64; 4]| {
        let arm = arm.map(Into::into);
        FeedbackCounts {
            release: "demo".into(),
            method: method.into(),
            arm,
            shown,
            accepted,
            rejected,
            bought,
        }
    };
    assert_eq!(
        store.feedback().counts().await,
        Ok(vec![
            counts("gsu", None, [1, 0, 0, 0]),
            counts("gsu", Some("b"), [3, 2, 0, 1]),
            counts("none", Some("a"), [0, 0, 1, 0]),
        ])
    );
}

async fn an_unknown_customer_is_a_conflict(db: TestDatabase) {
    let store = db.open().await;
    let event =
        FeedbackEvent { customer: Some(customer_id("nobody")), ..event(FeedbackKind::Shown, "gs", None) };
    let refused = store.feedback().record("1", &event).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
}

async fn texts_that_the_database_cannot_store_are_refused(db: TestDatabase) {
    let store = db.open().await;
    for completion_id in ["a\0b".to_owned(), "x".repeat(10_000)] {
        let event = FeedbackEvent { completion_id, ..event(FeedbackKind::Shown, "gs", None) };
        let refused = store.feedback().record("1", &event).await.unwrap_err();
        assert!(matches!(refused, StoreError::Unfit { what: "a completion's id", .. }), "{refused}");
    }
    // A key may be any text, because its digest is stored.
    let fine = event(FeedbackKind::Shown, "gs", None);
    assert_eq!(store.feedback().record(&"\0".repeat(10_000), &fine).await, Ok(Recorded::Now));
}
