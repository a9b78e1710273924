use std::time::Duration;

use atelier::{
    people::{NewSession, Proof},
    platform::db::{Conflict, Store, StoreError, TokenHash},
};
use atelier_core::domain::Role;

use crate::harness::{LATER, NOW, TestDatabase, add_person, apply, contract, name};

#[apply(contract)]
async fn names_are_unique_whatever_their_case(store: Store) {
    let people = store.people();
    add_person(&store, "Änne", Role::Stylist).await;
    let refused = people.create(&name("äNNE"), Role::Admin, None, NOW).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::NameTaken)));
    assert_eq!(people.list().await.unwrap().len(), 1);
    // Two at once: the database decides, not a query beforehand.
    let (one, other) = (name("Bo"), name("bo"));
    let (one, other) = tokio::join!(
        people.create(&one, Role::Stylist, None, NOW),
        people.create(&other, Role::Stylist, None, NOW)
    );
    assert!(one.is_ok() != other.is_ok());
    assert_eq!(one.and(other), Err(StoreError::Conflict(Conflict::NameTaken)));
}

#[apply(contract)]
async fn the_last_admin_cannot_be_demoted_or_disabled(store: Store) {
    let people = store.people();
    let ada = add_person(&store, "Ada", Role::Admin).await.id;
    let bo = add_person(&store, "Bo", Role::Admin).await.id;
    let last = Err(StoreError::Conflict(Conflict::LastAdmin));
    // An admin who cannot sign in does not count.
    people.set_disabled(bo, true, NOW).await.unwrap();
    assert_eq!(people.set_disabled(ada, true, NOW).await, last);
    assert_eq!(people.set_role(ada, Role::Analyst, NOW).await, last);
    let unchanged = people.get(ada).await.unwrap().unwrap();
    assert_eq!((unchanged.role, unchanged.disabled_at), (Role::Admin, None));
    people.set_role(ada, Role::Admin, NOW).await.unwrap();
    people.set_role(bo, Role::Stylist, NOW).await.unwrap();
    people.set_disabled(bo, false, NOW).await.unwrap();
    assert_eq!(people.set_role(ada, Role::Stylist, NOW).await, last, "a stylist is not an admin");
    people.set_role(bo, Role::Admin, NOW).await.unwrap();
    people.set_role(ada, Role::Stylist, NOW).await.unwrap();
    assert_eq!(people.set_disabled(bo, true, NOW).await, last);
}

#[apply(contract)]
async fn two_admins_cannot_change_each_other_at_once(db: TestDatabase) {
    let store = db.open().await;
    let (people, mut raw) = (store.people(), db.raw().await);
    for round in 0..20 {
        sqlx::raw_sql("delete from people").execute(&mut raw).await.unwrap();
        let ada = add_person(&store, "Ada", Role::Admin).await.id;
        let bo = add_person(&store, "Bo", Role::Admin).await.id;
        let both = if round % 2 == 0 {
            tokio::join!(people.set_role(ada, Role::Stylist, NOW), people.set_disabled(bo, true, NOW))
        } else {
            // The row that all such transactions wait for is gone when the second gets there.
            tokio::join!(people.remove(ada, NOW), people.set_role(bo, Role::Stylist, NOW))
        };
        let last = Err(StoreError::Conflict(Conflict::LastAdmin));
        assert!(both == (Ok(()), last.clone()) || both == (last, Ok(())), "{both:?}");
    }
}

#[apply(contract)]
async fn ended_sessions_are_deleted(store: Store) {
    let (ada, sessions) = (add_person(&store, "Ada", Role::Admin).await.id, store.sessions());
    let tokens = ["1", "2", "3", "4"].map(TokenHash::new);
    for (token, hours) in tokens.iter().zip([1, 2, 3, 9]) {
        let expires_at = NOW + Duration::from_hours(hours);
        let session = NewSession { token, person: ada, expires_at, new_password: None };
        assert_eq!(sessions.begin(session, Proof::Password(None), NOW).await, Ok(true));
    }
    sessions.touch(&tokens[3], LATER).await.unwrap();
    let is_there = async |at: usize| sessions.find_valid(&tokens[at], NOW, NOW).await.unwrap().is_some();
    assert_eq!(sessions.delete_ended(NOW + Duration::from_hours(2), NOW).await, Ok(2));
    assert_eq!([is_there(1).await, is_there(2).await, is_there(3).await], [false, true, true]);
    assert_eq!(sessions.delete_ended(NOW, LATER).await, Ok(1), "one was not used since");
    assert_eq!([is_there(2).await, is_there(3).await], [false, true]);
}
