use std::time::SystemTime;

use atelier::{
    people::{Access, Token},
    platform::db::Name,
};
use atelier_core::domain::Role;
use axum::Router;
use tokio::net::TcpListener;

use super::{atelier, run, serve::Served, stderr};
use crate::harness::{TestDatabase, apply, contract, on_sqlite};

async fn add(db: &TestDatabase, name: &str, role: Role) {
    let store = db.open().await;
    store.people().create(&Name::new(name).unwrap(), role, SystemTime::now().into()).await.unwrap();
    store.close().await;
}

/// The person that the printed link signs in.
async fn holder(db: &TestDatabase, arguments: &[&str]) -> String {
    let output = run(atelier(db, arguments)).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let line = String::from_utf8(output.stdout).unwrap();
    let rest = line.strip_prefix("Atelier is at http://127.0.0.1:8080/sign-in/").expect(&line);
    let (token, rest) = rest.split_once(' ').unwrap();
    let access = Access::new(db.open().await);
    let person = access.holder(&Token::parse(token).unwrap(), SystemTime::now().into()).await.unwrap();
    assert_eq!(rest, format!("(signs {} in once, within 24 hours)\n", person.name));
    person.name.to_string()
}

#[apply(contract)]
async fn the_link_signs_in_the_named_person(db: TestDatabase) {
    add(&db, "Root", Role::Admin).await;
    add(&db, "Zoë", Role::Stylist).await;
    assert_eq!(holder(&db, &["sign-in-link", "Zoë"]).await, "Zoë");
    assert_eq!(holder(&db, &["sign-in-link", "ROOT"]).await, "Root");
}

#[apply(on_sqlite)]
async fn without_a_name_the_link_is_for_the_first_admin(db: TestDatabase) {
    add(&db, "Ada", Role::Stylist).await;
    add(&db, "Root", Role::Admin).await;
    assert_eq!(holder(&db, &["sign-in-link"]).await, "Root");
}

#[apply(on_sqlite)]
async fn an_unknown_person_is_reported(db: TestDatabase) {
    db.open().await.close().await;
    let output = run(atelier(&db, &["sign-in-link"])).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = "atelier: cannot sign in admin: there are no people yet; start the service once\n";
    assert_eq!(stderr(&output), expected);
    add(&db, "Bo", Role::Admin).await;
    add(&db, "Ada", Role::Analyst).await;
    let store = db.open().await;
    let (ada, _) = store.people().find_with_password(&Name::new("Ada").unwrap()).await.unwrap().unwrap();
    store.people().set_disabled(ada.id, true, SystemTime::now().into()).await.unwrap();
    store.close().await;
    let output = run(atelier(&db, &["sign-in-link", "Ada"])).await;
    assert_eq!(stderr(&output), "atelier: cannot sign in Ada; people who can are Bo\n");
}

#[apply(on_sqlite)]
async fn the_link_is_of_the_running_service(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let served = Served::launch(atelier(&db, &["serve", "--address", address]), folder.path()).await;
        let output = run(atelier(&db, &["sign-in-link"])).await;
        let printed = String::from_utf8(output.stdout).unwrap();
        let link = printed.strip_prefix("Atelier is at ").and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(link.starts_with(&format!("{}sign-in/", served.url)), "{link} and {}", served.url);
        let welcome = reqwest::get(link).await.unwrap().text().await.unwrap();
        assert!(welcome.contains("Welcome, admin"), "{welcome}");
        served.stop().await;
    }
}

#[apply(on_sqlite)]
async fn a_service_that_is_gone_leaves_the_settings_address(db: TestDatabase) {
    add(&db, "Root", Role::Admin).await;
    let store = db.open().await;
    // Nothing listens on this port.
    store.settings().get_or_set("address", "http://127.0.0.1:9").await.unwrap();
    store.close().await;
    assert_eq!(holder(&db, &["sign-in-link"]).await, "Root");
}

#[apply(on_sqlite)]
async fn another_program_at_the_address_is_not_taken_for_the_service(db: TestDatabase) {
    add(&db, "Root", Role::Admin).await;
    let answers = || async { "{}" };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let other = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answers)).await });
    let store = db.open().await;
    store.settings().get_or_set("address", &address).await.unwrap();
    store.close().await;
    assert_eq!(holder(&db, &["sign-in-link"]).await, "Root");
    other.abort();
}
