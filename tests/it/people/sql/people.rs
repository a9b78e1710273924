use atelier::{
    people::{NewSession, Person, PersonId, Proof},
    platform::db::{Conflict, Store, StoreError, TokenHash},
};
use atelier_core::domain::Role;

use crate::harness::{LATER, NOW, TestDatabase, add_person, apply, contract, name};

#[apply(contract)]
async fn a_person_is_created_found_and_changed(store: Store) {
    let zoe = add_person(&store, "Zoë", Role::Stylist).await;
    let ada = add_person(&store, "Ada 'quote\" 😀", Role::Admin).await;
    assert_eq!((zoe.role, zoe.created_at, zoe.disabled_at), (Role::Stylist, NOW, None));
    assert_eq!(store.people().get(zoe.id).await, Ok(Some(zoe.clone())));
    assert_eq!(store.people().find_with_password(&name("ZOË")).await, Ok(Some((zoe.clone(), None))));
    assert_eq!(store.people().find_with_password(&name("Zo")).await, Ok(None));
    assert_eq!(store.people().password_hash(zoe.id).await, Ok(None));
    assert_eq!(store.people().list().await, Ok(vec![ada, zoe.clone()]));
    store.people().set_role(zoe.id, Role::Analyst, NOW).await.unwrap();
    store.people().set_disabled(zoe.id, true, LATER).await.unwrap();
    let changed = Person { role: Role::Analyst, disabled_at: Some(LATER), ..zoe };
    assert_eq!(store.people().get(changed.id).await, Ok(Some(changed)));
}

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
async fn an_unknown_person_is_not_found(store: Store) {
    let (people, unknown) = (store.people(), PersonId(17));
    assert_eq!(people.get(unknown).await, Ok(None));
    assert_eq!(people.password_hash(unknown).await, Err(StoreError::NotFound("person")));
    assert_eq!(people.set_role(unknown, Role::Admin, NOW).await, Err(StoreError::NotFound("person")));
    assert_eq!(people.set_disabled(unknown, false, NOW).await, Err(StoreError::NotFound("person")));
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
async fn somebody_who_never_signed_in_is_renamed_and_removed(store: Store) {
    let people = store.people();
    // The first row of all is removed, too.
    let bo = add_person(&store, "Bo", Role::Stylist).await.id;
    let ada = add_person(&store, "Ada", Role::Admin).await.id;
    assert_eq!(people.rename(bo, &name("ada"), NOW).await, Err(StoreError::Conflict(Conflict::NameTaken)));
    people.rename(bo, &name("Bo Ek"), NOW).await.unwrap();
    assert_eq!(people.get(bo).await.unwrap().unwrap().name, name("Bo Ek"));
    assert!(people.find_with_password(&name("bo ek")).await.unwrap().is_some());
    assert_eq!(people.remove(ada, NOW).await, Err(StoreError::Conflict(Conflict::LastAdmin)));
    people.remove(bo, NOW).await.unwrap();
    assert_eq!(people.get(bo).await, Ok(None));
    assert_eq!(people.remove(bo, NOW).await, Err(StoreError::NotFound("person")));
    add_person(&store, "Bo Ek", Role::Stylist).await;

    let token = TokenHash::new("secret");
    let new = |person| NewSession { token: &token, person, expires_at: LATER, new_password: None };
    assert_eq!(store.sessions().begin(new(ada), Proof::Password(None), NOW).await, Ok(true));
    assert_eq!(people.get(ada).await.unwrap().unwrap().signed_in_at, Some(NOW));
    add_person(&store, "Cy", Role::Admin).await;
    let signed_in = Err(StoreError::Conflict(Conflict::SignedIn));
    assert_eq!(people.rename(ada, &name("Eve"), NOW).await, signed_in);
    assert_eq!(people.remove(ada, NOW).await, signed_in);
}
