use atelier::{
    domain::Article,
    store::{Put, Store},
};
use tokio::task::JoinSet;

use super::{NOW, coat};
use crate::harness::{TestDatabase, contracts};

contracts!(many_at_once_all_succeed, a_cancelled_write_holds_nothing_up);

async fn write(store: Store, writer: usize) {
    for n in 0..50 {
        let mine = coat(&format!("{writer}-{n}"));
        assert_eq!(store.articles().put(&mine, NOW).await, Ok(Put::Added));
        // And one that all of them want.
        store
            .articles()
            .put(
                &Article::new(coat("shared").id, format!("{writer}-{n}"), serde_json::Map::new()).unwrap(),
                NOW,
            )
            .await
            .unwrap();
        assert_eq!(store.articles().get(&mine.id).await, Ok(Some(mine)));
    }
}

/// Four in each of two stores, as two processes have them.
async fn many_at_once_all_succeed(db: TestDatabase) {
    let stores = [db.open().await, db.open().await];
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        writers.spawn(write(stores[writer % 2].clone(), writer));
    }
    writers.join_all().await;
    assert_eq!(stores[0].articles().count().await, Ok(8 * 50 + 1));
}

async fn a_cancelled_write_holds_nothing_up(db: TestDatabase) {
    let store = db.open().await;
    for n in 0..50_u64 {
        let patience = std::time::Duration::from_micros(n * 20);
        let _ = tokio::time::timeout(patience, store.articles().put(&coat(&format!("{n}")), NOW)).await;
    }
    assert_eq!(store.articles().put(&coat("last"), NOW).await, Ok(Put::Added));
    assert_eq!(store.articles().get(&coat("last").id).await, Ok(Some(coat("last"))));
}
