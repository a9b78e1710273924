//! The last use of keys and sessions is noted in the background: a locked database delays no request that reads.

use atelier::{
    config::Limits,
    people::{NewSession, Proof, Scope},
    platform::db::TokenHash,
};
use atelier_core::domain::{Role, Timestamp};
use sqlx::AnyConnection;

use crate::harness::{Browser, Kind, Service, TestDatabase, apply, contract, now, on_sqlite, until};

/// Shorter than a write waits for a lock, so that a request that waits for one is a 504.
fn limits() -> Limits {
    Limits { request_ms: 3000, ..Limits::default() }
}

/// A key that was never used, and a session whose last use is an hour ago.
async fn long_unused(db: &TestDatabase, service: &Service) -> (String, Browser) {
    let key = service.issue(&[Scope::Catalogue]).await;
    let browser = service.signed_in(Role::Stylist).await;
    let earlier = "update sessions set last_seen_at = last_seen_at - 3600000";
    sqlx::raw_sql(earlier).execute(&mut db.raw().await).await.unwrap();
    (key, browser)
}

/// Keeps every other connection from writing until the connection is closed.
async fn lock(db: &TestDatabase) -> AnyConnection {
    let mut raw = db.raw().await;
    let lock = match db.kind {
        Kind::Sqlite => "begin immediate",
        Kind::Postgres => "begin; lock table api_keys, sessions in exclusive mode",
    };
    sqlx::raw_sql(lock).execute(&mut raw).await.unwrap();
    raw
}

#[apply(contract)]
async fn a_locked_database_delays_no_request(db: TestDatabase) {
    let service = Service::start_with(&db, limits()).await;
    let begun = now();
    let (key, browser) = long_unused(&db, &service).await;
    let locked = lock(&db).await;
    for _ in 0..3 {
        service.get("/articles").key(&key).is(200).await;
        browser.page("/studio").await;
    }
    sqlx::Connection::close(locked).await.unwrap();
    let session = TokenHash::new(browser.session.as_str());
    until!({
        let used = service.store.api_keys().list().await.unwrap()[0].last_used_at.is_some();
        let long_ago = Timestamp::from_millis(0);
        let found = service.store.sessions().find_valid(&session, now(), long_ago).await.unwrap();
        used && found.unwrap().last_seen_at >= begun
    });
}

/// Issue 65: each use had a place of its own while the first one was written.
#[apply(contract)]
async fn uses_of_one_key_wait_as_one(db: TestDatabase) {
    let service = Service::start_with(&db, limits()).await;
    let (key, _) = long_unused(&db, &service).await;
    let locked = lock(&db).await;
    for _ in 0..80 {
        service.get("/articles").key(&key).is(200).await;
    }
    service.form("/sign-in", &[("name", "nobody"), ("password", "a wrong password")]).is(401).await;
    sqlx::Connection::close(locked).await.unwrap();
    until!(service.actions(10).await.contains(&"sign-in.failed unknown name".to_owned()));
    until!(service.store.api_keys().list().await.unwrap()[0].last_used_at.is_some());
}

/// Expired sessions are deleted in the background too.
#[apply(on_sqlite)]
async fn a_sweep_that_fails_fails_no_sign_in(db: TestDatabase) {
    let service = Service::start_with(&db, limits()).await;
    let (_, browser) = long_unused(&db, &service).await;
    let expired = TokenHash::new("expired");
    let person = service.store.people().list().await.unwrap()[0].id;
    let long_ago = Timestamp::from_millis(0);
    let session = NewSession { token: &expired, person, expires_at: long_ago, new_password: None };
    assert!(service.store.sessions().begin(session, Proof::Password(None), long_ago).await.unwrap());
    let mut raw = db.raw().await;
    let refuse = "create trigger kept before delete on sessions begin select raise(abort, 'kept'); end";
    sqlx::raw_sql(refuse).execute(&mut raw).await.unwrap();
    let link = service.state.access().link(person, now()).await.unwrap();
    let session = service.state.access().enter(&link, None, now()).await.unwrap();
    assert!(service.state.access().session(&session, now()).await.unwrap().is_some());

    sqlx::raw_sql("drop trigger kept").execute(&mut raw).await.unwrap();
    browser.page("/studio").await;
    until!({
        let expired = sqlx::query_scalar::<_, i64>("select count(*) from sessions where expires_at = 0");
        expired.fetch_one(&mut raw).await.unwrap() == 0
    });
}

#[apply(on_sqlite)]
async fn an_idle_session_is_swept_before_it_expires(service: Service, db: TestDatabase) {
    let (_, browser) = long_unused(&db, &service).await;
    service.signed_in(Role::Stylist).await;
    let mut raw = db.raw().await;
    let earlier = "update sessions set last_seen_at = last_seen_at - 13 * 3600000
        where last_seen_at = (select max(last_seen_at) from sessions)";
    sqlx::raw_sql(earlier).execute(&mut raw).await.unwrap();
    browser.page("/studio").await;
    until!({
        let count = sqlx::query_scalar::<_, i64>("select count(*) from sessions");
        count.fetch_one(&mut raw).await.unwrap() == 1
    });
    browser.page("/studio").await;
}
