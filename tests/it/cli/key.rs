use std::time::Duration;

use atelier::platform::db::Actor;
use atelier_core::domain::Role;
use serde_json::{Value, json};

use crate::{
    cli::{atelier, ended, printed, refused},
    harness::{Guarded, Html, TestDatabase, apply, contract, entries, on_sqlite},
};

/// Makes a key, and gives what is printed.
async fn make(db: &TestDatabase, arguments: &[&str]) -> String {
    printed(atelier(db, &[&["key", "create"], arguments].concat())).await
}

#[apply(on_sqlite)]
async fn a_key_is_made_without_a_browser(Guarded(service): Guarded, db: TestDatabase) {
    let key = make(&db, &["--label", "Shop", "--scope", "metrics,complete", "--scope", "complete"]).await;
    let key = key.strip_suffix('\n').expect("one line, for scripts").to_owned();
    assert!(key.starts_with("atl_") && !key.contains('\n'), "{key}");
    service.get("/metrics").key(&key).is(200).await;
    service.get("/articles").key(&key).is(403).await;
    let record = service.store.api_keys().list().await.unwrap().remove(0);
    assert_eq!((record.label.as_str(), record.expires_at), ("Shop", None));
    assert_eq!(record.scopes, ["complete", "metrics"]);
    let entry = entries(&service.store, 1).await.remove(0);
    let (action, subject) = (entry.action.as_str(), entry.subject.as_str());
    assert_eq!((action, subject, entry.actor), ("key.create", "Shop", Actor::Service));
    let details = Value::from(entry.details);
    assert_eq!(details["scopes"], json!(["complete", "metrics"]));
    assert!(!details.to_string().contains(&key));
    // An admin sees it, and can revoke it.
    let page = service.signed_in(Role::Admin).await.page("/access/keys").await;
    assert!(page.contains("Shop") && !page.contains(&key), "{page}");
}

#[apply(on_sqlite)]
async fn a_key_needs_a_label_and_known_scopes(db: TestDatabase) {
    db.open().await.close().await;
    for (arguments, code, said) in [
        (&["--label", "Shop"][..], 2, "--scope <SCOPE>"),
        (&["--scope", "metrics"], 2, "--label <NAME>"),
        (&["--label", "Shop", "--scope", "all"], 2, "rules, admin or metrics; found \"all\""),
        (&["--label", "Shop", "--scope", ""], 2, "complete, catalogue"),
        (&["--label", " ", "--scope", "metrics"], 1, "atelier: --label: "),
        (&["--label", "Shop", "--scope", "metrics", "--days", "0"], 2, "1..=3650"),
    ] {
        ended(atelier(&db, &[&["key", "create"], arguments].concat()), code).await.has([said]);
    }
    assert_eq!(db.open().await.api_keys().list().await.unwrap().len(), 0);
}

#[apply(contract)]
async fn keys_are_listed_and_revoked_without_a_browser(Guarded(service): Guarded, db: TestDatabase) {
    let first = make(&db, &["--label", "Shop", "--scope", "feedback,metrics", "--days", "30"]).await;
    let record = service.store.api_keys().list().await.unwrap().remove(0);
    assert_eq!(record.expires_at, Some(record.created_at + Duration::from_hours(24 * 30)));
    make(&db, &["--label", "Twice", "--scope", "metrics"]).await;
    make(&db, &["--label", "twice", "--scope", "metrics"]).await;
    let key = |arguments: &[&str]| atelier(&db, &[&["key"], arguments].concat());
    let metrics = || service.get("/metrics").key(first.trim());
    let list = printed(key(&["list"])).await;
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].join(" "), "ID NAME OPENS CREATED LAST USED EXPIRES STATE");
    let shop = rows.iter().find(|row| row[1] == "Shop").unwrap();
    assert_eq!((shop[2], shop[4], shop[6]), ("feedback,metrics", "never", "valid"), "{list}");
    assert!(shop[5] > shop[3] && !list.contains("atl_"), "{list}");

    metrics().is(200).await;
    printed(key(&["revoke", "shop"])).await;
    metrics().is(401).await;
    let entry = entries(&service.store, 1).await.remove(0);
    assert_eq!((entry.action.as_str(), entry.subject.as_str()), ("key.revoke", "Shop"));
    let list = printed(key(&["list"])).await;
    assert!(list.lines().any(|line| line.contains(" Shop ") && line.contains("revoked 20")), "{list}");

    let ids: Vec<i64> = service.store.api_keys().list().await.unwrap().iter().map(|key| key.id.0).collect();
    for (wanted, said) in [
        ("Shop", "the API key \"Shop\" is revoked already".to_owned()),
        ("Nobody", "there is no API key \"Nobody\"; `atelier key list` lists them".to_owned()),
        (
            "twice",
            format!("several API keys are named \"twice\"; revoke one by its id: {}, {}", ids[0], ids[1]),
        ),
    ] {
        assert_eq!(refused(key(&["revoke", wanted])).await, format!("atelier: {said}\n"));
    }
    // Then the name is that of the only one left.
    for wanted in [&*ids[0].to_string(), "twice"] {
        printed(key(&["revoke", wanted])).await;
    }
}
