use std::time::Duration;

use atelier::{
    outcomes::{
        Attribution, CountedBy, CountedOnly, Event, EventRecorded, FeedbackEvent, FeedbackKind, Outcomes,
        Recorded, Sales, SuggestedArticle,
    },
    platform::db::{Store, StoreError},
};
use atelier_core::domain::Timestamp;
use futures_util::future::join_all;

use crate::harness::{NOW, all, apply, article_id, contract, customer_id, event, feedback, with_customers};

const HOUR: Duration = Duration::from_hours(1);
const WINDOW: Duration = Duration::from_hours(7 * 24);

fn sale(id: &str, kind: FeedbackKind, order: &str, article: &str, value: i64) -> Event {
    let order = Some(order.to_owned());
    Event { order, value: Some(value), ..event(id, kind, Some("c"), article) }
}

fn shown(completion: &str, article: &str, at: Timestamp) -> FeedbackEvent {
    let customer = Some(customer_id("c"));
    let event = feedback(FeedbackKind::Shown, completion, article);
    FeedbackEvent { method: completion.into(), customer, at, ..event }
}

/// With a ticket.
fn suggested(event: Event, completion: &str) -> Event {
    let feedback = shown(completion, event.article.as_str(), NOW);
    Event { suggestion: Some((feedback, SuggestedArticle::default())), ..event }
}

async fn record(store: &Store, events: &[Event]) -> Vec<Result<EventRecorded, StoreError>> {
    store.events().record(events, WINDOW).await.unwrap()
}

/// How each belongs to a suggestion, if it is recorded now.
async fn attributions(store: &Store, events: &[Event]) -> Vec<Option<Attribution>> {
    let recorded: Vec<_> = record(store, events).await.into_iter().map(Result::unwrap).collect();
    assert!(recorded.iter().all(|one| one.recorded == Recorded::Now), "{recorded:?}");
    recorded.into_iter().map(|one| one.attribution).collect()
}

async fn outcomes(store: &Store, method: &str) -> Outcomes {
    let found = store.feedback().acceptance(CountedBy::Method, 0, &CountedOnly::default()).await.unwrap();
    found.into_iter().find(|(value, _)| value == method).map(|(_, outcomes)| outcomes).unwrap_or_default()
}

/// Last touch: of what was shown within the window, the latest.
#[apply(contract)]
async fn a_purchase_without_a_ticket_belongs_to_what_was_shown_last(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    for (method, article, at) in [
        ("old", "a", NOW),
        ("late", "a", NOW + 2 * HOUR),
        ("after", "a", NOW + 4 * HOUR),
        ("gone", "b", NOW),
        ("edge", "z", NOW),
    ] {
        let article_of = SuggestedArticle::default();
        store.feedback().record(method, &shown(method, article, at), &article_of).await.unwrap();
    }
    let at = |hours: u32, event: Event| Event { at: NOW + hours * HOUR, ..event };
    let events = [
        at(3, sale("1", FeedbackKind::Bought, "7", "a", 100)),
        at(3, event("2", FeedbackKind::Bought, Some("d"), "a")),
        at(3, event("3", FeedbackKind::Bought, None, "a")),
        at(7 * 24 + 1, sale("4", FeedbackKind::Bought, "8", "b", 100)),
        // The window has both ends.
        at(0, sale("7", FeedbackKind::Bought, "9", "a", 100)),
        at(7 * 24, sale("8", FeedbackKind::Bought, "9", "z", 100)),
        at(3, event("5", FeedbackKind::Accepted, Some("c"), "a")),
    ];
    let window = Some(Attribution::Window);
    assert_eq!(attributions(&store, &events).await, [window, None, None, None, window, window, None]);
    let sales = Sales { bought: 1, returned: 0, kept: 0, revenue: 100 };
    let late = Outcomes { shown: 1, in_window: sales, ..Outcomes::default() };
    assert_eq!(outcomes(&store, "late").await, late, "counted apart");
    for other in ["old", "edge"] {
        let found = outcomes(&store, other).await;
        assert_eq!(found, Outcomes { shown: 1, in_window: sales, ..Outcomes::default() }, "{other}");
    }
    for other in ["after", "gone"] {
        assert_eq!(outcomes(&store, other).await, Outcomes { shown: 1, ..Outcomes::default() });
    }
    // The same purchase under another id counts once.
    let again = at(3, sale("6", FeedbackKind::Bought, "7", "a", 100));
    let [again] = &record(&store, &[again]).await[..] else { panic!("one result") };
    assert_eq!(again.as_ref().map(|again| (again.attribution, again.counts)), Ok((window, false)));
    assert_eq!(outcomes(&store, "late").await, late);
}

#[apply(contract)]
async fn a_visitor_who_consented_is_recognised(store: Store) {
    let of = |visitor: &str, event: Event| Event { visitor: Some(visitor.into()), ..event };
    let mut viewed = suggested(of("v", event("1", FeedbackKind::Shown, None, "a")), "look");
    viewed.suggestion.as_mut().unwrap().0.customer = None;
    let events = [
        viewed,
        of("v", event("2", FeedbackKind::Bought, None, "a")),
        of("w", event("3", FeedbackKind::Bought, None, "a")),
    ];
    assert_eq!(attributions(&store, &events[..1]).await, [Some(Attribution::Ticket)]);
    assert_eq!(attributions(&store, &events[1..]).await, [Some(Attribution::Window), None]);
}

