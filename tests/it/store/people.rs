use atelier::store::{Conflict, PersonId, Role, StoreError};

use super::{LATER, NOW, name};
use crate::harness::{TestDatabase, contracts};

contracts!(create_then_find, a_name_is_taken_in_any_case, what_is_set_is_read, nobody_is_not_found);

async fn create_then_find(db: TestDatabase) {
    let store = db.open().await;
    let zoe = store.people().create(&name("Zoë"), Role::Stylist, NOW).await.unwrap();
    let ada = store.people().create(&name("Ada 'quote\" 😀"), Role::Admin, NOW).await.unwrap();
    assert_eq!((zoe.role, zoe.created_at, zoe.disabled_at), (Role::Stylist, NOW, None));
    assert_eq!(store.people().get(zoe.id).await, Ok(Some(zoe.clone())));
    assert_eq!(store.people().by_name(&name("ZOË")).await, Ok(Some(zoe.clone())));
    assert_eq!(store.people().by_name(&name("Zo")).await, Ok(None));
    assert_eq!(store.people().list().await, Ok(vec![ada, zoe]));
}

async fn a_name_is_taken_in_any_case(db: TestDatabase) {
    let store = db.open().await;
    let people = store.people();
    people.create(&name("Änne"), Role::Stylist, NOW).await.unwrap();
    let refused = people.create(&name("äNNE"), Role::Admin, NOW).await;
    assert_eq!(refused, Err(StoreError::Conflict(Conflict::NameTaken)));
    assert_eq!(people.list().await.unwrap().len(), 1);
    // Two at once: the database decides, not a look beforehand.
    let (one, other) = (name("Bo"), name("bo"));
    let (one, other) =
        tokio::join!(people.create(&one, Role::Stylist, NOW), people.create(&other, Role::Stylist, NOW));
    assert!(one.is_ok() != other.is_ok());
    assert_eq!(one.and(other), Err(StoreError::Conflict(Conflict::NameTaken)));
}

async fn what_is_set_is_read(db: TestDatabase) {
    let store = db.open().await;
    let people = store.people();
    let id = people.create(&name("Ada"), Role::Stylist, NOW).await.unwrap().id;
    assert_eq!(people.password_hash(id).await, Ok(None));
    people.set_password_hash(id, "$argon2id$v=19$x").await.unwrap();
    people.set_role(id, Role::Analyst).await.unwrap();
    people.set_disabled(id, Some(LATER)).await.unwrap();
    assert_eq!(people.password_hash(id).await, Ok(Some("$argon2id$v=19$x".into())));
    let ada = people.get(id).await.unwrap().unwrap();
    assert_eq!((ada.role, ada.disabled_at), (Role::Analyst, Some(LATER)));
    people.set_disabled(id, None).await.unwrap();
    assert_eq!(people.get(id).await.unwrap().unwrap().disabled_at, None);
}

async fn nobody_is_not_found(db: TestDatabase) {
    let store = db.open().await;
    let (people, nobody) = (store.people(), PersonId(17));
    assert_eq!(people.get(nobody).await, Ok(None));
    assert_eq!(people.password_hash(nobody).await, Err(StoreError::NotFound("person")));
    assert_eq!(people.set_password_hash(nobody, "x").await, Err(StoreError::NotFound("person")));
    assert_eq!(people.set_role(nobody, Role::Admin).await, Err(StoreError::NotFound("person")));
    assert_eq!(people.set_disabled(nobody, None).await, Err(StoreError::NotFound("person")));
}
