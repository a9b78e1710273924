use std::time::{Duration, Instant};

use atelier::platform::db::{Entry, Put, Store, StoreError};
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{Kind, NOW, TestDatabase, Unconditional, apply, article, coat, contract, entries};

async fn write(store: Store, writer: usize) {
    for n in 0..50 {
        let mine = coat(&format!("{writer}-{n}"));
        assert_eq!(store.articles().set(&mine, NOW).await, Ok(Put::Added));
        // And one that all of them write.
        let shared = article("shared", &format!("{writer}-{n}"), json!({}));
        store.articles().set(&shared, NOW).await.unwrap();
        assert_eq!(store.articles().get(&mine.id).await, Ok(Some(mine)));
    }
}

/// Four in each of two stores, as in two processes.
#[apply(contract)]
async fn concurrent_writes_all_succeed(db: TestDatabase) {
    let stores = [db.open().await, db.open().await];
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        writers.spawn(write(stores[writer % 2].clone(), writer));
    }
    writers.join_all().await;
    assert_eq!(stores[0].articles().count().await, Ok(8 * 50 + 1));
}

/// Behind another program's transaction that does not end, from the same process and from another. An import waits longer than a
/// write, and behind another import.
#[apply(contract)]
async fn a_write_times_out(db: TestDatabase) {
    let (here, elsewhere) = (db.open().await, db.open().await);
    let coat = coat("a");
    here.articles().set(&coat, NOW).await.unwrap();
    here.articles().set(&article("b", "coat", json!({})), NOW).await.unwrap();
    let first = here.import(NOW).await.unwrap();
    let patient = db.open().await;
    let next = tokio::spawn(async move { patient.import(NOW).await?.article_ids().await });
    let mut raw = db.raw().await;
    let hold = match db.kind {
        Kind::Sqlite => "begin immediate",
        Kind::Postgres => "begin; select id from articles for update",
    };
    sqlx::raw_sql(hold).execute(&mut raw).await.unwrap();
    let (started, hats) = (Instant::now(), ["a", "b"].map(|id| article(id, "hat", json!({}))));
    let outcomes = tokio::join!(here.articles().set(&hats[0], NOW), elsewhere.articles().set(&hats[1], NOW));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    for outcome in [outcomes.0, outcomes.1] {
        assert!(matches!(outcome, Err(StoreError::Busy { .. })), "{outcome:?}");
    }
    sqlx::raw_sql("rollback").execute(&mut raw).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(next.await.unwrap(), Ok(hats.map(|hat| hat.id).to_vec()));
    assert_eq!(here.articles().set(&coat, NOW).await, Ok(Put::Unchanged));
}

#[apply(contract)]
async fn the_database_refuses_changes_to_entries(db: TestDatabase) {
    let store = db.open().await;
    store.audit().append(&Entry::new("start", "x", json!({})), NOW).await.unwrap();
    let before = entries(&store, 10).await;
    let mut raw = db.raw().await;
    for statement in [
        "delete from audit_log",
        "update audit_log set action = 'x'",
        "update audit_log set at = 0",
        "update audit_log set peer = null",
    ] {
        let refused = sqlx::raw_sql(statement).execute(&mut raw).await.unwrap_err();
        assert!(refused.to_string().contains("audit_log is append-only"), "{statement}: {refused}");
    }
    assert_eq!(entries(&store, 10).await, before);
}

#[apply(contract)]
async fn concurrent_starts_agree_on_a_value(db: TestDatabase) {
    let stores = [db.open().await, db.open().await];
    let mut starts = JoinSet::new();
    for number in 0..8 {
        let (store, own) = (stores[number % 2].clone(), format!("secret {number}"));
        starts.spawn(async move { store.settings().get_or_set("tickets", &own).await.unwrap() });
    }
    let got = starts.join_all().await;
    assert!(got.iter().all(|one| *one == got[0]), "{got:?}");
}
