//! Rows that tests of statements store.

use atelier::{
    outcomes::{Event, FeedbackEvent, FeedbackKind},
    people::Person,
    platform::db::{
        AuditEntry, AuditFilter, ChangeError, Expected, Name, Put, Resource, Resources, Store, StoreError,
    },
};
use atelier_core::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureValue, Features, OpenOutfit, Outfit, Role, Slot, Slots,
    Split, Timestamp,
};
use futures_util::{Stream, TryStreamExt};
use serde_json::{Value, json};

pub const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
pub const LATER: Timestamp = Timestamp::from_millis(1_790_000_060_000);

/// Ids in byte order, which differs from the order in any language.
pub const ODD_IDS: [&str; 9] = ["Z", "a", "a b", "a'\"b\\", "aB", "ab", "Ä", "ß", "😀"];

pub fn article_id(id: &str) -> ArticleId {
    ArticleId::new(id).unwrap()
}

pub fn customer_id(id: &str) -> CustomerId {
    CustomerId::new(id).unwrap()
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn article(id: &str, kind: &str, attributes: Value) -> Article {
    let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
    Article::new(article_id(id), kind, attributes).unwrap()
}

pub fn coat(id: &str) -> Article {
    article(id, "coat", json!({"colour": "red", "price": 79.9, "in_stock": true, "material": ["wool"]}))
}

pub fn features() -> Features {
    [
        ("age".into(), FeatureValue::Number(28.0)),
        ("weight".into(), FeatureValue::Number(58.25)),
        ("country".into(), FeatureValue::Text("Österreich \"AT\" 😀".into())),
        ("preferred_colours".into(), FeatureValue::Many(vec!["red".into(), "grün".into()])),
    ]
    .into_iter()
    .collect()
}

pub fn customer(id: &str) -> Customer {
    Customer { id: customer_id(id), features: features() }
}

pub fn outfit(customer: &str, articles: [&str; 4], split: Option<Split>) -> Outfit {
    let articles = articles.map(article_id).to_vec();
    Outfit::new(customer_id(customer), articles, split, Features::default()).unwrap()
}

/// Of a suggestion by `gsu` in slot 1, without a customer.
pub fn feedback(kind: FeedbackKind, completion: &str, article: &str) -> FeedbackEvent {
    FeedbackEvent {
        kind,
        completion_id: completion.into(),
        slot: 1,
        article: article_id(article),
        rank: 1,
        release: "demo".into(),
        method: "gsu".into(),
        arm: None,
        customer: None,
        at: NOW,
        reason: None,
    }
}

/// Without an order and a ticket.
pub fn event(id: &str, kind: FeedbackKind, customer: Option<&str>, article: &str) -> Event {
    Event {
        id: id.into(),
        kind,
        customer: customer.map(customer_id),
        visitor: None,
        article: article_id(article),
        order: None,
        value: None,
        at: NOW,
        suggestion: None,
    }
}

/// Imports articles or customers.
pub async fn import<R: Resource>(store: &Store, rows: &[R]) {
    let mut import = store.import(NOW).await.unwrap();
    import.put(rows).await.unwrap();
    import.commit().await.unwrap();
}

/// All that a stream gives.
pub async fn all<T>(rows: impl Stream<Item = Result<T, StoreError>>) -> Vec<T> {
    rows.try_collect().await.unwrap()
}

/// The last entries of the audit log, newest first.
pub async fn entries(store: &Store, n: u32) -> Vec<AuditEntry> {
    store.audit().list(&AuditFilter::default(), None, n).await.unwrap()
}

/// An empty id is a blank.
pub fn open_outfit(customer: &str, ids: &[&str]) -> OpenOutfit {
    let slot = |id: &&str| if id.is_empty() { Slot::Blank } else { Slot::Article(article_id(id)) };
    let slots = Slots::new(ids.iter().map(slot).collect()).unwrap();
    OpenOutfit { customer: Some(customer_id(customer)), slots, features: Features::default() }
}

/// Changes whatever is stored.
pub trait Unconditional<R: Resource> {
    async fn set(self, value: &R, now: Timestamp) -> Result<Put, StoreError>;
    async fn remove(self, id: &R::Id, now: Timestamp) -> Result<bool, StoreError>;
}

impl<R: Resource> Unconditional<R> for Resources<'_, R> {
    async fn set(self, value: &R, now: Timestamp) -> Result<Put, StoreError> {
        self.put(value, &Expected::default(), now).await.map(|(put, _)| put).map_err(store_error)
    }

    async fn remove(self, id: &R::Id, now: Timestamp) -> Result<bool, StoreError> {
        self.delete(id, &Expected::default(), now).await.map_err(store_error)
    }
}

fn store_error(error: ChangeError) -> StoreError {
    match error {
        ChangeError::Store(error) => error,
        other => panic!("every row is expected: {other}"),
    }
}

pub async fn with_customers(store: &Store, ids: &[&str]) {
    for id in ids {
        store.customers().set(&customer(id), NOW).await.unwrap();
    }
}

pub async fn add_person(store: &Store, called: &str, role: Role) -> Person {
    store.people().create(&name(called), role, None, NOW).await.unwrap()
}
