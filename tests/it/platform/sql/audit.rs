use atelier::platform::db::{
    Actor, AuditFilter, Author, Entry, SIGN_IN_FAILED, Store, StoreError, TokenHash,
};
use atelier_core::domain::{Role, Timestamp};
use serde_json::{Value, json};

use crate::harness::{LATER, NOW, TestDatabase, apply, contract, customer_id, name};

async fn append(store: &Store, actor: Actor, entry: Entry<'_>, now: Timestamp) {
    store.by(Author { actor, peer: None }).audit().append(&entry, now).await.unwrap();
}

#[apply(contract)]
async fn appended_entries_are_listed(store: Store) {
    let ada = store.people().create(&name("Ada"), Role::Admin, None, NOW).await.unwrap();
    let key =
        store.api_keys().create(&TokenHash::new("k"), &name("Shop"), &[], None, NOW, None).await.unwrap();
    let details = json!({"from": "gs", "to": ["gsu", 1, null]});
    let (person, key) = (Actor::Person(ada.id), Actor::Key(key.id));
    let peer = Some("2001:db8::17".parse().unwrap());
    let method = Entry::new("release.method", "demo \"'😀", details.clone());
    store.by(Author { actor: person, peer }).audit().append(&method, NOW).await.unwrap();
    append(&store, key, Entry::new("customer.put", "c", json!({})).about(&customer_id("c")), LATER).await;
    append(&store, Actor::Service, Entry::new("start", "", json!({})), LATER).await;
    let entries = store.audit().list(&AuditFilter::default(), None, 3).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.actor).collect::<Vec<_>>(), [Actor::Service, key, person]);
    let oldest = &entries[2];
    assert_eq!((oldest.action.as_str(), oldest.subject.as_str()), ("release.method", "demo \"'😀"));
    assert_eq!((Value::from(oldest.details.clone()), oldest.at, oldest.peer), (details, NOW, peer));
    assert_eq!(entries[0].peer, None);
    let customers = entries.iter().map(|entry| entry.customer.clone()).collect::<Vec<_>>();
    assert_eq!(customers, [None, Some(customer_id("c")), None], "whether or not there is one");
}

#[apply(contract)]
async fn lists_have_a_cursor_and_filters(store: Store) {
    let ada = Actor::Person(store.people().create(&name("Ada"), Role::Admin, None, NOW).await.unwrap().id);
    let key =
        store.api_keys().create(&TokenHash::new("k"), &name("Shop"), &[], None, NOW, None).await.unwrap();
    let key = Actor::Key(key.id);
    for (actor, action, subject) in [
        (ada, "person.role", "1"),
        (key, "article.put", "2"),
        (Actor::Service, "article.put", "3"),
        (ada, "articles.bulk", "4"),
        (Actor::Visitor, SIGN_IN_FAILED, "5"),
    ] {
        append(&store, actor, Entry::new(action, subject, json!({})), NOW).await;
    }
    // Backwards from a cursor.
    let newest = store.audit().list(&AuditFilter::default(), None, 2).await.unwrap();
    let next = store.audit().list(&AuditFilter::default(), Some(newest[1].seq), 3).await.unwrap();
    let listed: String = newest.iter().chain(&next).map(|entry| entry.subject.as_str()).collect();
    assert_eq!(listed, "54321");
    let subjects = async |action: &str, actor| {
        let filter = AuditFilter { action: action.into(), actor };
        let entries = store.audit().list(&filter, None, 10).await.unwrap();
        entries.into_iter().map(|entry| entry.subject).collect::<String>()
    };
    assert_eq!(subjects("", None).await, "54321ShopAda", "creating them has entries too");
    assert_eq!(subjects("", Some(ada)).await, "41");
    assert_eq!(subjects("", Some(key)).await, "2");
    assert_eq!(subjects("", Some(Actor::Service)).await, "3ShopAda");
    assert_eq!(subjects("", Some(Actor::Visitor)).await, "5");
    assert_eq!(subjects("article.", None).await, "32");
    assert_eq!(subjects("article", Some(ada)).await, "4");
    assert_eq!(subjects("%", None).await, "", "it is not a pattern");
    let odd = AuditFilter { action: "\0".into(), actor: None };
    assert!(matches!(store.audit().list(&odd, None, 1).await, Err(StoreError::Unfit { .. })));
}

#[apply(contract)]
async fn the_database_refuses_changes_to_entries(db: TestDatabase) {
    let store = db.open().await;
    append(&store, Actor::Service, Entry::new("start", "x", json!({})), NOW).await;
    let before = store.audit().list(&AuditFilter::default(), None, 10).await.unwrap();
    let mut raw = db.raw().await;
    for statement in [
        "delete from audit_log",
        "update audit_log set action = 'x'",
        "update audit_log set at = 0",
        "update audit_log set peer = null",
    ] {
        let refused = sqlx::raw_sql(statement).execute(&mut raw).await.unwrap_err();
        assert!(refused.to_string().contains("audit_log is append-only"), "{statement}: {refused}");
    }
    assert_eq!(store.audit().list(&AuditFilter::default(), None, 10).await, Ok(before));
}
