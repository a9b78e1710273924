//! Saved outfits as stylists work with them: drafts, names, changes in place, deletion, links and the queue.

use std::time::Duration;

use atelier::{
    outcomes::{FeedbackEvent, FeedbackKind, SuggestedArticle},
    outfits::{KEPT, Origin, SavedFilter, SavedOutfit},
    people::PersonId,
    platform::db::{Author, Conflict, Name, Note, Put, Store, StoreError, TokenHash},
};
use atelier_core::domain::{Outfit, Role, Slots};
use futures_util::StreamExt;
use serde_json::json;

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

#[apply(contract)]
async fn a_draft_is_no_outfit_yet(db: TestDatabase) {
    let (store, ada) = start(&db).await;
    let draft = open_outfit("c", &["a", "", "b", ""]);
    let (seq, put) = store.saved_outfits().save(&draft, true, Some(ada), NOW).await.unwrap();
    assert_eq!(put, Put::Added);
    let again = store.saved_outfits().save(&draft, true, Some(ada), LATER).await.unwrap();
    assert_eq!(again, (seq, Put::Unchanged), "a double click makes one");
    let kept = get(&store, seq).await;
    assert_eq!(kept.outfit, draft);
    assert_eq!((kept.author.as_deref(), kept.name, kept.origin), (Some("Ada"), None, Origin::Saved));
    assert_eq!((kept.created_at, kept.changed_at, kept.deleted_at), (NOW, NOW, None));

    // Training, exports and counts leave it out.
    assert_eq!((store.outfits().count().await, store.outfits().get(seq).await), (Ok(0), Ok(None)));
    assert_eq!(store.outfits().first(9).await, Ok(vec![]));
    assert!(all(store.outfits().all()).await.is_empty());
    assert_eq!(store.outfits().for_customer(&customer_id("c"), 0, 9).await, Ok(vec![]));
    let listed = async |with_drafts| {
        store.saved_outfits().for_customer(&customer_id("c"), with_drafts, 0, 9).count().await
    };
    assert_eq!((listed(false).await, listed(true).await), (0, 1));

    let complete = open_outfit("c", &ABCD).slots;
    let finish = |saved: &mut SavedOutfit| (saved.outfit.slots, saved.is_draft) = (complete, false);
    store.saved_outfits().change(seq, 1, finish, LATER).await.unwrap();
    assert_eq!((store.outfits().count().await, listed(false).await), (Ok(1), 1));
    // What was too small for one release may be whole for the next.
    let small = open_outfit("c", &["a", "b"]);
    let (seq, _) = store.saved_outfits().save(&small, true, Some(ada), NOW).await.unwrap();
    let whole = store.saved_outfits().save(&small, false, Some(ada), LATER).await.unwrap();
    assert_eq!((whole, get(&store, seq).await.is_draft), ((seq, Put::Changed), false));
    let again = store.saved_outfits().save(&small, true, Some(ada), LATER).await.unwrap();
    assert_eq!((again, get(&store, seq).await.is_draft), ((seq, Put::Unchanged), false));
}

#[apply(contract)]
async fn a_change_in_place_is_complete_and_in_the_history(db: TestDatabase) {
    let (store, ada) = start(&db).await;
    let by = store.by(Author { actor: atelier::platform::db::Actor::Person(ada), peer: None });
    let (seq, _) = by.saved_outfits().save(&open_outfit("c", &ABCD), false, Some(ada), NOW).await.unwrap();
    let edit = |saved: &mut SavedOutfit| {
        saved.name = Some(name("Autumn office"));
        saved.note = Note::new("Boots in 38\nCall her").unwrap();
        saved.outfit.slots = open_outfit("c", &["a", "b", "c", "x", "y"]).slots;
    };
    by.saved_outfits().change(seq, 1, edit, LATER).await.unwrap();
    let kept = get(&store, seq).await;
    assert_eq!((kept.name.as_ref().map(Name::as_str), kept.revision), (Some("Autumn office"), 2));
    assert_eq!(kept.note.as_str(), "Boots in 38\nCall her");
    assert_eq!((kept.created_at, kept.changed_at), (NOW, LATER));
    assert_eq!(kept.outfit.slots, open_outfit("c", &["a", "b", "c", "x", "y"]).slots);
    // The same change again is none, even with the old revision: a double click.
    by.saved_outfits().change(seq, 1, edit, LATER).await.unwrap();
    assert_eq!(get(&store, seq).await.revision, 2);

    let history = store.audit().for_outfit(Some(&customer_id("c")), seq, 9).await.unwrap();
    let actions: Vec<&str> = history.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["outfit.change", "outfit.save"]);
    let expected = json!({"added": ["x", "y"], "removed": ["d"], "name": "Autumn office", "note": true});
    assert_eq!(serde_json::Value::from(history[0].details.clone()), expected);
    // What it was before can be saved as another outfit.
    let (other, put) = save(&store, &ABCD).await;
    assert!(other != seq && put == Put::Added);
}

