use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use atelier::store::{OpenError, Store, StoreError};
use atelier_core::domain::{ArticleId, CustomerId, FeatureValue};
use futures_util::TryStreamExt;
use tokio::{task::JoinSet, time::timeout};

use super::{NOW, coat};
use crate::harness::{Kind, TestDatabase, apply, contract};

#[apply(contract)]
async fn reopening_finds_the_data(db: TestDatabase) {
    let store = db.open().await;
    store.articles().put(&coat("a"), NOW).await.unwrap();
    store.close().await;
    let store = db.open().await;
    assert_eq!(store.articles().get(&coat("a").id).await, Ok(Some(coat("a"))));
}

/// As replicas that start together.
#[apply(contract)]
async fn many_can_open_a_new_database_at_once(db: TestDatabase) {
    if db.kind == Kind::Postgres {
        // The harness made a migrated database.
        let mut raw = db.raw().await;
        sqlx::raw_sql("drop schema public cascade; create schema public").execute(&mut raw).await.unwrap();
    }
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let url = db.url.clone();
        opening.spawn(async move { Store::open(&url).await });
    }
    for store in opening.join_all().await {
        assert_eq!(store.unwrap().articles().count().await, Ok(0));
    }
}

#[apply(contract)]
async fn a_newer_database_is_refused(db: TestDatabase) {
    db.open().await.close().await;
    let mut raw = db.raw().await;
    let known: i64 =
        sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(&mut raw).await.unwrap();
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values ($1, 'from the future', $2, $3, 0)",
    )
    .bind(known + 7)
    .bind(true)
    .bind(&[0_u8; 48][..])
    .execute(&mut raw)
    .await
    .unwrap();
    let refused = Store::open(&db.url).await.unwrap_err();
    let said = refused.to_string();
    let (version, limit) = (format!("version {}", known + 7), format!("up to {known}"));
    for part in [&version, &limit, "start a newer Atelier", db.url.split('?').next().unwrap()] {
        assert!(said.contains(part), "{said}");
    }
    let newer = StoreError::Newer { found: known + 7, known };
    assert!(matches!(refused, OpenError::Other { error, .. } if error == newer));
}

#[apply(contract)]
async fn a_changed_migration_is_refused(db: TestDatabase) {
    db.open().await.close().await;
    let mut raw = db.raw().await;
    sqlx::query("update _sqlx_migrations set checksum = $1 where version = 2")
        .bind(&[0_u8; 48][..])
        .execute(&mut raw)
        .await
        .unwrap();
    let refused = Store::open(&db.url).await.unwrap_err();
    let altered = StoreError::Altered { version: 2 };
    assert!(matches!(&refused, OpenError::Other { error, .. } if *error == altered), "{refused}");
}

/// Opening does not wait for a writer if there is nothing to migrate.
#[apply(contract)]
async fn a_database_opens_during_an_import(db: TestDatabase) {
    let mut import = db.open().await.import(NOW).await.unwrap();
    import.articles(&[coat("a")]).await.unwrap();
    for _ in 0..3 {
        let store = timeout(Duration::from_secs(5), Store::open(&db.url)).await.unwrap().unwrap();
        assert_eq!(store.articles().count().await, Ok(0));
        store.close().await;
    }
    import.commit().await.unwrap();
}

