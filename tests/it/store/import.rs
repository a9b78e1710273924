use atelier::store::{Counts, Outcome, Put, Store};
use atelier_core::domain::{Article, Customer, Outfit, Split};
use futures_util::TryStreamExt;
use serde_json::json;

use super::{LATER, NOW, ODD_IDS, article, article_id, coat, customer, customer_id, outfit, with_customers};
use crate::harness::{TestDatabase, apply, contract};

/// More than fit into one statement, and not a multiple of that.
const MANY: u32 = 1201;

fn world() -> (Vec<Article>, Vec<Customer>, Vec<Outfit>) {
    let articles = (0..MANY).map(|n| coat(&format!("a-{n:04}"))).collect();
    let customers = (0..MANY).map(|n| customer(&format!("c-{n:04}"))).collect();
    let outfits = (0..MANY)
        .map(|n| {
            let split = if n % 20 == 0 { Split::Validation } else { Split::Train };
            let articles = [n, n + 1, n + 2, n + 3].map(|n| format!("a-{:04}", n % MANY));
            outfit(&format!("c-{n:04}"), articles.each_ref().map(String::as_str), Some(split))
        })
        .collect();
    (articles, customers, outfits)
}

fn counts(added: u32, changed: u32, unchanged: u32) -> Outcome {
    let counts = Counts { added: added.into(), changed: changed.into(), unchanged: unchanged.into() };
    Outcome { counts, refused: Vec::new() }
}

#[apply(contract)]
async fn imports_all_tables(db: TestDatabase) {
    let store = db.open().await;
    let (articles, customers, outfits) = world();
    let mut import = store.import(NOW).await.unwrap();
    assert_eq!(import.put(&articles).await, Ok(counts(MANY, 0, 0)));
    assert_eq!(import.put(&customers).await, Ok(counts(MANY, 0, 0)));
    assert_eq!(import.outfits(&outfits).await, Ok(counts(MANY, 0, 0)));
    assert_eq!(import.put::<Article>(&[]).await, Ok(counts(0, 0, 0)));
    import.commit().await.unwrap();
    assert_eq!(store.articles().all().try_collect::<Vec<_>>().await.unwrap(), articles);
    assert_eq!(store.customers().all().try_collect::<Vec<_>>().await.unwrap(), customers);
    let kept: Vec<_> = store.outfits().all().map_ok(|kept| kept.outfit).try_collect().await.unwrap();
    assert_eq!(kept, outfits);
}

#[apply(contract)]
async fn a_dropped_import_leaves_nothing(db: TestDatabase) {
    let store = db.open().await;
    store.articles().put(&coat("before"), NOW).await.unwrap();
    let (articles, customers, outfits) = world();
    let mut import = store.import(NOW).await.unwrap();
    import.put(&articles).await.unwrap();
    import.put(&[article("before", "hat", json!({}))]).await.unwrap();
    import.put(&customers).await.unwrap();
    import.outfits(&outfits).await.unwrap();
    drop(import);
    assert_eq!(store.articles().all().try_collect::<Vec<_>>().await.unwrap(), [coat("before")]);
    assert_eq!(store.customers().count().await, Ok(0));
    assert_eq!(store.outfits().count().await, Ok(0));
    // The connection can be used for the next write.
    assert_eq!(store.articles().put(&coat("after"), NOW).await, Ok(Put::Added));
}

#[apply(contract)]
async fn a_second_import_doubles_nothing(db: TestDatabase) {
    let store = db.open().await;
    let (articles, customers, outfits) = world();
    for expected in [|| counts(MANY, 0, 0), || counts(0, 0, MANY)] {
        let mut import = store.import(LATER).await.unwrap();
        assert_eq!(import.put(&articles).await, Ok(expected()));
        assert_eq!(import.put(&customers).await, Ok(expected()));
        assert_eq!(import.outfits(&outfits).await, Ok(expected()));
        import.commit().await.unwrap();
    }
    for count in
        [store.articles().count().await, store.customers().count().await, store.outfits().count().await]
    {
        assert_eq!(count, Ok(MANY.into()));
    }
}

#[apply(contract)]
async fn a_repeated_outfit_is_kept_twice(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let laid = |split| outfit("c", ["a", "b", "d", "e"], Some(split));
    let file = [laid(Split::Train), laid(Split::Validation), laid(Split::Train)];
    for expected in [counts(3, 0, 0), counts(0, 0, 3)] {
        let mut import = store.import(NOW).await.unwrap();
        assert_eq!(import.outfits(&file).await, Ok(expected));
        import.commit().await.unwrap();
    }
    let kept: Vec<_> = store.outfits().all().map_ok(|kept| kept.outfit).try_collect().await.unwrap();
    assert_eq!(kept, file);
}

