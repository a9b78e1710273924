use crate::harness::{TestDatabase, apply, contract, customer, customer_id, with_customers};

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