#[apply(contract)]
async fn an_unreachable_server_is_reported_without_the_password(db: TestDatabase) {
    if db.kind == Kind::Sqlite {
        // The tests of `src/store/sqlite.rs` check errors of files.
        return;
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for address in [silent.local_addr().unwrap(), refusing] {
        let url = format!("postgres://ada:hunter2@{address}/atelier?password=hunter2");
        let started = Instant::now();
        let error = Store::open(&url).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert!(matches!(error, OpenError::Server { .. }), "{error:?}");
        let said = format!("{error} {error:?}");
        assert!(!said.contains("hunter2"), "{said}");
        let place = url.split('?').next().unwrap().replace(":hunter2", "");
        assert!(said.contains(&place), "{said}");
    }
}

#[apply(contract)]
async fn an_open_store_does_not_show_its_password(db: TestDatabase) {
    // The private server takes any password.
    let url = db.url.replace("atelier@", "atelier:hunter2@");
    let shown = format!("{0} {0:?}", Store::open(&url).await.unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains(db.url.split('?').next().unwrap()), "{shown}");
}

/// While the database answers, while all connections are taken, and after it is closed. Waiting imports take one
/// connection each where readers and writers share them.
#[apply(contract)]
async fn a_ping_times_out_early(db: TestDatabase) {
    let store = db.open().await;
    assert_eq!(store.ping().await, Ok(()));
    let first = store.import(NOW).await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        waiting.spawn(async move { store.import(NOW).await.map(drop) });
    }
    let started = Instant::now();
    let answer = loop {
        let answer = store.ping().await;
        if db.kind == Kind::Sqlite || answer.is_err() || started.elapsed() > Duration::from_secs(30) {
            break answer;
        }
    };
    match db.kind {
        Kind::Sqlite => assert_eq!(answer, Ok(()), "readers have connections of their own"),
        Kind::Postgres => {
            assert_eq!(answer, Err(StoreError::Unreachable { reason: "no answer within a second".into() }));
        }
    }
    waiting.shutdown().await;
    drop(first);
    store.close().await;
    let closed = timeout(Duration::from_secs(5), store.ping()).await.unwrap();
    assert!(matches!(closed, Err(StoreError::Unreachable { .. })), "{closed:?}");
}

#[apply(contract)]
async fn ids_of_older_rows_get_one_form(db: TestDatabase) {
    db.open().await.close().await;
    let mut raw = db.raw().await;
    write_older_rows(&mut raw).await;
    for _ in 0..2 {
        let store = db.open().await;
        let found: Vec<_> = store.articles().all().try_collect().await.unwrap();
        let found: Vec<_> = found.iter().map(|article| (article.id.as_str(), article.kind())).collect();
        assert_eq!(found, [("a", "mark"), ("renamed-200b", "?"), ("z\u{fc}", "nfc"), ("\u{e5}", "ring")]);
        let customers: Vec<_> = store.customers().all().try_collect().await.unwrap();
        let ids: Vec<&str> = customers.iter().map(|customer| customer.id.as_str()).collect();
        assert_eq!(ids, ["Bj\u{f6}rn", "c1", "c2", "plain", "renamed-200b"]);
        assert_eq!(customers[0].features.get("age"), Some(&FeatureValue::Number(31.0)), "it had the id");
        assert_eq!(
            customers[0].features.get("fit"),
            Some(&FeatureValue::Text("slim".into())),
            "nothing is lost"
        );
        let outfits =
            async |id: &str| store.outfits().for_customer(&CustomerId::new(id).unwrap(), 0, 9).await.unwrap();
        let of_bjorn = outfits("Bjo\u{308}rn").await;
        assert_eq!(of_bjorn.len(), 2);
        let of_renamed = outfits("renamed-200b").await;
        assert_eq!(of_renamed.len(), 1, "a customer with another name keeps the outfits");
        let five: Vec<&str> = of_renamed[0].outfit.articles().iter().map(ArticleId::as_str).collect();
        assert_eq!(five, ["z\u{fc}", "b", "c", "d"], "only the repeated article goes");
        let damaged: Vec<(String, String)> =
            sqlx::query_as("select articles, features from outfits where customer_id = 'c2'")
                .fetch_all(&mut raw)
                .await
                .unwrap();
        let rewritten = ("[\"z\u{fc}\",\"b\",\"c\",\"d\"]".to_owned(), "{\"size\":null}".to_owned());
        assert_eq!(damaged, [rewritten], "damaged features stay");
        assert!(of_bjorn.iter().all(|record| record.outfit.articles()[0] == ArticleId::new("zü").unwrap()));
        assert_eq!(outfits("c1").await.len(), 1);
        assert_eq!(outfits("plain").await.len(), 0, "three articles are no outfit");
        let again = &of_bjorn[0];
        let (seq, _) = store.outfits().save(&again.outfit, again.origin, None, NOW).await.unwrap();
        assert!(of_bjorn.iter().any(|record| record.seq == seq), "the digest is that of the new ids");
        let events = store.feedback().for_customer(&CustomerId::new("Björn").unwrap());
        let events: Vec<_> = events.try_collect().await.unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].article.as_str(), "z\u{fc}");
        store.close().await;
    }
}

