use sqlx::Connection;

use super::{atelier, run, stderr};
use crate::harness::{Kind, TestDatabase, apply, contract, on_sqlite};

#[apply(contract)]
async fn a_new_database_gets_its_tables(db: TestDatabase) {
    if db.kind == Kind::Postgres {
        // The harness made a migrated database.
        let mut raw = db.raw().await;
        sqlx::raw_sql("drop schema public cascade; create schema public").execute(&mut raw).await.unwrap();
    }
    for _ in 0..2 {
        let output = run(atelier(&db, &["migrate"])).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(" has this version's tables"), "{}", stderr(&output));
        let mut raw = db.raw().await;
        let articles: i64 =
            sqlx::query_scalar("select count(*) from articles").fetch_one(&mut raw).await.unwrap();
        assert_eq!(articles, 0, "no demo world is imported");
        raw.close().await.unwrap();
    }
}

#[apply(on_sqlite)]
async fn a_newer_database_is_refused(db: TestDatabase) {
    db.open().await.close().await;
    let mut raw = db.raw().await;
    let newer = "update _sqlx_migrations set version = 99";
    sqlx::raw_sql(newer).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
    let output = run(atelier(&db, &["migrate"])).await;
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("has version 99, and this Atelier supports up to 1"), "{said}");
}
