use atelier::{
    completion::tickets::CountedRules,
    outcomes::{
        CountedBy, CountedOnly, FeedbackEvent, FeedbackKind, Outcomes, Recorded, RuleOutcomes,
        SuggestedArticle,
    },
    platform::db::{Conflict, Store, StoreError},
};
use atelier_core::domain::{RuleDigest, Timestamp};

use crate::harness::{
    NOW, Unconditional, apply, article_id, contract, customer_id, feedback, with_customers,
};

fn event(kind: FeedbackKind, method: &str, arm: Option<&str>) -> FeedbackEvent {
    let arm = arm.map(Into::into);
    FeedbackEvent { rank: 2, method: method.into(), arm, ..feedback(kind, "k-1", "a-1") }
}

/// Records an event about an article that the catalogue lacks.
async fn record(store: &Store, key: &str, event: &FeedbackEvent) -> Result<Recorded, StoreError> {
    store.feedback().record(key, event, &SuggestedArticle::default()).await
}

#[apply(contract)]
async fn the_same_event_under_another_key_counts_once(store: Store) {
    let feedback = store.feedback();
    let bought = event(FeedbackKind::Bought, "gsu", None);
    // Two programs that report the same purchase at the same time.
    let keys: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let all = futures_util::future::join_all(keys.iter().map(|key| record(&store, key, &bought))).await;
    assert_eq!(all.iter().filter(|recorded| **recorded == Ok(Recorded::Now)).count(), 1, "{all:?}");
    assert_eq!(record(&store, "3", &bought).await, Ok(Recorded::Before), "and again");
    let rejected = event(FeedbackKind::Rejected, "gsu", None);
    let differs = Err(StoreError::Conflict(Conflict::FeedbackDiffers));
    assert_eq!(record(&store, "3", &rejected).await, differs, "a repeat's key is its own");
    let shown = event(FeedbackKind::Shown, "gsu", None);
    assert_eq!(record(&store, "shown", &shown).await, Ok(Recorded::Before), "what was bought was shown");
    let [counts] = &feedback.counts().await.unwrap()[..] else { panic!("one method") };
    assert_eq!((counts.outcomes.shown, counts.outcomes.sold.bought), (1, 1));
    // Each report is kept: accepted, rejected and accepted again is not the same as accepted once.
    assert_eq!(feedback.for_training("k-1").await.unwrap().len(), 10);
    for (n, other) in [
        FeedbackEvent { slot: 2, ..bought.clone() },
        FeedbackEvent { article: article_id("a-2"), ..bought.clone() },
        FeedbackEvent { completion_id: "k-2".into(), ..bought.clone() },
        FeedbackEvent { kind: FeedbackKind::Accepted, ..bought },
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(record(&store, &format!("other-{n}"), other).await, Ok(Recorded::Now));
    }
}

const DAY: i64 = 24 * 60 * 60 * 1000;

fn on_day(day: i64, event: FeedbackEvent) -> FeedbackEvent {
    FeedbackEvent { at: Timestamp::from_millis(day * DAY + 7), ..event }
}

fn of_type(kind: &str, is_new: bool) -> SuggestedArticle {
    SuggestedArticle { kind: Some(kind.into()), is_new: Some(is_new), ..SuggestedArticle::default() }
}