#[apply(contract)]
async fn what_is_left_of_repeated_outfits_is_known_again(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c"]).await;
    let file = vec![outfit("c", ["a", "b", "d", "e"], Some(Split::Train)); 4];
    let import = async |outfits: &[Outfit], expected| {
        let mut import = store.import(NOW).await.unwrap();
        assert_eq!(import.outfits(outfits).await, Ok(expected));
        import.commit().await.unwrap();
    };
    import(&file, counts(4, 0, 0)).await;
    // The first one, one in the middle, and the last one.
    for (index, left) in [(0, 3), (1, 2), (1, 1)] {
        let stored: Vec<_> = store.outfits().all().try_collect().await.unwrap();
        assert_eq!(store.outfits().delete(stored[index].seq, NOW).await, Ok(true));
        import(&file[..left], counts(0, 0, u32::try_from(left).unwrap())).await;
    }
}

#[apply(contract)]
async fn counts_what_changed(db: TestDatabase) {
    let store = db.open().await;
    let (mut articles, customers, mut outfits) = world();
    let mut import = store.import(NOW).await.unwrap();
    import.put(&articles[..1000]).await.unwrap();
    import.put(&customers).await.unwrap();
    import.outfits(&outfits[..1000]).await.unwrap();
    import.commit().await.unwrap();

    articles[0] = article("a-0000", "hat", json!({}));
    articles[700] = article("a-0700", "coat", json!({"price": 1}));
    outfits[1].split = Some(Split::Validation);
    outfits[2].split = None;
    let mut import = store.import(LATER).await.unwrap();
    assert_eq!(import.put(&articles).await, Ok(counts(MANY - 1000, 2, 998)));
    assert_eq!(import.outfits(&outfits).await, Ok(counts(MANY - 1000, 1, 999)));
    import.commit().await.unwrap();
    assert_eq!(store.articles().get(&articles[0].id).await, Ok(Some(articles[0].clone())));
}

#[apply(contract)]
async fn the_later_of_two_rows_wins(db: TestDatabase) {
    let store = db.open().await;
    let rows = [coat("a"), coat("b"), article("a", "hat", json!({})), article("a", "hat", json!({}))];
    let mut import = store.import(NOW).await.unwrap();
    assert_eq!(import.put(&rows).await, Ok(counts(2, 1, 1)));
    import.commit().await.unwrap();
    assert_eq!(store.articles().get(&rows[0].id).await, Ok(Some(rows[2].clone())));
}

#[apply(contract)]
async fn is_invisible_until_committed(db: TestDatabase) {
    let store = db.open().await;
    let mut import = store.import(NOW).await.unwrap();
    import.put(&[coat("a")]).await.unwrap();
    assert_eq!(store.articles().count().await, Ok(0), "readers go on meanwhile");
    import.commit().await.unwrap();
    assert_eq!(store.articles().count().await, Ok(1));
}

#[apply(contract)]
async fn sees_existing_and_imported_rows(db: TestDatabase) {
    let store = db.open().await;
    let mut import = store.import(NOW).await.unwrap();
    assert_eq!(import.is_empty().await, Ok(true));
    import.put(&[customer("c")]).await.unwrap();
    assert_eq!(import.is_empty().await, Ok(false), "a customer is something");
    import.commit().await.unwrap();

    let mut import = store.import(NOW).await.unwrap();
    assert_eq!(import.article_ids().await, Ok(vec![]));
    import.put(&ODD_IDS.map(coat)).await.unwrap();
    import.put(&[customer("Ä")]).await.unwrap();
    assert_eq!(import.article_ids().await, Ok(ODD_IDS.map(article_id).to_vec()));
    assert_eq!(import.customer_ids().await, Ok(["c", "Ä"].map(customer_id).to_vec()));
    drop(import);
    store.customers().erase(&customer_id("c"), NOW).await.unwrap();
    store.articles().put(&coat("a"), NOW).await.unwrap();
    assert_eq!(store.import(NOW).await.unwrap().is_empty().await, Ok(false), "an article is something");
}

/// Two services start together on a new database.
#[apply(contract)]
async fn two_first_imports_run_one_after_the_other(db: TestDatabase) {
    let fill = async |store: Store| {
        let mut import = store.import(NOW).await.unwrap();
        let first = import.is_empty().await.unwrap();
        if first {
            let (articles, customers, outfits) = world();
            import.put(&articles).await.unwrap();
            import.put(&customers).await.unwrap();
            import.outfits(&outfits).await.unwrap();
        }
        import.commit().await.unwrap();
        assert_eq!(store.outfits().count().await, Ok(MANY.into()), "either finds it full");
        first
    };
    let (one, other) = tokio::join!(fill(db.open().await), fill(db.open().await));
    assert!(one ^ other, "one of them filled it");
}
