//! Saved outfits as stylists work with them: drafts, names, changes in place, deletion, links and the queue.

use std::time::Duration;

use atelier::{
    outcomes::{FeedbackEvent, FeedbackKind, SuggestedArticle},
    outfits::{KEPT, SavedFilter, SavedOutfit},
    people::PersonId,
    platform::db::{Conflict, Note, Put, Store, StoreError},
};
use atelier_core::domain::{Outfit, Role};

use crate::harness::{
    LATER, NOW, TestDatabase, add_person, all, apply, contract, customer_id, feedback, name, open_outfit,
    outfit, with_customers,
};

const ABCD: [&str; 4] = ["a", "b", "c", "d"];

async fn start(db: &TestDatabase) -> (Store, PersonId) {
    let store = db.open().await;
    with_customers(&store, &["c", "d"]).await;
    let ada = add_person(&store, "Ada", Role::Stylist).await;
    (store, ada.id)
}

async fn get(store: &Store, seq: i64) -> SavedOutfit {
    store.saved_outfits().get(seq).await.unwrap().unwrap()
}

/// Saves an outfit of the customer `c`.
async fn save(store: &Store, ids: &[&str]) -> (i64, Put) {
    store.saved_outfits().save(&open_outfit("c", ids), false, None, NOW).await.unwrap()
}

/// Imports an outfit, and gives its number.
async fn import(store: &Store, outfit: Outfit) -> i64 {
    let mut import = store.import(NOW).await.unwrap();
    import.outfits(&[outfit]).await.unwrap();
    import.commit().await.unwrap();
    all(store.outfits().all()).await.last().unwrap().seq
}

/// What was too small for one release may be whole for the next.
#[apply(contract)]
async fn a_draft_that_is_saved_whole_is_an_outfit(db: TestDatabase) {
    let (store, ada) = start(&db).await;
    let save = async |is_draft| {
        let small = open_outfit("c", &["a", "b"]);
        let (seq, put) = store.saved_outfits().save(&small, is_draft, Some(ada), NOW).await.unwrap();
        (put, get(&store, seq).await.is_draft, store.outfits().count().await)
    };
    assert_eq!(save(true).await, (Put::Added, true, Ok(0)));
    assert_eq!(save(true).await, (Put::Unchanged, true, Ok(0)), "a double click makes one");
    assert_eq!(save(false).await, (Put::Changed, false, Ok(1)));
    assert_eq!(save(true).await, (Put::Unchanged, false, Ok(1)));
}

#[apply(contract)]
async fn a_deleted_outfit_can_be_brought_back(db: TestDatabase) {
    let (store, _) = start(&db).await;
    let (seq, _) = save(&store, &ABCD).await;
    let saved = store.saved_outfits();
    saved.delete(seq, LATER).await.unwrap();
    assert_eq!((get(&store, seq).await.deleted_at, store.outfits().count().await), (Some(LATER), Ok(0)));
    assert_eq!(store.outfits().delete(seq, LATER).await, Ok(false));
    assert_eq!(saved.list(&SavedFilter::default(), 0, 9).await, Ok((vec![], 0)));
    saved.restore(seq, LATER).await.unwrap();
    assert_eq!((get(&store, seq).await.deleted_at, store.outfits().count().await), (None, Ok(1)));
    assert_eq!(save(&store, &ABCD).await, (seq, Put::Unchanged), "it is the same outfit again");

    // Saved again meanwhile, it stays deleted.
    saved.delete(seq, LATER).await.unwrap();
    let (again, put) = save(&store, &ABCD).await;
    assert!(again != seq && put == Put::Added);
    assert_eq!(saved.restore(seq, LATER).await, Err(StoreError::Conflict(Conflict::SameOutfit)));

    // Later than it can be brought back, it is removed.
    saved.delete(again, LATER + Duration::from_secs(1)).await.unwrap();
    assert_eq!(saved.remove_deleted(LATER + KEPT).await, Ok(0));
    assert_eq!(saved.remove_deleted(LATER + KEPT + Duration::from_secs(1)).await, Ok(1));
    assert_eq!(saved.get(seq).await, Ok(None));
    assert!(get(&store, again).await.deleted_at.is_some());
}

