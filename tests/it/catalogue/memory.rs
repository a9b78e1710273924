//! What the catalogue takes in memory is known, and limited, before a change is committed.

use std::ops::Range;

use atelier::{
    config::Limits,
    platform::db::{ChangeError, Copies, Expected, NewDocument, Store, StoreError},
};
use atelier_core::domain::{Article, ArticlePatch, RuleName};
use atelier_engine::packed_article::PackedArticle;
use serde_json::{Value, json};

use crate::harness::{
    Html, LATER, NOW, Service, TestDatabase, Unconditional, all, apply, article, article_id, coat, contract,
    import, json_lines,
};

fn limited(store: &Store, bytes: u64) -> Store {
    store.clone().with_limits(Limits { catalogue_bytes: Some(bytes), ..Limits::default() })
}

/// An article with so many letters.
fn long(id: &str, letters: usize) -> Article {
    article(id, "coat", json!({"note": "x".repeat(letters)}))
}

/// Large articles, as a stream.
fn large(numbers: Range<usize>) -> String {
    let note = "x".repeat(60_000);
    json_lines(numbers.map(|number| json!({"id": format!("x-{number}"), "type": "coat", "note": note})))
}

fn memory(article: &Article) -> i64 {
    i64::try_from(PackedArticle::from(article).memory()).unwrap()
}

/// A release with so many bytes of rows.
fn one(row_bytes: i64) -> Copies {
    Copies { catalogues: 1, row_bytes }
}

async fn taken(store: &Store) -> i64 {
    store.catalogue_memory(one(0)).await.unwrap().bytes()
}

/// The stored sums are those of the articles that readers see.
async fn is_true(store: &Store) {
    let articles = all(store.articles().all()).await;
    let sum: i64 = articles.iter().map(memory).sum();
    let with_rows = store.catalogue_memory(one(1_000_000)).await.unwrap().bytes();
    let count = i64::try_from(articles.len()).unwrap();
    assert_eq!((taken(store).await, with_rows), (sum, sum + 1_000_000 * count));
}

#[apply(contract)]
async fn the_sums_follow_every_change(store: Store) {
    let articles = store.articles();
    is_true(&store).await;
    for letters in [10, 5000, 5000, 1] {
        articles.set(&long("a", letters), NOW).await.unwrap();
        is_true(&store).await;
    }
    let patch = ArticlePatch { id: article_id("a"), kind: None, attributes: serde_json::Map::new() };
    articles.patch(&patch, &Expected::default(), NOW).await.unwrap();
    is_true(&store).await;
    let many: Vec<_> = (0..1201).map(|number| long(&format!("m-{number:04}"), number)).collect();
    import(&store, &many).await;
    is_true(&store).await;

    let mut running = store.import(LATER).await.unwrap();
    running.put(&[long("a", 3000), long("m-0001", 9000), long("m-0001", 9), coat("new")]).await.unwrap();
    running.retire(&[article_id("m-0002"), article_id("new")]).await.unwrap();
    articles.set(&long("m-0003", 7000), NOW).await.unwrap();
    articles.remove(&article_id("m-0004"), NOW).await.unwrap();
    running.abandon().await.unwrap();
    is_true(&store).await;
    let mut running = store.import(LATER).await.unwrap();
    running.put(&[long("a", 3000), coat("new")]).await.unwrap();
    running.retire(&[article_id("m-0002")]).await.unwrap();
    running.commit().await.unwrap();
    is_true(&store).await;
    articles.set(&coat("m-0002"), NOW).await.unwrap();
    articles.remove(&article_id("a"), NOW).await.unwrap();
    is_true(&store).await;
}

