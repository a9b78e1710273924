use std::collections::HashSet;

use atelier::platform::db::{Entry, Store};
use atelier_core::domain::Timestamp;
use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{TestDatabase, apply, contract};

const NOW: Timestamp = Timestamp::from_millis(1);

#[apply(contract)]
async fn a_setting_is_read_back(store: Store) {
    let settings = store.settings();
    let before = settings.revision().await.unwrap();
    assert_eq!(settings.get("routing").await, Ok(None));
    let entry = Entry::new("routing.set", "routing", json!({}));
    settings.set("routing", "{}", &entry, NOW).await.unwrap();
    settings.set("routing", "{\"a\": \"ä'\"}", &entry, NOW).await.unwrap();
    assert_eq!(settings.get("routing").await, Ok(Some("{\"a\": \"ä'\"}".into())));
    assert_eq!(settings.revision().await, Ok(before + 2), "holders of a copy see that it is old");
    assert_eq!(settings.get_or_set("routing", "other").await, Ok("{\"a\": \"ä'\"}".into()));
    assert_eq!(settings.get("release").await, Ok(None));
}

#[apply(contract)]
async fn concurrent_starts_agree_on_a_value(db: TestDatabase) {
    let stores = [db.open().await, db.open().await];
    let secrets: Vec<String> = (0..8).map(|number| format!("secret {number}")).collect();
    let all = secrets.iter().enumerate().map(|(index, secret)| {
        let store = &stores[index % 2];
        async move { store.settings().get_or_set("tickets", secret).await.unwrap() }
    });
    let got: HashSet<String> = join_all(all).await.into_iter().collect();
    assert_eq!(got.len(), 1, "{got:?}");
}