/// `releases::operations::acceptance` has the other ways to count.
#[apply(contract)]
async fn outcomes_count_for_the_day_of_showing(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    let feedback = store.feedback();
    let of = |customer: &str, article: &str, kind| FeedbackEvent {
        customer: Some(customer_id(customer)),
        article: article_id(article),
        ..event(kind, "gsu", None)
    };
    let shown = |article| on_day(10, of("c", article, FeedbackKind::Shown));
    let page = [
        ("1".to_owned(), shown("a"), of_type("coat", false)),
        ("2".to_owned(), shown("b"), of_type("coat", true)),
        ("3".to_owned(), FeedbackEvent { slot: 2, ..shown("e") }, of_type("bag", false)),
    ];
    feedback.record_all(&page).await.unwrap();
    feedback.record_all(&page).await.unwrap();
    let accepted = on_day(11, of("d", "f", FeedbackKind::Accepted));
    feedback.record("4", &accepted, &of_type("bag", true)).await.unwrap();
    // Days later, when the article is another one.
    let later = on_day(15, of("c", "a", FeedbackKind::Accepted));
    feedback.record("5", &later, &of_type("cape", true)).await.unwrap();
    let all = CountedOnly::default();
    let describe = |Outcomes { accepted, shown, .. }| format!("{accepted}/{shown}");
    for (by, since, expected) in [
        (CountedBy::Day, 0, "10 1/3, 11 1/1"),
        (CountedBy::Day, 11, "11 1/1"),
        (CountedBy::ArticleType, 0, "bag 1/2, coat 1/2"),
        (CountedBy::IsNew, 0, "0 1/2, 1 1/2"),
        (CountedBy::Slot, 0, "1 2/3, 2 0/1"),
    ] {
        let rows = feedback.acceptance(by, since, &all).await.unwrap().into_iter();
        let rows: Vec<_> = rows.map(|(value, found)| format!("{value} {}", describe(found))).collect();
        assert_eq!(rows.join(", "), expected);
    }
    let by_feature = async |since| {
        let rows = feedback.acceptance_by_feature(since, "age", &all).await.unwrap();
        rows.into_iter().map(|(_, found)| describe(found)).collect::<String>()
    };
    assert_eq!((by_feature(0).await, by_feature(11).await), ("2/4".to_owned(), "1/1".to_owned()));
    store.customers().remove(&customer_id("c"), NOW).await.unwrap();
    let by_day = feedback.acceptance(CountedBy::Day, 0, &all).await.unwrap();
    let total: u64 = by_day.iter().map(|(_, found)| found.shown).sum();
    assert_eq!((by_feature(0).await, total), ("1/1".to_owned(), 4), "the events still count");
}

#[apply(contract)]
async fn outcomes_count_for_the_rules_that_could_change_them(store: Store) {
    let feedback = store.feedback();
    let (one, both) = ([1; 6], vec![[2; 6], [1; 6]]);
    let of = |held_out: bool, rules: &[[u8; 6]]| SuggestedArticle {
        rules: CountedRules { held_out, rules: rules.into() },
        ..of_type("coat", false)
    };
    let of_completion = |id: &str, day, kind| {
        on_day(day, FeedbackEvent { completion_id: id.into(), ..event(kind, "gsu", None) })
    };
    let rejected = of_completion("a", 10, FeedbackKind::Rejected);
    let shown = |id: &str| (id.to_owned(), of_completion(id, 12, FeedbackKind::Shown), of(true, &[one]));
    feedback.record("1", &rejected, &of(false, &both)).await.unwrap();
    feedback.record("1", &rejected, &of(false, &both)).await.unwrap();
    feedback.record_all(&[shown("b"), shown("c")]).await.unwrap();
    let later = of_completion("b", 15, FeedbackKind::Bought);
    let unknown = FeedbackEvent { customer: Some(customer_id("nobody")), ..later.clone() };
    let batch = [("2", later, of(true, &[one])), ("3", unknown, of(true, &[one]))];
    feedback.record_all(&batch.map(|(key, event, of)| (key.to_owned(), event, of))).await.unwrap();
    let counts = async |since| {
        let mut rows = feedback.rule_outcomes(since).await.unwrap();
        rows.sort_by_key(|(rule, held_out, _)| (*rule, *held_out));
        let count = |(rule, held_out, found): (RuleDigest, bool, RuleOutcomes)| {
            (rule[0], held_out, [found.shown, found.rejected, found.bought])
        };
        rows.into_iter().map(count).collect::<Vec<_>>()
    };
    let first = [(1, false, [1, 1, 0]), (1, true, [2, 0, 1]), (2, false, [1, 1, 0])];
    assert_eq!(counts(10).await, first);
    assert_eq!(counts(11).await, first[1..2]);
    feedback.withdraw_refusal("1", None, &rejected.article, NOW).await.unwrap();
    assert_eq!(counts(0).await, [(1, false, [1, 0, 0]), first[1], (2, false, [1, 0, 0])]);
}