/// A returned article is not an accepted one, whichever comes first. The ledger's own tests have every order.
#[apply(contract)]
async fn a_return_belongs_to_its_purchase(store: Store) {
    with_customers(&store, &["c"]).await;
    let ticket = Some(Attribution::Ticket);
    let accepted = suggested(event("1", FeedbackKind::Accepted, Some("c"), "a"), "k");
    let bought = suggested(sale("2", FeedbackKind::Bought, "7", "a", 64_500), "k");
    let returned = sale("3", FeedbackKind::Returned, "7", "a", 64_500);
    // In the order of arrival: the return first.
    assert_eq!(attributions(&store, &[returned]).await, [None]);
    assert_eq!(attributions(&store, &[accepted]).await, [ticket]);
    assert_eq!(outcomes(&store, "k").await.accepted, 1);
    assert_eq!(attributions(&store, &[bought]).await, [ticket]);
    let sold = Sales { bought: 1, returned: 1, kept: 0, revenue: 0 };
    assert_eq!(outcomes(&store, "k").await, Outcomes { shown: 1, sold, ..Outcomes::default() });
    let stored = all(store.events().for_customer(&customer_id("c"))).await;
    assert!(stored.iter().all(|event| event.attribution == ticket), "{stored:?}");
}

#[apply(contract)]
async fn what_came_back_is_no_purchase(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    let bought = async || {
        let (.., bought) = store.customers().get_with_purchases(&customer_id("c")).await.unwrap().unwrap();
        bought
    };
    let bought_or_back = |id: &str, kind, order: &str, article: &str| sale(id, kind, order, article, 0);
    let (buy, back) = (FeedbackKind::Bought, FeedbackKind::Returned);
    assert_eq!(bought().await, "");
    let first = [
        bought_or_back("1", back, "7", "a"),
        bought_or_back("2", buy, "7", "b"),
        Event { at: NOW + HOUR, ..bought_or_back("3", buy, "7", "c") },
        event("4", buy, Some("d"), "e"),
    ];
    record(&store, &first).await;
    assert_eq!(bought().await, "c\nb", "the latest first");
    let latest = store.events().latest_purchases(&customer_id("c"), 1).await.unwrap();
    assert_eq!(latest, [(article_id("c"), NOW + HOUR)]);
    record(&store, &[bought_or_back("5", buy, "7", "a")]).await;
    assert_eq!(bought().await, "c\nb", "it came back before");
    record(&store, &[bought_or_back("6", buy, "8", "a"), bought_or_back("7", back, "7", "c")]).await;
    let mut now: Vec<String> = bought().await.lines().map(str::to_owned).collect();
    now.sort();
    assert_eq!(now, ["a", "b"]);
    // A return of what was bought before anyone reported purchases.
    record(&store, &[bought_or_back("8", back, "5", "f"), bought_or_back("9", buy, "9", "f")]).await;
    assert!(bought().await.lines().any(|article| article == "f"), "what was bought since is there");
    record(&store, &[bought_or_back("10", back, "9", "f")]).await;
    let all = store.customers().purchases_of(&[customer_id("c"), customer_id("d")]).await.unwrap();
    assert_eq!((&all[&customer_id("d")][..], all[&customer_id("c")].len()), (&["e".to_owned()][..], 2));
}

#[apply(contract)]
async fn old_events_go_and_their_counts_stay(store: Store) {
    let old: Vec<Event> =
        (0..2500).map(|n| event(&format!("o-{n}"), FeedbackKind::Shown, None, "a")).collect();
    record(&store, &old).await;
    record(&store, &[Event { at: NOW + HOUR, ..event("new", FeedbackKind::Shown, None, "a") }]).await;
    assert_eq!(store.events().remove_before(NOW + HOUR).await, Ok(2500));
    assert_eq!(store.events().remove_before(NOW + HOUR).await, Ok(0));
    assert_eq!(store.events().counts(0).await.unwrap(), [(FeedbackKind::Shown, 2501, 0)]);
}

/// Batches from many callers at once: none fails, and everything is counted.
#[apply(contract)]
async fn batches_at_once_wait_for_each_other(store: Store) {
    with_customers(&store, &["c"]).await;
    let send = |caller: u32| {
        let store = store.clone();
        async move {
            let bought = |n| sale(&format!("{caller}-{n}"), FeedbackKind::Bought, "7", &format!("a-{n}"), 10);
            let events: Vec<Event> = (0..50).map(|n| suggested(bought(n), "k")).collect();
            record(&store, &events).await.into_iter().filter(|one| one.as_ref().unwrap().counts).count()
        }
    };
    let counted = join_all((0..8).map(send)).await.into_iter().sum::<usize>();
    assert_eq!(counted, 50, "each suggestion was bought once");
    assert_eq!(store.events().counts(0).await.unwrap(), [(FeedbackKind::Bought, 400, 4000)]);
    assert_eq!(outcomes(&store, "k").await.sold, Sales { bought: 50, returned: 0, kept: 0, revenue: 500 });
}

