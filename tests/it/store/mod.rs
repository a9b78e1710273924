//! The contract of `atelier::platform::db`, on both databases.

pub mod articles;
pub mod audit;
pub mod customers;
pub mod erasing;
pub mod events;
pub mod feedback;
pub mod import;
pub mod keys;
pub mod opening;
pub mod outfits;
pub mod people;
pub mod saved_outfits;
pub mod sessions;
pub mod settings;
pub mod writing;

use atelier::{
    people::Person,
    platform::db::{Name, Resource, Store, StoreError},
};
use atelier_core::domain::{
    Article, ArticleId, Customer, CustomerId, FeatureValue, Features, OpenOutfit, Outfit, Role, Slot, Slots,
    Split, Timestamp,
};
use futures_util::{Stream, TryStreamExt};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const LATER: Timestamp = Timestamp::from_millis(1_790_000_060_000);

/// Ids in byte order, which differs from the order in any language.
const ODD_IDS: [&str; 9] = ["Z", "a", "a b", "a'\"b\\", "aB", "ab", "Ä", "ß", "😀"];

fn article_id(id: &str) -> ArticleId {
    ArticleId::new(id).unwrap()
}

fn customer_id(id: &str) -> CustomerId {
    CustomerId::new(id).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn article(id: &str, kind: &str, attributes: Value) -> Article {
    let Value::Object(attributes) = attributes else { panic!("attributes are an object") };
    Article::new(article_id(id), kind, attributes).unwrap()
}

fn coat(id: &str) -> Article {
    article(id, "coat", json!({"colour": "red", "price": 79.9, "in_stock": true, "material": ["wool"]}))
}

fn features() -> Features {
    [
        ("age".into(), FeatureValue::Number(28.0)),
        ("weight".into(), FeatureValue::Number(58.25)),
        ("country".into(), FeatureValue::Text("Österreich \"AT\" 😀".into())),
        ("preferred_colours".into(), FeatureValue::Many(vec!["red".into(), "grün".into()])),
    ]
    .into_iter()
    .collect()
}

fn customer(id: &str) -> Customer {
    Customer { id: customer_id(id), features: features() }
}

fn outfit(customer: &str, articles: [&str; 4], split: Option<Split>) -> Outfit {
    let articles = articles.map(article_id).to_vec();
    Outfit::new(customer_id(customer), articles, split, Features::default()).unwrap()
}

/// Imports articles or customers.
async fn import<R: Resource>(store: &Store, rows: &[R]) {
    let mut import = store.import(NOW).await.unwrap();
    import.put(rows).await.unwrap();
    import.commit().await.unwrap();
}

/// All that a stream gives.
async fn all<T>(rows: impl Stream<Item = Result<T, StoreError>>) -> Vec<T> {
    rows.try_collect().await.unwrap()
}

/// An empty id is a blank.
fn open_outfit(customer: &str, ids: &[&str]) -> OpenOutfit {
    let slot = |id: &&str| if id.is_empty() { Slot::Blank } else { Slot::Article(article_id(id)) };
    let slots = Slots::new(ids.iter().map(slot).collect()).unwrap();
    OpenOutfit { customer: Some(customer_id(customer)), slots, features: Features::default() }
}

async fn with_customers(store: &Store, ids: &[&str]) {
    for id in ids {
        store.customers().put(&customer(id), NOW).await.unwrap();
    }
}

async fn add_person(store: &Store, called: &str, role: Role) -> Person {
    store.people().create(&name(called), role, None, NOW).await.unwrap()
}
