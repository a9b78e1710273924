use std::time::{Duration, Instant};

use atelier::{
    catalogue::ArticleFilter,
    imports::{Import, Outcome},
    platform::db::{Conflict, Counts, Expected, Put, Store, StoreError},
};
use atelier_core::domain::{Article, ArticlePatch, Customer, Features, Outfit, Split};
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::harness::{
    LATER, NOW, TestDatabase, Unconditional, all, apply, article, article_id, coat, contract, customer,
    customer_id, open_outfit, outfit, with_customers,
};

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
async fn all_tables_are_imported_and_a_second_time_changes_nothing(store: Store) {
    let (articles, customers, outfits) = world();
    for expected in [|| counts(MANY, 0, 0), || counts(0, 0, MANY)] {
        let mut import = store.import(LATER).await.unwrap();
        assert_eq!(import.put(&articles).await, Ok(expected()));
        assert_eq!(import.put(&customers).await, Ok(expected()));
        assert_eq!(import.outfits(&outfits).await, Ok(expected()));
        assert_eq!(import.put::<Article>(&[]).await, Ok(counts(0, 0, 0)));
        import.commit().await.unwrap();
    }
    assert_eq!(all(store.articles().all()).await, articles);
    assert_eq!(all(store.customers().all()).await, customers);
    let kept: Vec<_> = all(store.outfits().all().map_ok(|kept| kept.outfit)).await;
    assert_eq!(kept, outfits);
}

#[apply(contract)]
async fn repeated_outfits_are_kept_and_what_is_left_of_them_is_known_again(store: Store) {
    with_customers(&store, &["c"]).await;
    let split = |n: usize| Some(if n == 1 { Split::Validation } else { Split::Train });
    let file: Vec<_> = (0..4).map(|n| outfit("c", ["a", "b", "d", "e"], split(n))).collect();
    let import = async |outfits: &[Outfit], expected| {
        let mut import = store.import(NOW).await.unwrap();
        assert_eq!(import.outfits(outfits).await, Ok(expected));
        import.commit().await.unwrap();
    };
    import(&file, counts(4, 0, 0)).await;
    import(&file, counts(0, 0, 4)).await;
    let kept: Vec<_> = store.outfits().all().map_ok(|kept| kept.outfit).try_collect().await.unwrap();
    assert_eq!(kept, file);
    let file = vec![outfit("c", ["a", "b", "d", "e"], None); 4];
    // The first one, one in the middle, and the last one.
    for (index, left) in [(0, 3), (1, 2), (1, 1)] {
        let stored = all(store.outfits().all()).await;
        assert_eq!(store.outfits().delete(stored[index].seq, NOW).await, Ok(true));
        import(&file[..left], counts(0, 0, u32::try_from(left).unwrap())).await;
    }
}

