use std::time::Duration;

use atelier::{
    people::{NewSession, Person, PersonId, Proof},
    platform::db::{Store, TokenHash},
};
use atelier_core::domain::{Role, Timestamp};

use crate::harness::{LATER, NOW, add_person, apply, contract};

async fn begin(store: &Store, token: &TokenHash, person: PersonId, expires_at: Timestamp) {
    let session = NewSession { token, person, expires_at, new_password: None };
    assert_eq!(store.sessions().begin(session, Proof::Password(None), NOW).await, Ok(true));
}

#[apply(contract)]
async fn a_session_is_valid_until_it_expires_or_is_unused(store: Store) {
    let ada = add_person(&store, "Ada", Role::Admin).await;
    let token = TokenHash::new("secret");
    let expires_at = NOW + Duration::from_hours(1);
    begin(&store, &token, ada.id, expires_at).await;
    let after = NOW + Duration::from_millis(1);
    assert_eq!(store.sessions().find_valid(&token, LATER, after).await, Ok(None), "unused for too long");
    store.sessions().touch(&token, LATER).await.unwrap();
    store.sessions().touch(&token, NOW).await.unwrap();
    assert!(store.sessions().find_valid(&token, LATER, after).await.unwrap().is_some());
    let session = store.sessions().find_valid(&token, LATER, NOW).await.unwrap().unwrap();
    assert_eq!(session.person, Person { signed_in_at: Some(NOW), ..ada });
    assert_eq!((session.created_at, session.expires_at, session.last_seen_at), (NOW, expires_at, LATER));
    assert_eq!(store.sessions().find_valid(&token, expires_at, NOW).await, Ok(None));
    assert_eq!(store.sessions().find_valid(&TokenHash::new("secret2"), NOW, NOW).await, Ok(None));
}

#[apply(contract)]
async fn signing_out_ends_a_session(store: Store) {
    let ada = add_person(&store, "Ada", Role::Admin).await;
    let (laptop, phone) = (TokenHash::new("laptop"), TokenHash::new("phone"));
    for token in [&laptop, &phone] {
        begin(&store, token, ada.id, NOW + Duration::from_hours(1)).await;
    }
    assert_eq!(store.sessions().delete(&laptop, NOW).await, Ok(true));
    assert_eq!(store.sessions().delete(&laptop, NOW).await, Ok(false));
    assert_eq!(store.sessions().find_valid(&laptop, NOW, NOW).await, Ok(None));
    assert!(store.sessions().find_valid(&phone, NOW, NOW).await.unwrap().is_some());
}

#[apply(contract)]
async fn a_disabled_or_unknown_person_has_no_session(store: Store) {
    let ada = add_person(&store, "Ada", Role::Analyst).await;
    let token = TokenHash::new("secret");
    begin(&store, &token, ada.id, NOW + Duration::from_hours(1)).await;
    let link = TokenHash::new("link");
    store.sign_in_links().create(&link, ada.id, NOW).await.unwrap();
    store.people().set_disabled(ada.id, true, NOW).await.unwrap();
    assert_eq!(store.sessions().find_valid(&token, NOW, NOW).await, Ok(None));
    for person in [ada.id, PersonId(ada.id.0 + 1)] {
        let session = NewSession { token: &link, person, expires_at: LATER, new_password: None };
        assert_eq!(store.sessions().begin(session, Proof::Password(None), NOW).await, Ok(false));
    }
    store.people().set_disabled(ada.id, false, NOW).await.unwrap();
    assert_eq!(store.sessions().find_valid(&token, NOW, NOW).await, Ok(None), "it is gone for good");
    assert_eq!(store.sign_in_links().find_valid(&link, NOW).await, Ok(None), "and so is the link");
}

#[apply(contract)]
async fn a_new_password_ends_all_sessions(store: Store) {
    let ada = add_person(&store, "Ada", Role::Admin).await;
    let bo = add_person(&store, "Bo", Role::Admin).await;
    let (of_ada, of_bo) = (TokenHash::new("ada"), TokenHash::new("bo"));
    for (token, person) in [(&of_ada, &ada), (&of_bo, &bo)] {
        begin(&store, token, person.id, NOW + Duration::from_hours(1)).await;
    }
    // With a session of the new password, so that the browser that set it stays signed in.
    let (next, hour) = (TokenHash::new("next"), NOW + Duration::from_hours(1));
    let session = NewSession { token: &next, person: ada.id, expires_at: hour, new_password: Some("new") };
    assert_eq!(store.sessions().begin(session, Proof::Password(Some("stale")), NOW).await, Ok(false));
    assert!(store.sessions().find_valid(&of_ada, NOW, NOW).await.unwrap().is_some());
    assert_eq!(store.sessions().begin(session, Proof::Password(None), NOW).await, Ok(true));
    assert!(store.sessions().find_valid(&next, NOW, NOW).await.unwrap().is_some());
    assert_eq!(store.people().password_hash(ada.id).await, Ok(Some("new".into())));
    assert_eq!(store.sessions().find_valid(&of_ada, NOW, NOW).await, Ok(None));
    assert!(store.sessions().find_valid(&of_bo, NOW, NOW).await.unwrap().is_some());
}

#[apply(contract)]
async fn ended_sessions_are_deleted(store: Store) {
    let ada = add_person(&store, "Ada", Role::Admin).await;
    for (token, hours) in [("1", 1), ("2", 2), ("3", 3)] {
        let expires_at = NOW + Duration::from_hours(hours);
        begin(&store, &TokenHash::new(token), ada.id, expires_at).await;
    }
    assert_eq!(store.sessions().delete_ended(NOW + Duration::from_hours(2), NOW).await, Ok(2));
    assert!(store.sessions().find_valid(&TokenHash::new("3"), NOW, NOW).await.unwrap().is_some());
    assert_eq!(store.sessions().find_valid(&TokenHash::new("2"), NOW, NOW).await, Ok(None));

    begin(&store, &TokenHash::new("4"), ada.id, LATER + Duration::from_hours(1)).await;
    store.sessions().touch(&TokenHash::new("4"), LATER).await.unwrap();
    assert_eq!(store.sessions().delete_ended(NOW, LATER).await, Ok(1), "3 was not used since");
    assert_eq!(store.sessions().find_valid(&TokenHash::new("3"), NOW, NOW).await, Ok(None));
    assert!(store.sessions().find_valid(&TokenHash::new("4"), NOW, NOW).await.unwrap().is_some());
}