/// With a ticket, at a time.
fn viewed(id: &str, article: &str, completion: &str, at: Timestamp) -> Event {
    suggested(Event { at, ..event(id, FeedbackKind::Shown, Some("c"), article) }, completion)
}

#[apply(contract)]
async fn a_view_that_comes_after_its_purchase_has_it(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    let bought = |id: &str, order: &str, article: &str, hours: u32| Event {
        at: NOW + hours * HOUR,
        ..sale(id, FeedbackKind::Bought, order, article, 100)
    };
    let sales = [
        bought("1", "7", "a", 2),
        sale("2", FeedbackKind::Returned, "7", "a", 40),
        bought("3", "8", "b", 7 * 24 + 3),
        Event { customer: Some(customer_id("d")), ..bought("4", "9", "a", 2) },
    ];
    assert_eq!(attributions(&store, &sales).await, [None; 4]);
    // Of two that come late, the last before the purchase; neither what was seen after it, nor long before it.
    let late = [
        viewed("5", "a", "last", NOW + HOUR),
        viewed("6", "a", "first", NOW),
        viewed("7", "a", "after", NOW + 3 * HOUR),
        viewed("8", "b", "long ago", NOW + 2 * HOUR),
    ];
    record(&store, &late).await;
    let in_window = Sales { bought: 1, returned: 1, kept: 0, revenue: 60 };
    assert_eq!(outcomes(&store, "last").await, Outcomes { shown: 1, in_window, ..Outcomes::default() });
    for other in ["first", "after", "long ago"] {
        assert_eq!(outcomes(&store, other).await, Outcomes { shown: 1, ..Outcomes::default() }, "{other}");
    }
    let stored = all(store.events().for_customer(&customer_id("c"))).await;
    let found: Vec<_> = stored.iter().map(|event| event.attribution).collect();
    let (window, ticket) = (Some(Attribution::Window), Some(Attribution::Ticket));
    assert_eq!(found, [window, None, window, ticket, ticket, ticket, ticket], "purchases come first");
    // It stays there, and what is added with a ticket was shown, too.
    record(&store, &[viewed("9", "a", "later", NOW + HOUR + HOUR / 2)]).await;
    assert_eq!(outcomes(&store, "later").await.in_window, Sales::default());
    let added = Event { at: NOW + 7 * 24 * HOUR, ..event("10", FeedbackKind::Accepted, Some("c"), "b") };
    record(&store, &[suggested(added, "added")]).await;
    assert_eq!(outcomes(&store, "added").await.in_window.revenue, 100);
    // A visitor.
    let of = |event: Event| Event { customer: None, visitor: Some("v".into()), ..event };
    assert_eq!(attributions(&store, &[of(bought("11", "10", "e", 1))]).await, [None]);
    let mut view = of(viewed("12", "e", "visitor", NOW));
    view.suggestion.as_mut().unwrap().0.customer = None;
    record(&store, &[view]).await;
    assert_eq!(outcomes(&store, "visitor").await.in_window.bought, 1);
}

/// Money goes back as far as it was counted: of the same customer, order and article.
#[apply(contract)]
async fn a_return_takes_back_what_its_purchase_added(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    let sold = async |method: &str| {
        let Sales { bought, returned, revenue, .. } = outcomes(&store, method).await.sold;
        (bought, returned, revenue)
    };
    // Two purchases of one suggestion count as one, and the return of the other is none.
    let purchases =
        ["1", "2"].map(|order| suggested(sale(order, FeedbackKind::Bought, order, "a", 100), "k"));
    record(&store, &purchases).await;
    let other = sale("3", FeedbackKind::Returned, "2", "a", 100);
    assert_eq!(attributions(&store, &[other]).await, [Some(Attribution::Ticket)]);
    let stranger =
        Event { customer: Some(customer_id("d")), ..sale("5", FeedbackKind::Returned, "1", "a", 100) };
    assert_eq!(attributions(&store, &[stranger]).await, [None]);
    assert_eq!(sold("k").await, (1, 0, 100));
    // Without a value, all of it.
    let all_of_it = Event { value: None, ..sale("6", FeedbackKind::Returned, "1", "a", 0) };
    record(&store, &[all_of_it]).await;
    assert_eq!(sold("k").await, (1, 1, 0));
    // A shop that says the order's value of each article takes no other article's money back.
    let order =
        |id: &str, article, value| suggested(sale(id, FeedbackKind::Bought, "11", article, value), "n");
    let returned = sale("13", FeedbackKind::Returned, "11", "d", 130);
    record(&store, &[order("11", "d", 30), order("12", "e", 100), returned]).await;
    assert_eq!(sold("n").await, (2, 1, 100));
    let by = store.feedback().acceptance_by_feature(0, "age", &CountedOnly::default()).await.unwrap();
    let revenue: i64 = by.iter().map(|(_, outcomes)| outcomes.sold.revenue).sum();
    assert_eq!(revenue, 100, "by customer, too: {by:?}");
}
