use atelier::store::{Conflict, Origin, Put, StoreError};
use atelier_core::domain::{FeatureValue, Outfit, Role, Split};
use futures_util::TryStreamExt;

use super::{LATER, NOW, article_id, coat, customer_id, name, outfit, with_customers};
use crate::harness::{TestDatabase, apply, contract};

const ABCD: [&str; 4] = ["a", "b", "c", "d"];

#[apply(contract)]
async fn a_saved_outfit_is_read_back(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let person = store.people().create(&name("Ada"), Role::Stylist, NOW).await.unwrap();
    let features = [("occasion".into(), FeatureValue::Text("Hochzeit 💒".into()))].into_iter().collect();
    let given = Outfit::new(customer_id("c"), ["z", "b", "😀", "a"].map(article_id).to_vec(), None, features);
    let given = given.unwrap();
    let (seq, put) = store.outfits().save(&given, Origin::Saved, Some(person.id), NOW).await.unwrap();
    assert_eq!(put, Put::Added);
    let kept = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!(kept.outfit, given);
    assert_eq!((kept.seq, kept.origin, kept.person), (seq, Origin::Saved, Some(person.id)));
    assert_eq!(kept.created_at, NOW);
    assert_eq!(store.outfits().get(seq + 1).await, Ok(None));
}

#[apply(contract)]
async fn the_same_outfit_is_kept_once(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c", "d"]).await;
    let save = async |outfit| store.outfits().save(&outfit, Origin::Saved, None, NOW).await.unwrap();
    let (first, put) = save(outfit("c", ABCD, None)).await;
    assert_eq!(put, Put::Added);
    assert_eq!(save(outfit("c", ["d", "b", "a", "c"], None)).await, (first, Put::Unchanged));
    let mut for_a_wedding = outfit("c", ABCD, None);
    for_a_wedding.features.insert("occasion", FeatureValue::Text("wedding".into()));
    for other in [outfit("d", ABCD, None), outfit("c", ["a", "b", "c", "e"], None), for_a_wedding] {
        let (seq, put) = save(other).await;
        assert_eq!(put, Put::Added);
        assert_ne!(seq, first);
    }
    assert_eq!(store.outfits().count().await, Ok(4));
}

#[apply(contract)]
async fn saving_again_changes_only_the_split(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let save = async |split, origin, now| {
        store.outfits().save(&outfit("c", ABCD, split), origin, None, now).await.unwrap()
    };
    let (seq, _) = save(Some(Split::Train), Origin::Imported, NOW).await;
    assert_eq!(save(Some(Split::Validation), Origin::Imported, LATER).await, (seq, Put::Changed));
    assert_eq!(save(None, Origin::Imported, LATER).await, (seq, Put::Unchanged));
    let kept = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!(kept.outfit.split, Some(Split::Validation));
    assert_eq!((kept.origin, kept.created_at), (Origin::Imported, NOW));
    // A person who saves it takes it over.
    assert_eq!(save(None, Origin::Saved, LATER).await, (seq, Put::Changed));
    assert_eq!(save(None, Origin::Saved, LATER).await, (seq, Put::Unchanged));
    let taken = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!(
        (taken.origin, taken.created_at, taken.outfit.split),
        (Origin::Saved, LATER, kept.outfit.split)
    );
}

#[apply(contract)]
async fn an_unknown_customer_is_a_conflict(db: TestDatabase) {
    let store = db.open().await;
    let refused = store.outfits().save(&outfit("nobody", ABCD, None), Origin::Saved, None, NOW).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    let mut import = store.import(NOW).await.unwrap();
    let refused = import.outfits(&[outfit("nobody", ABCD, None)]).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::UnknownCustomer)));
    drop(import);
    assert_eq!(store.outfits().count().await, Ok(0));
}

#[apply(contract)]
async fn outfits_of_a_customer_are_ordered(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c", "d"]).await;
    for n in 0..5 {
        for whose in ["c", "d"] {
            let articles = [&format!("{n}"), "x", "y", "z"];
            store.outfits().save(&outfit(whose, articles, None), Origin::Saved, None, NOW).await.unwrap();
        }
    }
    let first = store.outfits().for_customer(&customer_id("c"), 0, 3).await.unwrap();
    let rest = store.outfits().for_customer(&customer_id("c"), first[2].seq, 3).await.unwrap();
    let firsts: Vec<_> = first.iter().chain(&rest).map(|kept| kept.outfit.articles()[0].as_str()).collect();
    assert_eq!(firsts, ["0", "1", "2", "3", "4"]);
    assert!(first.iter().chain(&rest).all(|kept| kept.outfit.customer == customer_id("c")));
    let all: Vec<_> = store.outfits().all().try_collect().await.unwrap();
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by(|a, b| a.seq < b.seq));
}

#[apply(contract)]
async fn first_returns_the_oldest(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c", "d"]).await;
    let mut seqs = Vec::new();
    for (whose, article) in [("d", "1"), ("c", "2"), ("d", "3")] {
        let outfit = outfit(whose, [article, "x", "y", "z"], None);
        seqs.push(store.outfits().save(&outfit, Origin::Saved, None, NOW).await.unwrap().0);
    }
    for n in [0, 2, 3] {
        let first = store.outfits().first(n).await.unwrap();
        assert_eq!(first.iter().map(|kept| kept.seq).collect::<Vec<_>>(), seqs[..n as usize]);
    }
    assert_eq!(store.outfits().first(10).await.unwrap().len(), 3);
}

#[apply(contract)]
async fn outfits_outlive_their_articles(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    store.articles().put(&coat("a"), NOW).await.unwrap();
    let (seq, _) = store.outfits().save(&outfit("c", ABCD, None), Origin::Saved, None, NOW).await.unwrap();
    store.articles().delete(&article_id("a"), NOW).await.unwrap();
    let kept = store.outfits().get(seq).await.unwrap().unwrap();
    assert_eq!(kept.outfit.articles(), ABCD.map(article_id));
}

#[apply(contract)]
async fn a_deleted_outfit_is_gone(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let (seq, _) = store.outfits().save(&outfit("c", ABCD, None), Origin::Accepted, None, NOW).await.unwrap();
    assert_eq!(store.outfits().delete(seq, NOW).await, Ok(true));
    assert_eq!(store.outfits().delete(seq, NOW).await, Ok(false));
    assert_eq!(store.outfits().get(seq).await, Ok(None));
    let (again, put) =
        store.outfits().save(&outfit("c", ABCD, None), Origin::Saved, None, NOW).await.unwrap();
    assert_eq!(put, Put::Added);
    assert!(again > seq, "a number is never used again");
}
