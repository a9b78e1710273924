use atelier::{
    outfits::Origin,
    platform::db::{Conflict, Counts, Put, Store, StoreError},
};
use atelier_core::domain::{ArticleId, FeatureValue, Role, Split};

use crate::harness::{
    LATER, NOW, Unconditional, add_person, all, apply, article_id, coat, contract, customer_id, open_outfit,
    outfit, with_customers,
};

const ABCD: [&str; 4] = ["a", "b", "c", "d"];

async fn save(store: &Store, customer: &str, ids: [&str; 4]) -> (i64, Put) {
    store.saved_outfits().save(&open_outfit(customer, &ids), false, None, NOW).await.unwrap()
}

#[apply(contract)]
async fn a_saved_outfit_is_read_back(store: Store) {
    with_customers(&store, &["c"]).await;
    let ada = add_person(&store, "Ada", Role::Stylist).await;
    let mut given = open_outfit("c", &["z", "b", "😀", "a"]);
    given.features.insert("occasion", FeatureValue::Text("Hochzeit 💒".into()));
    let (seq, put) = store.saved_outfits().save(&given, false, Some(ada.id), NOW).await.unwrap();
    assert_eq!(put, Put::Added);
    let kept = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!((kept.seq, kept.origin, kept.outfit.split), (seq, Origin::Saved, None));
    assert!(kept.outfit.articles().iter().map(ArticleId::as_str).eq(["z", "b", "😀", "a"]));
    assert_eq!((kept.outfit.customer, kept.outfit.features), (customer_id("c"), given.features));
    assert_eq!(store.outfits().get(seq + 1).await, Ok(None));
}

#[apply(contract)]
async fn the_same_outfit_is_kept_once(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    let (first, put) = save(&store, "c", ABCD).await;
    assert_eq!(put, Put::Added);
    assert_eq!(save(&store, "c", ["d", "b", "a", "c"]).await, (first, Put::Unchanged));
    let mut for_a_wedding = open_outfit("c", &ABCD);
    for_a_wedding.features.insert("occasion", FeatureValue::Text("wedding".into()));
    for other in [open_outfit("d", &ABCD), open_outfit("c", &["a", "b", "c", "e"]), for_a_wedding] {
        let (seq, put) = store.saved_outfits().save(&other, false, None, NOW).await.unwrap();
        assert_eq!(put, Put::Added);
        assert_ne!(seq, first);
    }
    assert_eq!(store.outfits().count().await, Ok(4));
}

#[apply(contract)]
async fn importing_again_changes_only_the_split(store: Store) {
    with_customers(&store, &["c"]).await;
    let (train, validation) = (Some(Split::Train), Some(Split::Validation));
    for (split, counted, kept) in [
        (train, Counts { added: 1, ..Counts::default() }, train),
        (validation, Counts { changed: 1, ..Counts::default() }, validation),
        (None, Counts { unchanged: 1, ..Counts::default() }, validation),
    ] {
        let mut import = store.import(NOW).await.unwrap();
        assert_eq!(import.outfits(&[outfit("c", ABCD, split)]).await.unwrap().counts, counted);
        import.commit().await.unwrap();
        let records = store.outfits().first(9).await.unwrap();
        let [imported] = &records[..] else { panic!("one outfit: {records:?}") };
        assert_eq!((imported.outfit.split, imported.origin), (kept, Origin::Imported));
    }
    // A person who saves it takes it over.
    let seq = store.outfits().first(1).await.unwrap()[0].seq;
    let ada = add_person(&store, "Ada", Role::Stylist).await;
    for put in [Put::Changed, Put::Unchanged] {
        let saved = store.saved_outfits().save(&open_outfit("c", &ABCD), false, Some(ada.id), LATER).await;
        assert_eq!(saved, Ok((seq, put)));
    }
    let taken = store.saved_outfits().get(seq).await.unwrap().unwrap();
    let found = (taken.origin, taken.split, taken.author.as_deref());
    assert_eq!(found, (Origin::Saved, validation, Some("Ada")));
    assert_eq!((taken.created_at, taken.changed_at), (LATER, LATER));
}

#[apply(contract)]
async fn an_unknown_customer_is_a_conflict(store: Store) {
    let refused = store.saved_outfits().save(&open_outfit("nobody", &ABCD), false, None, NOW).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    let mut import = store.import(NOW).await.unwrap();
    let refused = import.outfits(&[outfit("nobody", ABCD, None)]).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    drop(import);
    assert_eq!(store.outfits().count().await, Ok(0));
}

#[apply(contract)]
async fn outfits_of_a_customer_are_ordered(store: Store) {
    with_customers(&store, &["c", "d"]).await;
    for n in 0..5 {
        for whose in ["c", "d"] {
            save(&store, whose, [&n.to_string(), "x", "y", "z"]).await;
        }
    }
    let first = store.outfits().for_customer(&customer_id("c"), 0, 3).await.unwrap();
    let rest = store.outfits().for_customer(&customer_id("c"), first[2].seq, 3).await.unwrap();
    let firsts: Vec<_> = first.iter().chain(&rest).map(|kept| kept.outfit.articles()[0].as_str()).collect();
    assert_eq!(firsts, ["0", "1", "2", "3", "4"]);
    assert!(first.iter().chain(&rest).all(|kept| kept.outfit.customer == customer_id("c")));
    let all = all(store.outfits().all()).await;
    assert!(all.len() == 10 && all.is_sorted_by(|a, b| a.seq < b.seq));
    for n in [0, 2, 10] {
        assert_eq!(store.outfits().first(n).await.unwrap(), all[..n as usize], "the oldest");
    }
}

#[apply(contract)]
async fn outfits_outlive_their_articles_until_they_are_deleted(store: Store) {
    with_customers(&store, &["c"]).await;
    store.articles().set(&coat("a"), NOW).await.unwrap();
    let (seq, _) = save(&store, "c", ABCD).await;
    store.articles().remove(&article_id("a"), NOW).await.unwrap();
    let kept = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!(kept.outfit.articles(), ABCD.map(article_id));
    assert_eq!(store.outfits().delete(seq, NOW).await, Ok(true));
    assert_eq!(store.outfits().delete(seq, NOW).await, Ok(false));
    assert_eq!(store.outfits().get(seq).await, Ok(None));
    let (again, put) = save(&store, "c", ABCD).await;
    assert_eq!(put, Put::Added);
    assert!(again > seq, "a number is never used again");
}