#[apply(contract)]
async fn lists_are_searched_by_name_customer_and_author(db: TestDatabase) {
    let (store, ada) = start(&db).await;
    let saved = store.saved_outfits();
    let (first, _) = saved.save(&open_outfit("c", &["a"]), true, Some(ada), NOW).await.unwrap();
    let (second, _) = saved.save(&open_outfit("d", &["b"]), true, None, NOW).await.unwrap();
    let (third, _) = saved.save(&open_outfit("d", &ABCD), false, None, NOW).await.unwrap();
    assert!(import(&store, outfit("c", ABCD, None)).await > third);
    let rename = |saved: &mut SavedOutfit| saved.name = Some(name("Ärmel & Öl_100%"));
    saved.change(second, 1, rename, LATER).await.unwrap();
    let list = async |search, only_drafts, by| {
        let filter = SavedFilter { search, only_drafts, by, ..SavedFilter::default() };
        let (found, count) = saved.list(&filter, 0, 9).await.unwrap();
        assert_eq!(found.len() as u64, count);
        found.into_iter().map(|saved| saved.seq).collect::<Vec<_>>()
    };
    assert_eq!(list("", false, None).await, [second, third, first], "the latest change first");
    assert_eq!(list("", true, None).await, [second, first]);
    assert_eq!(list("ada", false, None).await, [first]);
    assert_eq!(list("ärmel 100%", false, None).await, [second]);
    assert!(list("ärmel ada", false, None).await.is_empty());
    assert_eq!(list("", false, Some(ada)).await, [first]);
    let (page, count) = saved.list(&SavedFilter::default(), 1, 1).await.unwrap();
    assert_eq!((page[0].seq, count), (third, 3));
}

#[apply(contract)]
async fn the_queue_knows_who_waits(db: TestDatabase) {
    let (store, _) = start(&db).await;
    let refuse = async |customer: &str, article: &str, at| {
        let key = format!("k-{customer}-{article}");
        let event = feedback(FeedbackKind::Rejected, &key, article);
        let event = FeedbackEvent { customer: Some(customer_id(customer)), at, ..event };
        store.feedback().record(&key, &event, &SuggestedArticle::default()).await.unwrap();
    };
    refuse("c", "a", NOW).await;
    refuse("d", "a", LATER).await;
    refuse("d", "b", LATER).await;
    let waiting = async || store.feedback().refused_since_last_outfit(9).await.unwrap();
    assert_eq!(waiting().await, [(customer_id("c"), 1), (customer_id("d"), 2)]);
    for (customer, at) in [("c", LATER), ("d", NOW)] {
        store.saved_outfits().save(&open_outfit(customer, &ABCD), false, None, at).await.unwrap();
    }
    assert_eq!(waiting().await, [(customer_id("d"), 2)], "refused after the last outfit");
    let longest = store.saved_outfits().longest_ago(9).await.unwrap();
    assert_eq!(longest, [(customer_id("d"), NOW), (customer_id("c"), LATER)]);
}

#[apply(contract)]
async fn notes_are_kept_in_order(db: TestDatabase) {
    let (store, ada) = start(&db).await;
    let note = |text: &str| Note::new(text).unwrap();
    for text in ["first", "second\nline"] {
        store.notes().add(&customer_id("c"), &note(text), ada, NOW).await.unwrap();
    }
    let kept = all(store.notes().for_customer(&customer_id("c"))).await;
    assert_eq!((kept[0].author.as_str(), kept[0].at), ("Ada", NOW));
    assert_eq!([&kept[0].note, &kept[1].note], [&note("first"), &note("second\nline")]);
    assert_eq!(store.notes().delete(kept[0].id, NOW).await, Ok(true));
    assert_eq!(store.notes().delete(kept[0].id, NOW).await, Ok(false));
    let left = all(store.notes().for_customer(&customer_id("c"))).await;
    assert_eq!(left, kept[1..]);
    let refused = store.notes().add(&customer_id("nobody"), &note("x"), ada, NOW).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
}