/// Rows as older versions wrote them: the same letters in two forms, and a byte order mark.
async fn write_older_rows(raw: &mut sqlx::AnyConnection) {
    let articles = [
        ("zu\u{308}", "nfd"),
        ("z\u{fc}", "nfc"),
        ("\u{feff}a", "mark"),
        ("a\u{30a}", "ring"),
        ("\u{200b}", "?"),
    ];
    for (id, kind) in articles {
        sqlx::query(
            "insert into articles (id, type, attributes, name_key, created_at, updated_at)
             values ($1, $2, '{}', '', 1, 1)",
        )
        .bind(id)
        .bind(kind)
        .execute(&mut *raw)
        .await
        .unwrap();
    }
    for (id, features) in [
        ("Bjo\u{308}rn", r#"{"age":30,"fit":"slim"}"#),
        ("Bj\u{f6}rn", r#"{"age":31}"#),
        ("c\u{200b}1", r#"{"age":40}"#),
        ("plain", "{}"),
        ("\u{200b}", "{}"),
        ("c\u{200b}2", "{}"),
    ] {
        sqlx::query(
            "insert into customers (id, features, name_key, created_at, updated_at) values ($1, $2, '', 1, 1)",
        )
        .bind(id)
        .bind(features)
        .execute(&mut *raw)
        .await
        .unwrap();
    }
    for (digest, customer, articles, features) in [
        (1_u8, "Bjo\u{308}rn", "[\"zu\u{308}\",\"b\",\"c\",\"d\"]", "{}"),
        (2, "Bj\u{f6}rn", "[\"z\u{fc}\",\"b\",\"c\",\"d\"]", "{}"),
        (3, "c\u{200b}1", "[\"a\",\"b\",\"c\",\"d\"]", "{}"),
        (4, "plain", "[\"zu\u{308}\",\"z\u{fc}\",\"c\",\"d\"]", "{}"),
        (5, "\u{200b}", "[\"zu\u{308}\",\"b\",\"z\u{fc}\",\"c\",\"d\"]", "{}"),
        (6, "c\u{200b}2", "[\"zu\u{308}\",\"b\",\"c\",\"d\"]", "{\"size\":null}"),
    ] {
        sqlx::query(
            "insert into outfits (digest, customer_id, articles, features, origin, created_at)
             values ($1, $2, $3, $4, 'saved', 1)",
        )
        .bind(&[digest; 32][..])
        .bind(customer)
        .bind(articles)
        .bind(features)
        .execute(&mut *raw)
        .await
        .unwrap();
    }
    sqlx::query(
        "insert into feedback_events
            (key_hash, kind, completion_id, slot, article_id, rank, release, method, customer_id, at)
         values ($1, 'shown', 't', 0, $2, 1, 'demo', 'gsu', $3, 1)",
    )
    .bind(&[1_u8; 32][..])
    .bind("zu\u{308}")
    .bind("Bjo\u{308}rn")
    .execute(&mut *raw)
    .await
    .unwrap();
    sqlx::query("insert into settings (name, value, changed) values ('ids_to_normalise', '', 0)")
        .execute(&mut *raw)
        .await
        .unwrap();
}