#[apply(contract)]
async fn changes_that_conflict_are_refused(db: TestDatabase) {
    let (store, _) = start(&db).await;
    let (first, second) = (save(&store, &ABCD).await.0, save(&store, &["a", "b", "c", "e"]).await.0);
    let imported = import(&store, outfit("c", ["a", "b", "c", "f"], None)).await;
    let change = async |seq, revision, slots: Slots| {
        store.saved_outfits().change(seq, revision, |saved| saved.outfit.slots = slots, LATER).await
    };
    let slots = |ids: &[&str]| open_outfit("c", ids).slots;
    let conflict = |conflict| Err(StoreError::Conflict(conflict));
    assert_eq!(change(second, 1, slots(&ABCD)).await, conflict(Conflict::SameOutfit));
    assert_eq!(change(first, 7, slots(&["a"])).await, conflict(Conflict::OutfitChanged));
    assert_eq!(change(imported, 1, slots(&["a"])).await, conflict(Conflict::ImportedOutfit));
    assert_eq!(store.saved_outfits().delete(imported, NOW).await, conflict(Conflict::ImportedOutfit));
    assert_eq!(change(99, 1, slots(&["a"])).await, Err(StoreError::NotFound("outfit")));
    assert_eq!(get(&store, first).await.outfit.slots, slots(&ABCD));
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
async fn a_link_is_replaced_withdrawn_and_ends_with_the_outfit(db: TestDatabase) {
    let (store, _) = start(&db).await;
    let (seq, _) = save(&store, &ABCD).await;
    let saved = store.saved_outfits();
    let [first, second] = ["first", "second"].map(TokenHash::new);
    let found = async |link: &TokenHash| saved.by_link(link).await.unwrap().map(|saved| saved.seq);
    saved.set_link(seq, Some((&first, LATER)), NOW).await.unwrap();
    assert_eq!((found(&first).await, get(&store, seq).await.link_until), (Some(seq), Some(LATER)));
    saved.set_link(seq, Some((&second, LATER)), NOW).await.unwrap();
    assert_eq!((found(&first).await, found(&second).await), (None, Some(seq)));
    saved.set_link(seq, None, NOW).await.unwrap();
    assert_eq!((found(&second).await, get(&store, seq).await.link_until), (None, None));

    saved.set_link(seq, Some((&first, LATER)), NOW).await.unwrap();
    saved.delete(seq, NOW).await.unwrap();
    saved.restore(seq, NOW).await.unwrap();
    assert_eq!(found(&first).await, None, "a deletion withdraws the link for good");
    let actions = store.audit().for_outfit(Some(&customer_id("c")), seq, 9).await.unwrap();
    let actions: Vec<&str> = actions.iter().map(|entry| entry.action.as_str()).collect();
    let (share, withdraw) = ("outfit.share", "outfit.withdraw");
    assert_eq!(actions, ["outfit.restore", "outfit.delete", share, withdraw, share, share, "outfit.save"]);
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
    let log = store
        .audit()
        .list(&atelier::platform::db::AuditFilter::default(), None, 9)
        .await
        .unwrap()
        .into_iter();
    let details: Vec<_> = log
        .filter(|entry| entry.action == "customer.note" && entry.customer == Some(customer_id("c")))
        .map(|entry| serde_json::Value::from(entry.details))
        .collect();
    let [first, second] = [kept[0].id, kept[1].id];
    let expected = [json!({"note": first, "deleted": true}), json!({"note": second}), json!({"note": first})];
    assert_eq!(details, expected, "the latest first");
}
