use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use atelier::platform::db::{OpenError, Store, StoreError};
use tokio::{task::JoinSet, time::timeout};

use crate::harness::{Kind, NOW, TestDatabase, apply, coat, contract, on_postgres};

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
    let altered = sqlx::query("update _sqlx_migrations set checksum = $1 where version = 1");
    altered.bind(&[0_u8; 48][..]).execute(&mut raw).await.unwrap();
    let refused = Store::open(&db.url).await.unwrap_err();
    let altered = StoreError::Altered { version: 1 };
    assert!(matches!(&refused, OpenError::Other { error, .. } if *error == altered), "{refused}");
}

/// Opening does not wait for a writer if there is nothing to migrate.
#[apply(contract)]
async fn a_database_opens_during_an_import(db: TestDatabase) {
    let mut import = db.open().await.import(NOW).await.unwrap();
    import.put(&[coat("a")]).await.unwrap();
    for _ in 0..3 {
        let store = timeout(Duration::from_secs(5), Store::open(&db.url)).await.unwrap().unwrap();
        assert_eq!(store.articles().count().await, Ok(0));
        store.close().await;
    }
    import.commit().await.unwrap();
}

/// The tests of `src/store/sqlite.rs` check errors of files.
#[apply(on_postgres)]
async fn an_unreachable_server_is_reported_without_the_password(_: TestDatabase) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), refusing] {
        let url = format!("postgres://ada:hunter2@{address}/atelier?password=hunter2");
        let started = Instant::now();
        let error = Store::open(&url).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert!(matches!(error, OpenError::Server { .. }), "{error:?}");
        let said = format!("{error} {error:?}");
        assert!(!said.contains("hunter2"), "{said}");
        let server = url.split('?').next().unwrap().replace(":hunter2", "");
        assert!(said.contains(&server), "{said}");
    }
}

#[apply(on_postgres)]
async fn an_open_store_does_not_show_its_password(db: TestDatabase) {
    // The private server takes any password.
    let url = db.url.replace("atelier@", "atelier:hunter2@");
    let shown = format!("{0} {0:?}", Store::open(&url).await.unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains(db.url.split('?').next().unwrap()), "{shown}");
}
