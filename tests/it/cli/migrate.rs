use crate::{
    cli::{atelier, done},
    harness::{Html, Kind, TestDatabase, apply, contract},
};

#[apply(contract)]
async fn a_new_database_gets_its_tables(db: TestDatabase) {
    if db.kind == Kind::Postgres {
        // The harness made a migrated database.
        let mut raw = db.raw().await;
        sqlx::raw_sql("drop schema public cascade; create schema public").execute(&mut raw).await.unwrap();
    }
    for _ in 0..2 {
        done(atelier(&db, &["migrate"])).await.has([" has this version's tables"]);
        let mut raw = db.raw().await;
        let articles: i64 =
            sqlx::query_scalar("select count(*) from articles").fetch_one(&mut raw).await.unwrap();
        assert_eq!(articles, 0, "no demo world is imported");
    }
}
