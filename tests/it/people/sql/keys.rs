use atelier::{
    people::KeyId,
    platform::db::{Store, StoreError, TokenHash},
};

use crate::harness::{LATER, NOW, apply, contract, name};

#[apply(contract)]
async fn a_key_is_valid_until_it_expires(store: Store) {
    let token = TokenHash::new("secret");
    let scopes = ["complete".to_owned(), "customers:write".to_owned()];
    let created =
        store.api_keys().create(&token, &name("Shop"), &scopes, None, NOW, Some(LATER)).await.unwrap();
    assert_eq!((created.label.as_str(), &created.scopes[..]), ("Shop", &scopes[..]));
    assert_eq!(store.api_keys().find_valid(&token, NOW).await, Ok(Some(created)));
    assert_eq!(store.api_keys().find_valid(&token, LATER).await, Ok(None));
    assert_eq!(store.api_keys().find_valid(&TokenHash::new("other"), NOW).await, Ok(None));
}

#[apply(contract)]
async fn a_key_is_revoked_once(store: Store) {
    let token = TokenHash::new("secret");
    let id = store.api_keys().create(&token, &name("Shop"), &[], None, NOW, None).await.unwrap().id;
    assert!(store.api_keys().find_valid(&token, NOW).await.unwrap().is_some());
    store.api_keys().revoke(id, NOW).await.unwrap();
    store.api_keys().revoke(id, LATER).await.unwrap();
    assert_eq!(store.api_keys().find_valid(&token, NOW).await, Ok(None));
    assert_eq!(store.api_keys().list().await.unwrap()[0].revoked_at, Some(NOW));
    assert_eq!(store.api_keys().revoke(KeyId(id.0 + 1), NOW).await, Err(StoreError::NotFound("API key")));
}

#[apply(contract)]
async fn lists_newest_first(store: Store) {
    let (keys, shop) = (store.api_keys(), name("Shop"));
    let old = keys.create(&TokenHash::new("1"), &shop, &[], None, NOW, None).await.unwrap();
    let new = keys.create(&TokenHash::new("2"), &shop, &[], None, NOW, None).await.unwrap();
    store.api_keys().touch(old.id, LATER).await.unwrap();
    store.api_keys().touch(old.id, NOW).await.unwrap();
    let listed = store.api_keys().list().await.unwrap();
    assert_eq!(listed.iter().map(|key| key.id).collect::<Vec<_>>(), [new.id, old.id]);
    assert_eq!((listed[0].last_used_at, listed[1].last_used_at), (None, Some(LATER)));
}