#[apply(contract)]
async fn a_catalogue_beyond_the_limit_is_not_stored(store: Store) {
    let rows: Vec<_> = (0..40).map(|number| long(&format!("l-{number:02}"), 60_000)).collect();
    import(&store, &rows[..20]).await;
    let before = (taken(&store).await, store.articles().revision().await.unwrap());
    // Room for one more article, with the bytes of its rows.
    store.set_copies(one(5000)).await.unwrap();
    let room = limited(&store, 21 * 70_000);
    let refusal = |error: StoreError| {
        let text = error.to_string();
        assert!(matches!(error, StoreError::TooLarge { .. }), "{text}");
        assert!(text.starts_with("the catalogue would take 3 MB of each replica's memory; expected at most 2 MB (limits.catalogue_bytes)"), "{text}");
    };
    let mut running = room.import(LATER).await.unwrap();
    running.put(&rows).await.unwrap();
    refusal(running.commit().await.unwrap_err());
    assert_eq!((taken(&store).await, store.articles().revision().await.unwrap()), before);
    assert_eq!(all(store.articles().all()).await, rows[..20], "nothing was stored");

    let full = limited(&store, 1_000_000);
    assert!(matches!(full.articles().set(&coat("b"), NOW).await, Err(StoreError::TooLarge { .. })));
    let mut attributes = serde_json::Map::new();
    attributes.insert("more".into(), json!("longer"));
    let longer = ArticlePatch { id: article_id("l-00"), kind: None, attributes };
    assert!(full.articles().patch(&longer, &Expected::default(), NOW).await.is_err());
    assert_eq!(all(store.articles().all()).await, rows[..20]);
    // What takes no more than before is stored, so that a shop can get out of it.
    for smaller in [long("l-00", 59_000), long("l-00", 59_000), article("l-00", "hat", json!({}))] {
        full.articles().set(&smaller, NOW).await.unwrap();
    }
    full.articles().remove(&article_id("l-01"), NOW).await.unwrap();
    let mut running = full.import(LATER).await.unwrap();
    running.retire(&[article_id("l-02")]).await.unwrap();
    running.put(&[long("l-03", 50_000)]).await.unwrap();
    running.commit().await.unwrap();
    // A catalogue that replaces another one may take all of the room.
    let mut running = limited(&store, 20 * 70_000).import(LATER).await.unwrap();
    running.put(&rows[20..]).await.unwrap();
    let old: Vec<_> = rows[..20].iter().map(|row| row.id.clone()).collect();
    running.retire(&old).await.unwrap();
    running.commit().await.unwrap();
    is_true(&store).await;
}

/// Issue 65: a replica did not start while an import ran that would not fit, or after one that was killed.
#[apply(contract)]
async fn rows_that_nobody_sees_count_for_no_start(store: Store) {
    import(&store, &[long("a", 9000), long("b", 9000), long("c", 10)]).await;
    let before = taken(&store).await;
    let room = limited(&store, before.unsigned_abs() + 1000);
    let mut running = store.import(LATER).await.unwrap();
    let rows: Vec<_> = (0..20).map(|number| long(&format!("l-{number:02}"), 60_000)).collect();
    running.put(&[&rows[..], &[long("a", 20)]].concat()).await.unwrap();
    running.retire(&[article_id("b")]).await.unwrap();
    let seen = async || room.check_memory(one(0), 0).await.unwrap().bytes();
    assert_eq!(seen().await, before);
    let added = room.articles().set(&coat("new"), NOW).await;
    assert!(matches!(added, Err(StoreError::TooLarge { .. })), "the import may need the room: {added:?}");
    drop(running);
    assert_eq!(seen().await, before);
    import(&store, &rows).await;
    assert!(room.check_memory(one(0), 0).await.is_err());
    is_true(&store).await;
}

/// Issue 65: it followed no setting either.
#[apply(contract)]
async fn a_replica_with_less_memory_follows_all_else(db: TestDatabase) {
    let service = Service::start_with(&db, Limits::default()).await;
    let limits = Limits { catalogue_bytes: Some(4_000_000), ..Limits::default() };
    let replica = Service::start_with(&db, limits).await;
    for one in [&service, &replica] {
        one.serve_demo().await;
    }
    let bring_in = async |from: usize, to: usize| {
        service.lines("/articles/bulk", large(from..to)).is(200).await;
        replica.releases.refresh().await.unwrap();
    };
    let state = async || {
        let metrics = replica.get("/metrics").await.text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("atelier_catalogue_current "));
        let ready = replica.json("/readyz").await;
        json!([ready["catalogue_current"], ready["articles"]["only_in_catalogue"], line])
    };
    bring_in(0, 40).await;
    assert_eq!(state().await, json!([true, 40, "1"]));
    // Few enough to be read by name, and more.
    for (to, method) in [(80, "gsu"), (1500, "match")] {
        bring_in(40, to).await;
        assert_eq!(state().await, json!([false, 40, "0"]), "{to}");
        service.put("/routing", json!({"default_method": method})).is(200).await;
        replica.releases.refresh().await.unwrap();
        assert_eq!(replica.json("/routing").await["default_method"], method);
    }
    let ids: Vec<_> = (30..1500).map(|number| article_id(&format!("x-{number}"))).collect();
    let mut running = service.store.import(LATER).await.unwrap();
    running.retire(&ids).await.unwrap();
    running.commit().await.unwrap();
    replica.releases.refresh().await.unwrap();
    assert_eq!(state().await, json!([true, 30, "1"]));
}