#[apply(contract)]
async fn counts_what_changed(store: Store) {
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
    let kept = all(store.outfits().all()).await;
    assert_eq!([1, 2].map(|n| kept[n].outfit.split), [Some(Split::Validation), Some(Split::Train)]);
    // The later of two rows wins.
    let rows = [coat("a"), coat("b"), article("a", "hat", json!({})), article("a", "hat", json!({}))];
    let mut import = store.import(LATER).await.unwrap();
    assert_eq!(import.put(&rows).await, Ok(counts(2, 1, 1)));
    import.commit().await.unwrap();
    assert_eq!(store.articles().get(&rows[0].id).await, Ok(Some(rows[2].clone())));
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

/// One article that stays, one that changes, one that is retired, and one that is new; a customer of each of two kinds; an outfit
/// whose split changes, and a new one.
async fn begin_changes(store: &Store) -> Import {
    let mut import = store.import(LATER).await.unwrap();
    import.put(&[coat("changed"), coat("new"), coat("stays")]).await.unwrap();
    import.retire(&[article_id("retired")]).await.unwrap();
    import.put(&["c", "new"].map(customer)).await.unwrap();
    import
        .outfits(&[
            outfit("c", ["a", "b", "d", "e"], Some(Split::Validation)),
            outfit("new", ["a", "b", "d", "e"], None),
        ])
        .await
        .unwrap();
    import
}

async fn before_changes(store: &Store) {
    let mut import = store.import(NOW).await.unwrap();
    let hats = ["changed", "retired"].map(|id| article(id, "hat", json!({})));
    import.put(&[hats[0].clone(), hats[1].clone(), coat("stays")]).await.unwrap();
    import.put(&[Customer { id: customer_id("c"), features: Features::default() }]).await.unwrap();
    import.outfits(&[outfit("c", ["a", "b", "d", "e"], Some(Split::Train))]).await.unwrap();
    import.commit().await.unwrap();
}

/// All that readers see of it, with versions.
async fn look(store: &Store) -> Vec<String> {
    let (articles, customers) = (store.articles(), store.customers());
    let hats = ArticleFilter { kind: Some("hat".into()), ..ArticleFilter::default() };
    let red = ArticleFilter { search: "red".into(), ..ArticleFilter::default() };
    let unparsed: Vec<_> = articles.all_unparsed().try_collect().await.unwrap();
    let mut seen = vec![format!(
        "{:?} {:?} {:?} {unparsed:?} {:?} {:?} {:?} {:?} {:?}",
        articles.count().await,
        articles.find(hats, None, 9).try_collect::<Vec<_>>().await,
        articles.find(red, None, 9).try_collect::<Vec<_>>().await,
        customers.count().await,
        customers.all().try_collect::<Vec<_>>().await,
        store.outfits().first(9).await,
        store.outfits().count().await,
        store.saved_outfits().never(9).await,
    )];
    for id in ["changed", "new", "retired", "stays"] {
        seen.push(format!("{:?}", articles.get_stored(&article_id(id)).await));
    }
    for id in ["c", "new"] {
        seen.push(format!("{:?}", customers.get_stored(&customer_id(id)).await));
        seen.push(format!("{:?}", store.outfits().for_customer(&customer_id(id), 0, 9).await));
    }
    seen
}

#[apply(contract)]
async fn readers_see_all_of_an_import_or_nothing(db: TestDatabase) {
    let store = db.open().await;
    before_changes(&store).await;
    let before = look(&store).await;
    let import = begin_changes(&store).await;
    assert_eq!(look(&store).await, before);
    let unknown = Err(StoreError::Conflict(Conflict::UnknownCustomer));
    let saved = store.saved_outfits().save(&open_outfit("new", &["a", ""]), true, None, NOW).await;
    assert_eq!(saved, unknown, "the customer is not there yet");
    import.commit().await.unwrap();
    let after = look(&store).await;
    assert_ne!(after, before);
    assert_eq!(all(store.articles().all()).await, ["changed", "new", "stays"].map(coat));
    assert_eq!(all(store.customers().all()).await, ["c", "new"].map(customer));
    let splits: Vec<_> =
        store.outfits().first(9).await.unwrap().iter().map(|stored| stored.outfit.split).collect();
    assert_eq!(splits, [Some(Split::Validation), None]);
    // Nothing of what was is kept.
    for (table, old) in [("articles", "type"), ("customers", "features"), ("outfits", "split")] {
        let sql = format!("select count(*) from {table} where old_{old} is not null");
        let left: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut db.raw().await).await.unwrap();
        assert_eq!(left, 0, "{table}");
    }
    let retired = sqlx::query("select id from articles where id = 'retired'");
    assert!(retired.fetch_optional(&mut db.raw().await).await.unwrap().is_none());
}

#[apply(contract)]
async fn an_import_that_did_not_end_is_taken_back(db: TestDatabase) {
    let store = db.open().await;
    before_changes(&store).await;
    let before = look(&store).await;
    for by_itself in [true, false] {
        let import = begin_changes(&store).await;
        if by_itself {
            import.abandon().await.unwrap();
        } else {
            drop(import);
            assert_eq!(look(&store).await, before);
            // Postgres notices a closed connection a moment later.
            let deadline = Instant::now() + Duration::from_secs(10);
            while is_running(&db).await && Instant::now() < deadline {
                store.clean_up_imports(LATER).await.unwrap();
            }
        }
        assert!(!is_running(&db).await);
        assert_eq!(look(&store).await, before);
        let rows: i64 = sqlx::query_scalar(
            "select (select count(*) from articles) + (select count(*) from customers) + (select count(*) from outfits)",
        )
        .fetch_one(&mut db.raw().await)
        .await
        .unwrap();
        assert_eq!(rows, 3 + 1 + 1);
    }
    begin_changes(&store).await.commit().await.unwrap();
    assert_eq!(store.articles().count().await, Ok(3));
}

