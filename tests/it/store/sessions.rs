use std::time::Duration;

use atelier::{
    domain::Role,
    store::{PersonId, StoreError, TokenHash},
};

use super::{LATER, NOW, name};
use crate::harness::{TestDatabase, contracts};

contracts!(
    a_session_is_valid_until_it_expires,
    signing_out_ends_a_session,
    a_disabled_person_has_no_session,
    a_new_password_ends_all_sessions,
    expired_sessions_are_deleted,
    an_unknown_person_gets_no_session,
);

async fn a_session_is_valid_until_it_expires(db: TestDatabase) {
    let store = db.open().await;
    let ada = store.people().create(&name("Ada"), Role::Admin, NOW).await.unwrap();
    let token = TokenHash::new("secret");
    let expires_at = NOW + Duration::from_hours(1);
    store.sessions().create(&token, ada.id, NOW, expires_at).await.unwrap();
    store.sessions().touch(&token, LATER).await.unwrap();
    store.sessions().touch(&token, NOW).await.unwrap();
    let session = store.sessions().find_valid(&token, LATER).await.unwrap().unwrap();
    assert_eq!(session.person, ada);
    assert_eq!((session.created_at, session.expires_at, session.last_seen_at), (NOW, expires_at, LATER));
    assert_eq!(store.sessions().find_valid(&token, expires_at).await, Ok(None));
    assert_eq!(store.sessions().find_valid(&TokenHash::new("secret2"), NOW).await, Ok(None));
}

async fn signing_out_ends_a_session(db: TestDatabase) {
    let store = db.open().await;
    let ada = store.people().create(&name("Ada"), Role::Admin, NOW).await.unwrap();
    let (laptop, phone) = (TokenHash::new("laptop"), TokenHash::new("phone"));
    for token in [&laptop, &phone] {
        store.sessions().create(token, ada.id, NOW, NOW + Duration::from_hours(1)).await.unwrap();
    }
    assert_eq!(store.sessions().delete(&laptop).await, Ok(true));
    assert_eq!(store.sessions().delete(&laptop).await, Ok(false));
    assert_eq!(store.sessions().find_valid(&laptop, NOW).await, Ok(None));
    assert!(store.sessions().find_valid(&phone, NOW).await.unwrap().is_some());
}

async fn a_disabled_person_has_no_session(db: TestDatabase) {
    let store = db.open().await;
    let ada = store.people().create(&name("Ada"), Role::Analyst, NOW).await.unwrap();
    let token = TokenHash::new("secret");
    store.sessions().create(&token, ada.id, NOW, NOW + Duration::from_hours(1)).await.unwrap();
    store.people().set_disabled(ada.id, Some(NOW)).await.unwrap();
    assert_eq!(store.sessions().find_valid(&token, NOW).await, Ok(None));
}

async fn a_new_password_ends_all_sessions(db: TestDatabase) {
    let store = db.open().await;
    let ada = store.people().create(&name("Ada"), Role::Admin, NOW).await.unwrap();
    let bo = store.people().create(&name("Bo"), Role::Admin, NOW).await.unwrap();
    let (of_ada, of_bo) = (TokenHash::new("ada"), TokenHash::new("bo"));
    for (token, person) in [(&of_ada, &ada), (&of_bo, &bo)] {
        store.sessions().create(token, person.id, NOW, NOW + Duration::from_hours(1)).await.unwrap();
    }
    store.people().set_password_hash(ada.id, "new").await.unwrap();
    assert_eq!(store.sessions().find_valid(&of_ada, NOW).await, Ok(None));
    assert!(store.sessions().find_valid(&of_bo, NOW).await.unwrap().is_some());
}

async fn expired_sessions_are_deleted(db: TestDatabase) {
    let store = db.open().await;
    let ada = store.people().create(&name("Ada"), Role::Admin, NOW).await.unwrap();
    for (token, hours) in [("1", 1), ("2", 2), ("3", 3)] {
        let expires_at = NOW + Duration::from_hours(hours);
        store.sessions().create(&TokenHash::new(token), ada.id, NOW, expires_at).await.unwrap();
    }
    assert_eq!(store.sessions().delete_expired(NOW + Duration::from_hours(2)).await, Ok(2));
    assert!(store.sessions().find_valid(&TokenHash::new("3"), NOW).await.unwrap().is_some());
    assert_eq!(store.sessions().find_valid(&TokenHash::new("2"), NOW).await, Ok(None));
}

async fn an_unknown_person_gets_no_session(db: TestDatabase) {
    let store = db.open().await;
    let refused = store.sessions().create(&TokenHash::new("x"), PersonId(17), NOW, LATER).await;
    assert_eq!(refused, Err(StoreError::NotFound("person")));
}
