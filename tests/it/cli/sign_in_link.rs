use std::time::SystemTime;

use atelier::{
    people::{Access, Token},
    platform::db::Name,
};
use atelier_core::domain::Role;
use axum::Router;
use tokio::net::TcpListener;

use crate::{
    cli::{atelier, printed, refused, serve::Served},
    harness::{TestDatabase, apply, contract, on_sqlite},
};

async fn add(db: &TestDatabase, name: &str, role: Role) {
    let store = db.open().await;
    store.people().create(&Name::new(name).unwrap(), role, None, SystemTime::now().into()).await.unwrap();
    store.close().await;
}

/// The person that the printed link signs in.
async fn holder(db: &TestDatabase, arguments: &[&str]) -> String {
    let line = printed(atelier(db, arguments)).await;
    let rest = line.strip_prefix("Atelier is at http://127.0.0.1:8080/sign-in/").expect(&line);
    let (token, rest) = rest.split_once(' ').unwrap();
    let access = Access::new(db.open().await);
    let person = access.holder(&Token::parse(token).unwrap(), SystemTime::now().into()).await.unwrap();
    assert_eq!(rest, format!("(signs {} in once, within 24 hours)\n", person.name));
    person.name.to_string()
}

#[apply(contract)]
async fn the_link_signs_in_the_named_person(db: TestDatabase) {
    add(&db, "Zoë", Role::Stylist).await;
    add(&db, "Root", Role::Admin).await;
    assert_eq!(holder(&db, &["sign-in-link", "Zoë"]).await, "Zoë");
    assert_eq!(holder(&db, &["sign-in-link", "ROOT"]).await, "Root");
    // Without a name, the first admin.
    assert_eq!(holder(&db, &["sign-in-link"]).await, "Root");
}

#[apply(on_sqlite)]
async fn an_unknown_person_is_reported(db: TestDatabase) {
    db.open().await.close().await;
    let expected = "atelier: cannot sign in admin: there are no people yet; start the service once\n";
    assert_eq!(refused(atelier(&db, &["sign-in-link"])).await, expected);
    add(&db, "Bo", Role::Admin).await;
    add(&db, "Ada", Role::Analyst).await;
    let store = db.open().await;
    let (ada, _) = store.people().find_with_password(&Name::new("Ada").unwrap()).await.unwrap().unwrap();
    store.people().set_disabled(ada.id, true, SystemTime::now().into()).await.unwrap();
    store.close().await;
    let said = refused(atelier(&db, &["sign-in-link", "Ada"])).await;
    assert_eq!(said, "atelier: cannot sign in Ada; people who can are Bo\n");
}

#[apply(on_sqlite)]
async fn the_link_is_of_the_running_service(db: TestDatabase) {
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let served = Served::launch(atelier(&db, &["serve", "--address", address])).await;
        let printed = printed(atelier(&db, &["sign-in-link"])).await;
        let link = printed.strip_prefix("Atelier is at ").and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(link.starts_with(&format!("{}sign-in/", served.url)), "{link} and {}", served.url);
        let welcome = reqwest::get(link).await.unwrap().text().await.unwrap();
        assert!(welcome.contains("Welcome, admin"), "{welcome}");
        served.stop().await;
    }
}

#[apply(on_sqlite)]
async fn another_program_at_the_address_or_none_is_not_taken_for_the_service(db: TestDatabase) {
    add(&db, "Root", Role::Admin).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    let answers = || async { "{}" };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answers)).await });
    // Nothing listens on the second port.
    for address in [&*other, "http://127.0.0.1:9"] {
        let mut raw = db.raw().await;
        sqlx::query("delete from settings where name = 'address'").execute(&mut raw).await.unwrap();
        db.open().await.settings().get_or_set("address", address).await.unwrap();
        assert_eq!(holder(&db, &["sign-in-link"]).await, "Root", "{address}");
    }
}
