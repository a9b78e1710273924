use std::time::{Duration, SystemTime};

use atelier::platform::db::Actor;
use atelier_core::domain::Role;
use serde_json::{Value, json};

use super::{atelier, run, stderr};
use crate::{
    harness::{TestDatabase, apply, contract, on_sqlite},
    web::Guarded,
};

async fn make(db: &TestDatabase, arguments: &[&str]) -> String {
    let output = run(atelier(db, &[&["key", "create"], arguments].concat())).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[apply(on_sqlite)]
async fn a_key_is_made_without_a_browser(Guarded(service): Guarded, db: TestDatabase) {
    let key = make(&db, &["--label", "Shop", "--scope", "metrics,complete", "--scope", "complete"]).await;
    let key = key.strip_suffix('\n').expect("one line, for scripts").to_owned();
    assert!(key.starts_with("atl_") && !key.contains('\n'), "{key}");
    let ask = async |path: &str| {
        let request = service.http.get(format!("{}{path}", service.url)).header("x-api-key", &key);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((ask("/metrics").await, ask("/articles").await), (200, 403));
    let record = service.store.api_keys().list().await.unwrap().remove(0);
    assert_eq!((record.label.as_str(), record.expires_at), ("Shop", None));
    assert_eq!(record.scopes, ["complete", "metrics"]);
    let entry = service.store.audit().list(None, 1).await.unwrap().remove(0);
    assert_eq!(
        (entry.action.as_str(), entry.subject.as_str(), entry.actor),
        ("key.create", "Shop", Actor::Service)
    );
    let details = Value::from(entry.details);
    assert_eq!(details["scopes"], json!(["complete", "metrics"]));
    assert!(!details.to_string().contains(&key));
    // An admin sees it, and can revoke it.
    let page = service.signed_in(Role::Admin).await.page("/access/keys").await;
    assert!(page.contains("Shop") && !page.contains(&key), "{page}");
}

#[apply(on_sqlite)]
async fn a_key_may_expire(db: TestDatabase) {
    db.open().await.close().await;
    make(&db, &["--label", "Shop", "--scope", "metrics", "--days", "30"]).await;
    let record = db.open().await.api_keys().list().await.unwrap().remove(0);
    assert_eq!(record.expires_at, Some(record.created_at + Duration::from_hours(24 * 30)));
    assert!(record.created_at <= SystemTime::now().into());
}

#[apply(on_sqlite)]
async fn a_key_needs_a_label_and_known_scopes(db: TestDatabase) {
    db.open().await.close().await;
    for (arguments, code, said) in [
        (&["--label", "Shop"][..], 2, "--scope <SCOPE>"),
        (&["--scope", "metrics"], 2, "--label <NAME>"),
        (
            &["--label", "Shop", "--scope", "all"],
            2,
            "complete, catalogue, feedback, events, rules, admin or metrics; found \"all\"",
        ),
        (&["--label", "Shop", "--scope", ""], 2, "complete, catalogue"),
        (&["--label", " ", "--scope", "metrics"], 1, "atelier: --label: "),
        (&["--label", "Shop", "--scope", "metrics", "--days", "0"], 2, "1..=3650"),
    ] {
        let output = run(atelier(&db, &[&["key", "create"], arguments].concat())).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(db.open().await.api_keys().list().await.unwrap().len(), 0);
}

/// A mistyped path must not make an empty database and print a key that opens nothing.
#[apply(on_sqlite)]
async fn a_key_needs_a_database_that_is_there(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mistyped.db");
    let mut elsewhere = db.clone();
    elsewhere.url = format!("sqlite:{}", file.display());
    let output = run(atelier(&elsewhere, &["key", "create", "--label", "Shop", "--scope", "metrics"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("atelier: database.url (--database): there is no database at"));
    assert!(output.stdout.is_empty() && !file.exists());
}

#[apply(contract)]
async fn keys_are_listed_and_revoked_without_a_browser(Guarded(service): Guarded, db: TestDatabase) {
    let first = make(&db, &["--label", "Shop", "--scope", "feedback,metrics", "--days", "30"]).await;
    make(&db, &["--label", "Twice", "--scope", "metrics"]).await;
    make(&db, &["--label", "twice", "--scope", "metrics"]).await;
    let key = async |arguments: &[&str]| {
        let output = run(atelier(&db, &[&["key"], arguments].concat())).await;
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
    };
    let metrics = async || {
        let request = service.http.get(format!("{}/metrics", service.url)).header("x-api-key", first.trim());
        request.send().await.unwrap().status().as_u16()
    };
    let (code, list, _) = key(&["list"]).await;
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0].join(" "), "ID NAME OPENS CREATED LAST USED EXPIRES STATE");
    let shop = rows.iter().find(|row| row[1] == "Shop").unwrap();
    assert_eq!((code, shop[2], shop[4], shop[6]), (Some(0), "feedback,metrics", "never", "valid"), "{list}");
    assert!(shop[5] > shop[3] && !list.contains("atl_"), "{list}");

    assert_eq!(metrics().await, 200);
    assert_eq!(key(&["revoke", "shop"]).await.0, Some(0));
    assert_eq!(metrics().await, 401, "at once");
    let entry = service.store.audit().list(None, 1).await.unwrap().remove(0);
    assert_eq!((entry.action.as_str(), entry.subject.as_str()), ("key.revoke", "Shop"));
    let list = key(&["list"]).await.1;
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
        let (code, _, stderr) = key(&["revoke", wanted]).await;
        assert_eq!((code, stderr.trim()), (Some(1), format!("atelier: {said}").as_str()));
    }
    assert_eq!(key(&["revoke", &ids[0].to_string()]).await.0, Some(0));
    assert_eq!(key(&["revoke", "twice"]).await.0, Some(0), "the only one left");
}
