use atelier::platform::db::{Put, Store, StoreError};
use atelier_core::domain::{Customer, FeatureValue, Features};

use crate::harness::{
    LATER, NOW, ODD_IDS, TestDatabase, Unconditional, all, apply, contract, customer, customer_id,
    with_customers,
};

#[apply(contract)]
async fn put_returns_created_or_updated(store: Store) {
    assert_eq!(store.customers().get(&customer_id("c")).await, Ok(None));
    assert_eq!(store.customers().set(&customer("c"), NOW).await, Ok(Put::Added));
    assert_eq!(store.customers().get(&customer_id("c")).await, Ok(Some(customer("c"))));
    assert_eq!(store.customers().set(&customer("c"), LATER).await, Ok(Put::Unchanged));
    let other = Customer { id: customer_id("c"), features: Features::default() };
    assert_eq!(store.customers().set(&other, LATER).await, Ok(Put::Changed));
    assert_eq!(store.customers().get(&other.id).await, Ok(Some(other)));
    assert_eq!(store.customers().count().await, Ok(1));
}

/// More than fit into one statement.
#[apply(contract)]
async fn existing_ids_are_found(store: Store) {
    with_customers(&store, &ODD_IDS).await;
    assert!(store.customers().existing_ids(&[]).await.unwrap().is_empty());
    let strangers = (0..1200).map(|number| customer_id(&format!("stranger-{number}")));
    let ids: Vec<_> = strangers.chain(ODD_IDS.map(customer_id)).collect();
    let known = store.customers().existing_ids(&ids).await.unwrap();
    assert_eq!(known, ODD_IDS.map(customer_id).into());
}

#[apply(contract)]
async fn ids_order_by_bytes(store: Store) {
    with_customers(&store, &ODD_IDS).await;
    assert_eq!(all(store.customers().after(None, 100)).await, ODD_IDS.map(customer));
    assert_eq!(all(store.customers().all()).await, ODD_IDS.map(customer));
    let rest = all(store.customers().after(Some(&customer_id("Ä")), 1)).await;
    assert_eq!(rest, ["ß", "😀"].map(customer));
}

#[apply(contract)]
async fn invalid_features_are_refused(store: Store) {
    let features = [("age".into(), FeatureValue::Number(f64::INFINITY))].into_iter().collect();
    let refused = store.customers().set(&Customer { id: customer_id("c"), features }, NOW).await;
    let reason = "\"age\" is not a finite number".to_owned();
    assert_eq!(refused, Err(StoreError::Unfit { what: "a feature", reason }));
    assert_eq!(store.customers().count().await, Ok(0));
}

#[apply(contract)]
async fn a_damaged_row_is_named(db: TestDatabase) {
    let store = db.open().await;
    with_customers(&store, &["c-1", "c-2"]).await;
    let mut raw = db.raw().await;
    sqlx::raw_sql("update customers set features = '{\"age\": null}' where id = 'c-2'")
        .execute(&mut raw)
        .await
        .unwrap();
    let damaged = store.customers().get(&customer_id("c-2")).await.unwrap_err();
    let said = "row c-2 of table customers is damaged: feature \"age\" is not a string, a number or a list of strings; \
                correct or delete it";
    assert_eq!(damaged.to_string(), said);
    assert_eq!(store.customers().get(&customer_id("c-1")).await, Ok(Some(customer("c-1"))));
}