async fn is_running(db: &TestDatabase) -> bool {
    let number: i64 =
        sqlx::query_scalar("select number from running_import").fetch_one(&mut db.raw().await).await.unwrap();
    number % 2 == 1
}

/// Whether it comes before the import's row is written, or after.
#[apply(contract)]
async fn a_change_during_an_import_wins(store: Store) {
    let (articles, customers) = (store.articles(), store.customers());
    let ids: Vec<String> = ["put", "same", "patched", "deleted", "added"]
        .iter()
        .flat_map(|what| ["early", "late"].map(|when| format!("{what}-{when}")))
        .collect();
    for id in ids.iter().filter(|id| !id.starts_with("added")) {
        articles.set(&article(id, "hat", json!({"n": 1})), NOW).await.unwrap();
        customers.set(&customer(id), NOW).await.unwrap();
    }
    let change = async |when: &str| {
        let id = |what: &str| format!("{what}-{when}");
        let began = Instant::now();
        for what in ["put", "added"] {
            let expected = if what == "added" { Put::Added } else { Put::Changed };
            let boot = article(&id(what), "boot", json!({}));
            assert_eq!(articles.set(&boot, LATER).await, Ok(expected), "{what} {when}");
            let plain = Customer { id: customer_id(&id(what)), features: Features::default() };
            assert_eq!(customers.set(&plain, LATER).await, Ok(expected), "{what} {when}");
        }
        articles.set(&article(&id("same"), "hat", json!({"n": 1})), LATER).await.unwrap();
        let Value::Object(attributes) = json!({"n": 2}) else { unreachable!() };
        let patch = ArticlePatch { id: article_id(&id("patched")), kind: None, attributes };
        articles.patch(&patch, &Expected::default(), LATER).await.unwrap();
        assert_eq!(articles.remove(&article_id(&id("deleted")), LATER).await, Ok(true));
        assert_eq!(customers.remove(&customer_id(&id("deleted")), LATER).await, Ok(true));
        assert!(began.elapsed() < Duration::from_secs(5), "they do not wait for the import");
    };
    let mut import = store.import(NOW).await.unwrap();
    change("early").await;
    import.put(&ids.iter().map(|id| coat(id)).collect::<Vec<_>>()).await.unwrap();
    import.put(&ids.iter().map(|id| customer(id)).collect::<Vec<_>>()).await.unwrap();
    change("late").await;
    import.commit().await.unwrap();
    let stored = all(articles.all()).await;
    let expected: Vec<_> = ["added", "patched", "put", "same"]
        .iter()
        .flat_map(|what| ["early", "late"].map(|when| (*what, format!("{what}-{when}"))))
        .map(|(what, id)| match what {
            "patched" => article(&id, "hat", json!({"n": 2})),
            "same" => article(&id, "hat", json!({"n": 1})),
            _ => article(&id, "boot", json!({})),
        })
        .collect();
    assert_eq!(stored, expected);
    let plain: Vec<_> = all(customers.all()).await;
    let plain: Vec<_> = plain.iter().filter(|customer| customer.features.is_empty()).collect();
    assert_eq!(plain.len(), 4, "put and added: {plain:?}");
    // The next import may change them.
    let mut import = store.import(LATER).await.unwrap();
    assert_eq!(import.put(&[coat("put-early"), coat("put-late")]).await, Ok(counts(0, 2, 0)));
    import.commit().await.unwrap();
    assert_eq!(articles.get(&article_id("put-late")).await, Ok(Some(coat("put-late"))));
}