#[apply(contract)]
async fn writers_at_the_same_time_stay_below_the_limit(db: TestDatabase) {
    let store = db.open().await;
    store.set_copies(one(0)).await.unwrap();
    let of_one = memory(&long("w-00", 9000)).unsigned_abs();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..16 {
        let store = limited(&if number % 2 == 0 { store.clone() } else { db.open().await }, 5 * of_one);
        writers.spawn(async move { store.articles().set(&long(&format!("w-{number:02}"), 9000), NOW).await });
    }
    let stored = writers.join_all().await.iter().filter(|put| put.is_ok()).count();
    assert_eq!((stored, store.articles().count().await), (5, Ok(5)));
    is_true(&store).await;
}

#[apply(contract)]
async fn the_attack_ends_as_a_refusal(db: TestDatabase) {
    let limits = Limits { catalogue_bytes: Some(8_000_000), ..Limits::default() };
    let service = Service::start_with(&db, limits).await;
    service.serve_demo().await;
    let refused = service.lines("/articles/bulk", large(0..200)).is(422).await;
    refused.text().has(["the catalogue would take 1", "at most 8 MB (limits.catalogue_bytes)"]);
    assert_eq!(service.json("/articles").await["items"], json!([]));
    service.lines("/articles/bulk", large(0..100)).is(200).await;
    let metrics = service.get("/metrics").await.text();
    let gauge = |name: &str| -> f64 {
        let line =
            metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
        line.trim().parse().unwrap()
    };
    let (bytes, article) = (gauge("atelier_catalogue_bytes "), gauge("atelier_article_bytes "));
    assert!((60_000.0..80_000.0).contains(&article) && (bytes / article - 100.0).abs() < 0.1, "{metrics}");
    assert!((gauge("atelier_catalogue_limit_bytes ") - 8e6).abs() < 1.0);

    for number in 100..200 {
        let put = service
            .put(format!("/articles/x-{number}"), json!({"type": "coat", "note": "x".repeat(60_000)}))
            .await;
        if put.status != 201 {
            assert!(number < 130, "{number}");
            put.text().has(["limits.catalogue_bytes"]);
            break;
        }
    }
    service.patch("/articles/x-0", json!({"note": null})).is(200).await;
}

#[apply(contract)]
async fn documents_have_a_part_of_the_limit(store: Store) {
    let store = limited(&store, 4_000_000);
    let name = |number: usize| format!("r-{number}").parse::<RuleName>().unwrap();
    let body = |number: usize| json!({"note": format!("{number}{}", "x".repeat(50_000))});
    let rules: Vec<(RuleName, Value)> = (0..4).map(|number| (name(number), body(number))).collect();
    for is_trial in [true, false] {
        let refused = store.rules().import(&rules, "file", is_trial, NOW).await.unwrap_err().to_string();
        refused.has(["rules would take 1 MB of", "at most 1 MB (an eighth of limits.catalogue_bytes)"]);
    }
    assert_eq!(store.rules().list().await.unwrap(), []);
    store.rules().import(&rules[..3], "file", false, NOW).await.unwrap();
    let make = |_, _| Ok::<_, ()>(NewDocument { body: body(3), consequences: Vec::new() });
    let put = store.rules().change(&name(3), &Expected::default(), false, NOW, make).await;
    assert!(matches!(put, Err(ChangeError::Store(StoreError::TooLarge { .. }))), "{put:?}");
    let smaller = |_, _| Ok::<_, ()>(NewDocument { body: json!({}), consequences: Vec::new() });
    assert!(store.rules().change(&name(2), &Expected::default(), false, NOW, smaller).await.is_ok());
}
